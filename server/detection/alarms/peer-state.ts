// The state of a series that is judged by its peers, where its method could not score the newest
// bucket. The history of the series itself does not matter then; only the number of its peers and the
// length of their history do.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { peerValuesAt } from '../scoring/peers.ts'
import { at, type Series } from '../scoring/series.ts'
import type { DetectorState } from './alarm.ts'

/**
 * Returns the state of a series that is judged by its peers. It needs enough peers in its newest
 * bucket, and enough buckets with enough peers, but no history of its own. An open episode stays open,
 * however many peers are left.
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
