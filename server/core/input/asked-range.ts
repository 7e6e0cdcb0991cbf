// The time range that a query asks for, where each bound may be absent or relative to now.

import { instantOf, type Moment, type Ns } from '../../../contract/values/instant.ts'
import { InvalidInput, problem } from '../app-error.ts'
import type { TimeRange } from '../time-range.ts'

/** Throws InvalidInput at `query.range_end` where the range is empty. An absent bound is open. */
export function askedRange(
  query: { readonly range_start?: Moment | undefined; readonly range_end?: Moment | undefined },
  nowNs: Ns,
): TimeRange {
  const startNs = query.range_start === undefined ? null : instantOf(query.range_start, nowNs)
  const endNs = query.range_end === undefined ? null : instantOf(query.range_end, nowNs)
  if (startNs === null || endNs === null || startNs < endNs) return { startNs, endNs }
  throw emptyRange(endNs)
}

/** The refusal of a query whose range is empty. */
export function emptyRange(endNs: Ns): InvalidInput {
  return new InvalidInput([
    problem(['query', 'range_end'], 'value_error', 'The end should be after the start', endNs.toString(), {
      error: 'range is empty',
    }),
  ])
}
