// The results of the deletion benchmark as a table for people: a line for each way of erasing, medians over
// its repetitions, in Markdown.

import { quantile } from '../storage/bench-store.ts'
import type { Erasure, StoreResult, WayResult } from './erasure.ts'
import type { Latencies } from './load.ts'

const heads = [
  'store',
  'rows',
  'way',
  'load',
  'answered s',
  'bytes gone s',
  'CPU s',
  'MB held',
  'MB written',
  'under load: gone s',
  'ingest p50/p99 ms before',
  'during',
  'query p50/p99 ms before',
  'during',
]

export function tableOf(stores: readonly StoreResult[]): string {
  const lines = stores.flatMap((store) =>
    store.ways.map((way) => [store.store, String(store.rows), ...cells(way)]),
  )
  return [heads, heads.map(() => '---'), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n')
}

function cells({ way, loadAverage, quiet, loaded, before, during }: WayResult): string[] {
  const megabytes = (pick: (erasure: Erasure) => number) => (median(quiet, pick) / 1e6).toFixed(1)
  return [
    way,
    String(loadAverage),
    seconds(median(quiet, ({ doneMs }) => doneMs)),
    gone(quiet),
    median(quiet, ({ cpuSeconds }) => cpuSeconds).toFixed(2),
    megabytes(({ heldBytes }) => heldBytes),
    megabytes(({ writtenBytes }) => writtenBytes),
    gone(loaded),
    pair(before?.ingest),
    pair(during?.ingest),
    pair(before?.query),
    pair(during?.query),
  ]
}

const median = (erasures: readonly Erasure[], pick: (erasure: Erasure) => number): number =>
  quantile(erasures.map(pick), 0.5)
const seconds = (ms: number): string => (ms / 1000).toFixed(2)
const pair = (latencies: Latencies | null | undefined): string =>
  latencies ? `${latencies.p50Ms} / ${latencies.p99Ms}` : ''

function gone(erasures: readonly Erasure[]): string {
  if (erasures.length === 0) return ''
  const stayed = erasures.find(({ goneMs }) => goneMs === null)
  if (stayed !== undefined) return `not after ${stayed.limitMs / 1000}`
  return seconds(median(erasures, ({ goneMs }) => goneMs ?? 0))
}
