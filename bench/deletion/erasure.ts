// What one erasure costs, measured in the same way for every store: time until the response, time until no
// file with the rows is on disk, bytes written for it, and the effect on neighbours.

import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { bytesOf, untilGone, usedBy, type WatchedFile } from './files.ts'
import { type Clients, type Latencies, startLoad } from './load.ts'
import type { Clocks } from './product.ts'

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
  /** Size of the files with the rows, including other rows in them. */
  readonly fileBytes: number
  /** The times that the product reports. */
  readonly clocks?: Clocks
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

/**
 * Runs an erasure while its files are watched from outside. `answer` is the value that the erasure resolved
 * to.
 */
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
    fileBytes: bytesOf(files),
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
  /**
   * Load of the machine in the minute before; above the number of cores, times are too long, ratios less so.
   */
  readonly loadAverage: number
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
  readonly loadSeconds: number
  readonly diskBytes: number
  readonly ways: readonly WayResult[]
}

const beforeMs = 10_000
const calmLoad = 1.5

const loadAverageNow = (): number => Math.round((loadavg()[0] ?? 0) * 10) / 10

/** Waits, at most `limitMs`, until the machine has been almost idle for a minute. */
export async function waitUntilIdle(limitMs: number): Promise<void> {
  const untilMs = performance.now() + limitMs
  while (loadAverageNow() > calmLoad && performance.now() < untilMs) await sleep(1000)
}

/** Erases first without load, then while neighbours send and query. */
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
