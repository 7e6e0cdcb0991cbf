// The rule that every range in this room's bodies has in common: it ends after it starts. Pure.

import type { ValidationProblem } from '../../../contract/errors.ts'
import { formatInstant, type Ns } from '../../../contract/values/instant.ts'
import { problem } from '../../core/app-error.ts'
import { isRecord } from '../../core/input/is-record.ts'

interface Bounds {
  readonly range_start?: Ns | undefined
  readonly range_end?: Ns | undefined
}

/**
 * The problem of a range that ends at its start or before it; none where a bound is absent or refused.
 *
 * @param fields the bounds that the schema accepts
 * @param raw the body as it was sent, whose text is in the problem
 */
export function reversedBounds({ range_end, range_start }: Bounds, raw: unknown): ValidationProblem[] {
  if (range_start === undefined || range_end === undefined || range_start < range_end) return []
  const sent = isRecord(raw) ? raw.range_end : undefined
  return [
    problem(['body', 'range_end'], 'value_error', 'The end must be after the start', sent, {
      error: 'range_end is not after range_start',
      range_start: formatInstant(range_start),
    }),
  ]
}
