// The episodes of a series that have ended, as rows of numbers. An alarm that opens and closes every other
// minute has a thousand of them in a window, and a thread keeps the series of many detectors: as objects,
// a million episodes would be followed by every garbage collection and copied with the state of each run.
// Here they are one array, and only those that a run reports become objects.
//
// Indexes are buckets since the start of the series, as in the episodes themselves.

import { partitionPoint } from '../../core/partition-point.ts'
import type { Comparison } from '../scoring/comparison.ts'
import type { Episode } from './episode.ts'

const kinds: readonly Episode['kind'][] = ['high', 'low', 'odd', 'silent']
/** Of a row, in this order; NaN is null. `endIndex` is `lastIndex`. */
const fields = [
  ...(['startIndex', 'openedIndex', 'lastIndex', 'peakIndex'] as const),
  ...(['peakValue', 'expected', 'lower', 'upper', 'score'] as const),
]
/** The kind is the number after the fields. */
const rowLength = fields.length + 1
/** Room for more rows than are kept, so that they are seldom moved. */
const spareShare = 0.25
const lastIndexAt = fields.indexOf('lastIndex')

export class EndedEpisodes {
  private numbers = new Float64Array(0)
  /** Rows before this one are forgotten. */
  private first = 0
  private end = 0
  /** By `lastIndex`, which no two episodes have in common. */
  private readonly compared = new Map<number, Comparison>()

  /** Adds an episode that ended after all others. */
  add(episode: Episode): void {
    if (this.end * rowLength === this.numbers.length) this.makeRoom()
    const at = this.end++ * rowLength
    for (const [i, field] of fields.entries()) this.numbers[at + i] = episode[field] ?? Number.NaN
    this.numbers[at + fields.length] = kinds.indexOf(episode.kind)
    if (episode.compared !== undefined) this.compared.set(episode.lastIndex, episode.compared)
  }

  /** Forgets those that were last seen before a bucket. */
  forgetBefore(bucket: number): void {
    while (this.first < this.end && this.lastIndexOf(this.first) < bucket)
      this.compared.delete(this.lastIndexOf(this.first++))
  }

  /** How many were last seen in or after a bucket. */
  countSince(bucket: number): number {
    const count = this.end - this.first
    return count - partitionPoint(count, (i) => this.lastIndexOf(this.first + i) >= bucket)
  }

  /** The last buckets of those that were last seen in or after a bucket, in ascending order. */
  lastIndexesSince(bucket: number): Float64Array {
    const found = new Float64Array(this.countSince(bucket))
    const row = this.end - found.length
    for (let i = 0; i < found.length; i++) found[i] = this.lastIndexOf(row + i)
    return found
  }

  /** The `count` newest, or all where there are fewer, in order of time. */
  newest(count: number): Episode[] {
    const length = Math.min(count, this.end - this.first)
    return Array.from({ length }, (_, i) => this.episodeAt(this.end - length + i))
  }

  private lastIndexOf(row: number): number {
    return this.numbers[row * rowLength + lastIndexAt] ?? Number.NaN
  }

  private episodeAt(row: number): Episode {
    const at = row * rowLength
    const number = (field: (typeof fields)[number]) => this.numbers[at + fields.indexOf(field)] ?? Number.NaN
    const orNull = (value: number) => (Number.isNaN(value) ? null : value)
    const lastIndex = number('lastIndex')
    const compared = this.compared.get(lastIndex)
    return {
      kind: kinds[this.numbers[at + fields.length] ?? 0] ?? 'odd',
      startIndex: number('startIndex'),
      openedIndex: number('openedIndex'),
      lastIndex,
      endIndex: lastIndex,
      peakIndex: number('peakIndex'),
      peakValue: orNull(number('peakValue')),
      expected: orNull(number('expected')),
      lower: orNull(number('lower')),
      upper: orNull(number('upper')),
      score: number('score'),
      ...(compared === undefined ? {} : { compared }),
    }
  }

  /** Moves the rows to the start of an array with room for more. */
  private makeRoom(): void {
    const kept = this.numbers.subarray(this.first * rowLength, this.end * rowLength)
    const room = Math.max(8, Math.ceil((this.end - this.first) * spareShare))
    const moved = new Float64Array(kept.length + room * rowLength)
    moved.set(kept)
    this.numbers = moved
    this.end -= this.first
    this.first = 0
  }
}
