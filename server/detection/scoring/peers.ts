// The values of the other series of a group in one bucket. Peers are the other series that a detector made by
// its `group_by`, in the same buckets. The same policies (evidence.ts) apply to each, so a series that is
// thin, missing or erased in a bucket is no peer there. A series is never its own peer: an outlier must not
// move the band by which it is judged.

import { at, type Series } from './series.ts'

/**
 * Writes the values of peers in a bucket to the front of `into`, in ascending order.
 * Returns how many there are.
 */
export function peerValuesAt(peers: readonly Series[], bucket: number, into: Float64Array): number {
  let count = 0
  for (const { values } of peers) {
    const value = at(values, bucket)
    if (Number.isNaN(value)) continue
    let position = count++
    for (; position > 0 && at(into, position - 1) > value; position--) into[position] = at(into, position - 1)
    into[position] = value
  }
  return count
}

interface PeerSummary {
  /** Peers with a value in the bucket. */
  readonly count: number
  /** Peers inside the band. */
  readonly within: number
  /** Range of the peers inside the band, or of all peers where none is inside; NaN without any. */
  readonly lowest: number
  readonly highest: number
}

/** Summarises the peers in a bucket against a band. An edge that does not exist is null. */
export function summarisePeers(
  peers: readonly Series[],
  bucket: number,
  { lower, upper }: { readonly lower: number | null; readonly upper: number | null },
): PeerSummary {
  const sorted = new Float64Array(peers.length)
  const all = sorted.subarray(0, peerValuesAt(peers, bucket, sorted))
  const inside = all.filter((value) => value >= (lower ?? -Infinity) && value <= (upper ?? Infinity))
  const shown = inside.length > 0 ? inside : all
  const lowest = at(shown, 0)
  return { count: all.length, within: inside.length, lowest, highest: at(shown, shown.length - 1) }
}
