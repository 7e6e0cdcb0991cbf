// What the other series of a group say about one bucket. Peers are the other series a detector made of its `group_by`, in
// the very same buckets, each weighed by the same policies (evidence.ts), so that what is thin, missing or erased is no
// peer at that moment. A series is never its own peer: one that is off can't pull towards itself what it is measured by.

import { at, type Series } from './series.ts'

/** The values of peers in a bucket in order of size, written to the front of `into`; answers how many there are. */
export function peerValuesAt(peers: readonly Series[], bucket: number, into: Float64Array): number {
  let count = 0
  for (const { values } of peers) {
    const value = at(values, bucket)
    if (Number.isNaN(value)) continue
    let place = count++
    for (; place > 0 && at(into, place - 1) > value; place--) into[place] = at(into, place - 1)
    into[place] = value
  }
  return count
}

interface PeerSummary {
  /** Peers with a value in the bucket. */
  readonly count: number
  /** Of them, those inside the band. */
  readonly within: number
  /** Range of those inside the band, of all where none is; NaN without any. */
  readonly lowest: number
  readonly highest: number
}

/** How peers stood in a bucket, against a band; an absent edge is null. */
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
