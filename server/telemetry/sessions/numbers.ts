// How many sessions the embedded engine has, and how organisations share them. Each running statement
// occupies a session, and one of the threads that the runtime also needs for files and compression:
// scripts/run.mjs starts as many as all sessions need, and some more.

import { availableParallelism } from 'node:os'

/**
 * Inserts and commands that run at once. A session runs one statement after another, so writing has sessions
 * of its own: then no insert waits for a query. One commit has at most three: while one insert waits for a
 * lock or a file, two others have a core each. So a neighbour's commit always finds a session free.
 */
export const writers = 4

/**
 * Reads on behalf of organisations that run at once. One organisation has at most two that a client waits
 * for, because planning a statement takes one core, and one for its detectors. So one alone never has all
 * four, and the next organisation finds one free even while those two take long. A session costs next to no
 * memory.
 */
export const readers = 4

/**
 * Reads of the service itself: erasures, their read-backs, backups, the schema. They don't wait for those of
 * organisations.
 */
export const ownReaders = 2

/**
 * While several organisations read, each gets half of the cores: a session for each two of them, at most two,
 * and a statement uses half of the cores. With all of them, two statements of one organisation would have
 * twice as many threads as there are cores, and a neighbour's chart, its commits and the event loop would get
 * a fifth of the time.
 */
export const halfOfCores = Math.max(1, Math.floor(availableParallelism() / 2))
const atOnceBesideOthers = Math.min(2, halfOfCores)

/**
 * Of an organisation's own time, what a client asked for gets four times as much as what its detectors read.
 * All detectors together never have more than two of the four sessions. A page of a console requests some ten
 * series at once, and several people look at it: a client with more than 64 waiting reads asks faster than it
 * reads. Reads of detectors are bounded by the loop that runs them.
 */
export const readKinds = {
  asked: { weight: 4, atOnceByOwner: 2, atOnceBesideOthers, atOnce: readers, waitingByOwner: 64 },
  background: { weight: 1, atOnceByOwner: 1, atOnce: 2, waitingByOwner: Number.POSITIVE_INFINITY },
} as const

/** Waiting reads of all organisations: some kilobytes each, with the HTTP request that waits for it. */
export const readsWaitingMax = 2048
