// The time that an anomaly says its band, score and reason were computed from. It is recorded exactly: an
// erasure of a part of it clears what was learnt there, and until then a verification counts the anomaly.
// Time that was erased before is not in it, because nothing was learnt there.
//
// Each erased range divides this time, and an organisation may erase thousands of single seconds. So there
// is a limit, and above it an anomaly is recorded without everything that was learnt. No shorter list would
// be true: with small holes filled, the anomaly would claim to have read what is erased, and a verification
// would count it; with stretches left out, what was learnt there would remain after they are erased.

import { partitionPoint } from '../../core/partition-point.ts'
import { type BoundedRange, union } from '../../core/time-range.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { RunFound } from './anomaly-rows.ts'
import type { Finding } from './findings.ts'

/**
 * Stretches that the time may have. An anomaly stores the holes between them, 46 bytes each, and an
 * organisation may have a million anomalies, of which a list returns a thousand at once.
 */
const stretchesMax = 100

/** Whether time that was read has more stretches than an anomaly records; they are disjoint. */
export function isTooDivided(read: readonly BoundedRange[]): boolean {
  return read.length > stretchesMax
}

type ReadColumns = { readonly read_from_ns: string; readonly unread_ns: string }

/** Disjoint stretches of time, prepared for many findings that were computed from them. */
class Stretches {
  readonly #all: readonly BoundedRange[]
  /** The hole after each stretch but the last one, as it is stored. */
  readonly #holes: readonly string[]
  /** By the number of stretches. */
  readonly #within = new Map<number, string>()

  constructor(all: readonly BoundedRange[]) {
    this.#all = all
    this.#holes = all
      .slice(1)
      .map(({ startNs }, i) => holeText({ startNs: all[i]?.endNs ?? startNs, endNs: startNs }))
  }

  /** The columns of a finding: the stretches up to its end. */
  columnsOf({ seenUntilNs, startedNs }: Pick<Finding, 'startedNs' | 'seenUntilNs'>): ReadColumns {
    const [first] = this.#all
    const count = partitionPoint(
      this.#all.length,
      (i) => (this.#all[i]?.startNs ?? seenUntilNs) >= seenUntilNs,
    )
    const fromNs = first !== undefined && first.startNs < startedNs ? first.startNs : startedNs
    const firstNs = count === 0 || first === undefined ? seenUntilNs : first.startNs
    const lastNs = this.#all[count - 1]?.endNs ?? seenUntilNs
    const holes = [
      ...(fromNs < firstNs ? [holeText({ startNs: fromNs, endNs: firstNs })] : []),
      ...(count > 1 ? [this.#holesWithin(count)] : []),
      ...(lastNs < seenUntilNs ? [holeText({ startNs: lastNs, endNs: seenUntilNs })] : []),
    ]
    return { read_from_ns: fromNs.toString(), unread_ns: `[${holes.join(',')}]` }
  }

  /** The holes between the first stretches; most findings of a run have the same ones. */
  #holesWithin(count: number): string {
    const known = this.#within.get(count)
    const text = known ?? this.#holes.slice(0, count - 1).join(',')
    if (known === undefined) this.#within.set(count, text)
    return text
  }
}

function holeText({ endNs, startNs }: BoundedRange): string {
  return `["${startNs}","${endNs}"]`
}

/** What the findings of a run were computed from. */
export class ReadTime {
  readonly #isLearnt: boolean
  /** By {@link Finding.alsoRead}, which findings share; null where there are too many stretches. */
  readonly #with = new Map<Finding['alsoRead'], Stretches | null>()

  private constructor(isLearnt: boolean) {
    this.#isLearnt = isLearnt
  }

  /** Prepares what takes long, before the transaction in which the run is recorded. */
  static async of({ findings, isLearnt, read }: RunFound, pace = new Pace()): Promise<ReadTime> {
    const time = new ReadTime(isLearnt)
    if (!isLearnt) return time
    const window = union(read)
    const alone = isTooDivided(window) ? null : new Stretches(window)
    for (const { alsoRead } of findings) {
      if (time.#with.has(alsoRead)) continue
      if (pace.isOver()) await pace.turn()
      const all = alone === null || alsoRead.length === 0 ? null : union([...window, ...alsoRead])
      time.#with.set(alsoRead, all === null ? alone : isTooDivided(all) ? null : new Stretches(all))
    }
    return time
  }

  /**
   * The columns that say what a finding was computed from: the window up to its end, or only its own time
   * where the band is configured. Null where that cannot be recorded, so that nothing learnt may be either.
   */
  columnsOf(finding: Finding): ReadColumns | null {
    if (!this.#isLearnt) return { read_from_ns: finding.startedNs.toString(), unread_ns: '[]' }
    return this.#with.get(finding.alsoRead)?.columnsOf(finding) ?? null
  }
}
