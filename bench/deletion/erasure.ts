// What one erasure costs, measured in the same way for every store: time until the response, time until no
// file with the rows is on disk, bytes written for it, and the effect on neighbours.

import { setTimeout as sleep } from 'node:timers/promises'
import { usedBy } from '../process-use.ts'
import { untilGone, type WatchedFile } from './files.ts'
import { type Clients, type Latencies, startLoad } from './load.ts'

export interface Erasure {
  /** Until the statement or the HTTP request was answered as done. */
  readonly doneMs: number
  /** Until no file with the rows was on disk; null where one still was at the limit. */
  readonly goneMs: number | null
  readonly limitMs: number
  /** Bytes that the processes of the store wrote meanwhile, including writes for neighbours. */
  readonly writtenBytes: number
  /** Their processor time, which a busy machine changes least. */
  readonly cpuSeconds: number
}

interface Watched {
  /** The process of the store; its children count too. */
  readonly pid: number
  /** The folder in which a file may appear under another name. */
  readonly folder: string
  /** The files with the rows to be erased. */
  readonly files: readonly WatchedFile[]
  readonly limitMs: number
}

/** Runs an erasure while its files are watched from outside. */
export async function watchErasure(
  { pid, folder, files, limitMs }: Watched,
  erase: () => Promise<void>,
): Promise<Erasure> {
  const before = usedBy(pid)
  const startMs = performance.now()
  const [doneMs, goneMs] = await Promise.all([
    erase().then(() => performance.now() - startMs),
    untilGone(folder, files, startMs, { limitMs, everyMs: 5 }),
  ])
  const after = usedBy(pid)
  return {
    doneMs,
    goneMs,
    limitMs,
    writtenBytes: after.writtenBytes - before.writtenBytes,
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
  }
}

/** One way of erasing in one store. */
export interface Way {
  readonly name: string
  /** Organisations without queries and ingest; one for each repetition. */
  readonly quiet: readonly number[]
  readonly loaded: readonly number[]
  readonly erase: (organisation: number, limitMs: number) => Promise<Erasure>
}

interface Felt {
  readonly ingest: Latencies | null
  readonly query: Latencies
}

export interface WayResult {
  readonly way: string
  /** Without other work. */
  readonly quiet: readonly Erasure[]
  /** While clients send and query. */
  readonly loaded: readonly Erasure[]
  readonly before: Felt | null
  readonly during: Felt | null
}

/** A store, its contents, and the results of each way of erasing. */
export interface StoreResult {
  readonly store: string
  readonly version: string
  readonly rows: number
  readonly diskBytes: number
  readonly ways: readonly WayResult[]
}

const beforeMs = 10_000

/** Erases first without load, then while neighbours send and query. */
export async function measureWay(way: Way, clients: Clients, limitMs: number): Promise<WayResult> {
  const quiet: Erasure[] = []
  for (const organisation of way.quiet) quiet.push(await way.erase(organisation, limitMs))
  if (way.loaded.length === 0) return { way: way.name, quiet, loaded: [], before: null, during: null }
  const load = startLoad(clients)
  try {
    await sleep(beforeMs / 2)
    load.restart()
    await sleep(beforeMs)
    const before = load.read()
    load.restart()
    const loaded: Erasure[] = []
    for (const organisation of way.loaded) loaded.push(await way.erase(organisation, limitMs))
    return { way: way.name, quiet, loaded, before, during: load.read() }
  } finally {
    await load.stop()
  }
}
