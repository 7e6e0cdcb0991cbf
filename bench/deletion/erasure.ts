// What one erasure costs, measured the same way for every contender: until it was answered as done, until no
// file that held the rows was on disk, what was written for it; and what the neighbours felt of it.

import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { bytesOf, type HeldFile, untilGone, usedBy } from './files.ts'
import { type Clients, type Latencies, startLoad } from './load.ts'
import type { Clocks } from './product.ts'

export interface Erasure {
  /** Until the statement, or the request, was answered as done. */
  readonly doneMs: number
  /** Until no file that held the rows was on disk; null where some still was at the limit. */
  readonly goneMs: number | null
  readonly limitMs: number
  /** What the store's processes wrote meanwhile; neighbours' writes too, where there were any. */
  readonly writtenBytes: number
  /** Their processor time, which a busy machine stretches least. */
  readonly cpuSeconds: number
  /** Size of the files that held the rows, beside other rows or alone. */
  readonly heldBytes: number
  /** The product's own. */
  readonly clocks?: Clocks
}

interface Watched {
  /** The store's process; its children count too. */
  readonly pid: number
  /** Where a file could be found again under another name. */
  readonly folder: string
  /** Those that hold what is erased. */
  readonly files: readonly HeldFile[]
  readonly limitMs: number
}

/** Runs an erasure while its files are watched from outside. `answer` is what the erasure resolved to. */
export async function watchErasure<T>(
  { pid, folder, files, limitMs }: Watched,
  erase: () => Promise<T>,
): Promise<Erasure & { readonly answer: T }> {
  const before = usedBy(pid)
  const startMs = performance.now()
  const timed = async () => {
    const answer = await erase()
    return { answer, doneMs: performance.now() - startMs }
  }
  const [done, goneMs] = await Promise.all([
    timed(),
    untilGone(folder, files, startMs, { limitMs, everyMs: 5 }),
  ])
  const after = usedBy(pid)
  return {
    ...done,
    goneMs,
    limitMs,
    writtenBytes: after.writtenBytes - before.writtenBytes,
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    heldBytes: bytesOf(files),
  }
}

/** One way of erasing in one store. */
export interface Way {
  readonly name: string
  /** Organisations that nobody asks for or sends as; one for each repetition. */
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
  /** Of the machine over the minute before; above the cores, times are too long, ratios less so. */
  readonly loadAverage: number
  /** With nothing else going on. */
  readonly quiet: readonly Erasure[]
  /** With clients at work. */
  readonly loaded: readonly Erasure[]
  readonly before: Felt | null
  readonly during: Felt | null
}

/** A store, what it held, and how each way of erasing went. */
export interface StoreResult {
  readonly store: string
  readonly version: string
  readonly rows: number
  readonly loadSeconds: number
  readonly diskBytes: number
  readonly ways: readonly WayResult[]
}

const beforeMs = 10_000
const calmLoad = 1.5

const loadAverageNow = (): number => Math.round((loadavg()[0] ?? 0) * 10) / 10

/** Waits, at most `limitMs`, until the machine has had little to do for a minute. */
export async function untilCalm(limitMs: number): Promise<void> {
  const untilMs = performance.now() + limitMs
  while (loadAverageNow() > calmLoad && performance.now() < untilMs) await sleep(1000)
}

/** Erases first in silence, then while neighbours send and ask. */
export async function measureWay(way: Way, clients: Clients, limitMs: number): Promise<WayResult> {
  const loadAverage = loadAverageNow()
  const quiet: Erasure[] = []
  for (const organisation of way.quiet) quiet.push(await way.erase(organisation, limitMs))
  if (way.loaded.length === 0)
    return { way: way.name, loadAverage, quiet, loaded: [], before: null, during: null }
  const load = startLoad(clients)
  try {
    await sleep(beforeMs / 2)
    load.restart()
    await sleep(beforeMs)
    const before = load.read()
    load.restart()
    const loaded: Erasure[] = []
    for (const organisation of way.loaded) loaded.push(await way.erase(organisation, limitMs))
    return { way: way.name, loadAverage, quiet, loaded, before, during: load.read() }
  } finally {
    await load.stop()
  }
}
