// The state of a series that is judged by its peers, where its method could not score the newest bucket: the history of
// the series itself says nothing then, only how many peers there are and how long they have been there.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { peerValuesAt } from '../scoring/peers.ts'
import { at, type Series } from '../scoring/series.ts'
import type { DetectorState } from './alarm.ts'

/**
 * The state of a series that is judged by its peers. It needs no history of its own but enough peers now, and a history
 * of theirs; an incident that is open stays so, whoever is left to compare with.
 */
export function stateAmongPeers(
  state: DetectorState,
  { peers, score, series }: { peers: readonly Series[]; score: Float64Array; series: Series },
  params: MethodParams<'peer_outlier'>,
): DetectorState {
  if (state.status !== 'ok' && state.status !== 'learning' && state.status !== 'insufficient_data')
    return state
  const newest = series.values.findLastIndex((value) => !Number.isNaN(value))
  if (newest < 0) return state
  if (!Number.isNaN(at(score, newest))) return { status: 'ok' }
  const sorted = new Float64Array(peers.length)
  const peersNeeded = params.min_peers - peerValuesAt(peers, newest, sorted)
  if (peersNeeded > 0) return { status: 'insufficient_data', peersNeeded }
  let learnt = 0
  for (let i = 0; i <= newest; i++) {
    if (peerValuesAt(peers, i, sorted) >= params.min_peers) learnt++
  }
  return { status: 'learning', pointsNeeded: Math.max(1, params.warmup_points + 1 - learnt) }
}
