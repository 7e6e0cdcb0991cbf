// Every detection method by its key. A method is one file, one line here, and its parameters in
// `contract/detection/methods.ts`.

import type { MethodKey, MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { absence } from './absence.ts'
import { auto } from './auto.ts'
import type { ConfirmedStarts } from './confirmed.ts'
import { levelShift } from './level-shift.ts'
import type { Method, PieceCost, Scored, Scorer } from './method.ts'
import { peerOutlier } from './peer-outlier.ts'
import { rateTest } from './rate-test.ts'
import { rcf } from './rcf.ts'
import { recordRange } from './record-range.ts'
import { robustBand } from './robust-band.ts'
import { seasonalBand } from './seasonal-band.ts'
import { shapeDiscord } from './shape-discord.ts'
import { spectralResidual } from './spectral-residual.ts'
import { subPca } from './sub-pca.ts'
import { threshold } from './threshold.ts'

export const methods: { readonly [K in MethodKey]: Method<K> } = {
  threshold,
  robust_band: robustBand,
  seasonal_band: seasonalBand,
  record_range: recordRange,
  shape_discord: shapeDiscord,
  spectral_residual: spectralResidual,
  sub_pca: subPca,
  level_shift: levelShift,
  absence,
  rate_test: rateTest,
  rcf,
  peer_outlier: peerOutlier,
  auto,
}

/** A method together with parameters that its schema has accepted. */
export type MethodChoice = { [K in MethodKey]: { method_key: K; params: MethodParams<K> } }[MethodKey]

/** `peers`: the other series of the group, for methods that compare them. */
export function scoreSeries<K extends MethodKey>(
  key: K,
  series: Series,
  params: MethodParams<K>,
  peers: readonly Series[] = [],
): Scored {
  return methods[key].score(series, params, peers)
}

/** A scorer of a method that has learnt nothing yet. */
export function startScorer<K extends MethodKey>(
  key: K,
  params: MethodParams<K>,
  stepMinutes: number,
  confirmed: ConfirmedStarts = [],
): Scorer {
  return methods[key].start(params, stepMinutes, confirmed)
}

const usualCost: PieceCost = { perBucket: 1, again: 0 }

/** What a piece of a series costs with a method. */
export function pieceCostOf({ method_key, params }: MethodChoice): PieceCost {
  return costWith(method_key, params)
}

function costWith<K extends MethodKey>(key: K, params: MethodParams<K>): PieceCost {
  return methods[key].cost?.(params) ?? usualCost
}
