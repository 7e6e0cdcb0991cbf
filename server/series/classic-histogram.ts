// Classic histograms of Prometheus: a family of counters, `x_bucket` with the upper bound of each bucket in
// the label `le`, `x_sum` and `x_count`. They are stored as counters and combined when they are read, because
// their series may arrive in different HTTP requests. A quantile is that of PromQL, `histogram_quantile(q,
// sum by (le) (increase(x_bucket)))`, over the increase of a step as `docs/decisions/0025` defines it. Pure.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { Pace } from '../core/turns/pace.ts'
import { type MetricChoice, quantileOf } from './metric-kind.ts'
import type { PackedGroup, SeriesFrame } from './series-statement.ts'

/** The label of a bucket's upper bound, inclusive. */
export const bucketLabel = 'le'

/** Suffix of the names of bucket counters. */
export const bucketSuffix = '_bucket'
const countSuffix = '_count'
const sumSuffix = '_sum'

/** Whether a name is that of the bucket counters of a family. */
export function isBucketName(metric: string): boolean {
  return metric.endsWith(bucketSuffix)
}

export function bucketNameOf(metric: string): string {
  return `${familyOf(metric)}${bucketSuffix}`
}

/** Whether a metric with that choice, or one that was not found, may be a family of counters. */
export function mayBeFamily(metric: string, choice: MetricChoice | null): boolean {
  if (choice === null) return true
  return isBucketName(metric) && choice.kind === 'sum' && quantileOf(choice.aggregation) !== undefined
}

/** Returns the name of the family; the name of its buckets is accepted too. */
function familyOf(metric: string): string {
  return isBucketName(metric) ? metric.slice(0, -bucketSuffix.length) : metric
}

/** Returns the names of the counters from which an aggregation is computed. */
export function familyCounters(metric: string, aggregation: Aggregation): readonly string[] {
  const family = familyOf(metric)
  if (quantileOf(aggregation) !== undefined) return [`${family}${bucketSuffix}`]
  if (aggregation === 'sum') return [`${family}${sumSuffix}`]
  if (aggregation === 'avg') return [`${family}${sumSuffix}`, `${family}${countSuffix}`]
  return [`${family}${countSuffix}`]
}

/** Whether an aggregation relates counters of a family to each other, by their part in {@link PartRow}. */
export function isOfParts(aggregation: Aggregation): boolean {
  return aggregation === 'avg' || quantileOf(aggregation) !== undefined
}

/**
 * The increase of one part in a step. A part is a bucket, identified by the text of its bound, or a name of
 * the family.
 */
export type PartGain = readonly [part: string, gained: number]

/** The result of the parts of a family in one step; null where it is not a number. */
interface Settled {
  readonly reading: number
  /** Number of observations. */
  readonly amount: number
}

/**
 * Increases of the same part are added up.
 *
 * @param bounds the bounds of parts that were read before, to which others are added: a label may be long,
 *   and the same ones occur at every step
 */
export function settle(
  aggregation: Aggregation,
  gains: readonly PartGain[],
  bounds: Map<string, number> = new Map(),
): Settled | null {
  const quantile = quantileOf(aggregation)
  return quantile === undefined ? meanOf(gains) : quantileOfBuckets(quantile, gains, bounds)
}

function meanOf(gains: readonly PartGain[]): Settled | null {
  let [total, count] = [0, 0]
  for (const [part, gained] of gains) {
    if (part.endsWith(sumSuffix)) total += gained
    else count += gained
  }
  return count > 0 ? { reading: total / count, amount: count } : null
}

interface Bucket {
  readonly bound: number
  readonly count: number
}

/**
 * As PromQL: buckets count what is at or below their bound. A bucket with a smaller count than a lower one is
 * given the count of the lower one. Without the bucket that is open above, or without a second one, there is
 * no quantile. Observations are distributed evenly within a bucket. The lowest bucket begins at zero unless
 * its bound is not above zero. A quantile in the bucket that is open above is the lower edge of that bucket.
 */
function quantileOfBuckets(
  quantile: number,
  gains: readonly PartGain[],
  bounds: Map<string, number>,
): Settled | null {
  const buckets = cumulative(gains, bounds)
  const top = buckets.at(-1)
  if (top?.bound !== Number.POSITIVE_INFINITY || buckets.length < 2 || !(top.count > 0)) return null
  const rank = quantile * top.count
  const index = buckets.findIndex(({ count }, i) => count >= rank || i === buckets.length - 1)
  const [below, own] = [buckets[index - 1], buckets[index]]
  if (own === undefined) return null
  const answer = (reading: number): Settled => ({ reading, amount: top.count })
  if (own === top) return answer(below?.bound ?? Number.NaN)
  if (below === undefined) return answer(own.bound <= 0 ? own.bound : own.bound * (rank / own.count))
  return answer(below.bound + ((own.bound - below.bound) * (rank - below.count)) / (own.count - below.count))
}

function cumulative(gains: readonly PartGain[], bounds: Map<string, number>): Bucket[] {
  const counts = new Map<number, number>()
  for (const [part, gained] of gains) {
    const bound = bounds.get(part) ?? boundOf(part)
    bounds.set(part, bound)
    if (!Number.isNaN(bound)) counts.set(bound, (counts.get(bound) ?? 0) + gained)
  }
  let most = Number.NEGATIVE_INFINITY
  return Array.from(Float64Array.from(counts.keys()).sort(), (bound): Bucket => {
    most = Math.max(most, counts.get(bound) ?? 0)
    return { bound, count: most }
  })
}

/**
 * Each label matches in one way only: a pattern that could divide the digits differently would try every
 * division.
 */
const finite = '[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?'
const infinite = '[Ii][Nn][Ff]([Ii][Nn][Ii][Tt][Yy])?'

/**
 * Patterns of a label that names a finite bound, and of the bucket that is open above; the engine reads them
 * alike.
 */
export const anyBound = `^(${finite}|[+-]?${infinite})$`
export const openBound = `^[+]?${infinite}$`

const [finitePattern, anyPattern] = [new RegExp(`^${finite}$`), new RegExp(anyBound)]

/** Returns the bound that a label names in any spelling; NaN where it names none. */
export function boundOf(label: string): number {
  if (finitePattern.test(label)) return Number(label)
  if (!anyPattern.test(label)) return Number.NaN
  return label.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** A row of a single series that is computed from parts; 64-bit integers are text. */
interface PartStep {
  readonly step: number
  readonly parts: readonly string[]
  readonly gains: readonly (number | null)[]
}

/** The same for one of several groups, with a list for each step. */
interface PartGroup {
  readonly grp: PackedGroup['grp']
  readonly steps: readonly number[]
  readonly parts: readonly (readonly string[])[]
  readonly gains: readonly (readonly (number | null)[])[]
  readonly groups: number
}

export type PartRow = PartStep | PartGroup

/**
 * Returns the groups of a statement that returns one row for each part, in its order. Other work runs between
 * the steps: one may have tens of thousands of buckets.
 */
export async function settleRows(
  frame: SeriesFrame,
  rows: readonly PartRow[],
  aggregation: Aggregation,
): Promise<PackedGroup[]> {
  const groups = frame.groupBy === undefined ? [onlyGroup(rows)] : rows.filter((row) => 'steps' in row)
  const bounds = new Map<string, number>()
  const pace = new Pace()
  const settled: PackedGroup[] = []
  for (const { gains, grp, groups: count, parts, steps: ofRow } of groups) {
    const [steps, readings, amounts]: [number[], number[], number[]] = [[], [], []]
    for (const [i, step] of ofRow.entries()) {
      if (pace.isOver()) await pace.turn()
      const gained = (parts[i] ?? []).map((part, n): PartGain => [part, gains[i]?.[n] ?? Number.NaN])
      const own = settle(aggregation, gained, bounds)
      if (own === null) continue
      steps.push(step)
      readings.push(own.reading)
      amounts.push(own.amount)
    }
    settled.push({ grp, steps, readings, amounts, groups: count, counting: 0 })
  }
  return settled
}

function onlyGroup(rows: readonly PartRow[]): PartGroup {
  const own = rows.filter((row) => 'step' in row)
  return {
    grp: '',
    steps: own.map(({ step }) => step),
    parts: own.map(({ parts }) => parts),
    gains: own.map(({ gains }) => gains),
    groups: 1,
  }
}
