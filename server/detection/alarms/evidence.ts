// Applies the user's policies on missing and thin data to a series, before anything judges it. Methods then
// see only values and the alarm layer only kinds of buckets, and neither has to know the policies.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'

/** The kinds of a bucket. Only buckets of kind `value` have a number. */
export const bucketKind = {
  /** There is a value to judge and to learn from. */
  value: 0,
  /** Nothing arrived. A violation under the policy "alert"; otherwise not judged. */
  missing: 1,
  /** Too few events behind the value: it is not judged, and nothing is learnt from it. */
  thin: 2,
  /** Erased: not judged, whatever the policies. */
  unknown: 3,
} as const

export interface Evidence {
  /** The series for a method: NaN in every bucket that is not of kind `value`. */
  readonly series: Series
  /** One `bucketKind` per bucket. */
  readonly kinds: Uint8Array
}

/** Applies `missing` and `min_volume`. A value whose volume is not known is not thin. */
export function evidenceOf(series: Series, policy: Pick<MethodParams, 'missing' | 'min_volume'>): Evidence {
  const values = series.values.slice()
  const kinds = new Uint8Array(values.length)
  for (let i = 0; i < values.length; i++) {
    const kind = kindOf(series, i, policy)
    kinds[i] = kind
    if (kind !== bucketKind.value) values[i] = Number.NaN
    else if (Number.isNaN(at(values, i))) values[i] = 0
  }
  return { series: { ...series, values }, kinds }
}

function kindOf(series: Series, i: number, policy: Pick<MethodParams, 'missing' | 'min_volume'>): number {
  if (series.unknown[i] === 1) return bucketKind.unknown
  const isEmpty = Number.isNaN(at(series.values, i))
  if (isEmpty && policy.missing !== 'zero') return bucketKind.missing
  const volume = isEmpty ? 0 : (series.volumes?.[i] ?? Number.NaN)
  return volume < policy.min_volume ? bucketKind.thin : bucketKind.value
}
