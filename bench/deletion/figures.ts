// The figures of the deletion bench: a row for each way of erasing, medians over its repetitions.

import type { Row } from '../report.ts'
import { quantile, rounded, shortVersion } from '../samples.ts'
import type { Erasure, StoreResult, WayResult } from './erasure.ts'
import type { Latencies } from './load.ts'

export function figuresOf(store: Omit<StoreResult, 'ways'>, result: WayResult): Row {
  const { before, during, loaded, quiet, way } = result
  return {
    store: store.store,
    version: shortVersion(store.version),
    rows: store.rows,
    'MB on disk': Math.round(store.diskBytes / 1e6),
    way,
    'bytes gone s': gone(quiet),
    'answered s': rounded(median(quiet, ({ doneMs }) => doneMs) / 1000),
    'CPU s': rounded(median(quiet, ({ cpuSeconds }) => cpuSeconds)),
    'MB written': rounded(median(quiet, ({ writtenBytes }) => writtenBytes) / 1e6, 1),
    'bytes gone s under load': gone(loaded),
    'ingest p50 / p99 ms, before → during': pair(before?.ingest, during?.ingest),
    'query p50 / p99 ms, before → during': pair(before?.query, during?.query),
  }
}

const median = (erasures: readonly Erasure[], pick: (erasure: Erasure) => number): number =>
  quantile(erasures.map(pick), 0.5)

function pair(before: Latencies | null | undefined, during: Latencies | null | undefined): string | null {
  if (!before || !during) return null
  return [before, during].map(({ p50Ms, p99Ms }) => `${p50Ms} / ${p99Ms}`).join(' → ')
}

/** Median seconds, or a text where some bytes stayed; null where nothing was erased. */
function gone(erasures: readonly Erasure[]): number | string | null {
  if (erasures.length === 0) return null
  const stayed = erasures.find(({ goneMs }) => goneMs === null)
  if (stayed !== undefined) return `not after ${stayed.limitMs / 1000}`
  return rounded(median(erasures, ({ goneMs }) => goneMs ?? 0) / 1000)
}
