// Conditions that select the points of a metric, and of an underlying series: one service, resource, scope
// and attribute set, which each row identifies by its SeriesId. Statements of the engine and reads of single
// points both use them, so that they agree.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { hasKey } from '../telemetry/attribute.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import { type From, rangeCondition } from '../telemetry/tenant-reader.ts'
import { bucketLabel, bucketSuffix, familyCounters } from './classic-histogram.ts'
import { type MetricKind, metricKinds, quantileOf, tableOf } from './metric-kind.ts'
import { attributeConditions, groupOf, type SeriesFrame, subjectConditions } from './series-statement.ts'

/**
 * How far outside the series a counter may find the points that complete its first and last step. Prometheus
 * looks back as far.
 */
export const reachNs = 300_000_000_000n

/** The time of a series, extended by the points that complete its first and last step. */
export function around({ startNs, endNs }: SeriesFrame): Pick<SeriesFrame, 'startNs' | 'endNs'> {
  return { startNs: startNs > reachNs ? startNs - reachNs : 0n, endNs: endNs + reachNs }
}

/** What is read: a metric of one kind, for an aggregation. */
export interface MetricRequest {
  readonly metric: string
  readonly kind: MetricKind
  readonly aggregation: Aggregation
}

/** Recorded points of a metric, or of the members of a frame, within a range. */
export function pointConditions(
  frame: SeriesFrame,
  what: MetricRequest,
  range: Pick<SeriesFrame, 'startNs' | 'endNs'>,
): Sql[] {
  return [
    ...(frame.members === undefined ? [nameCondition(what)] : []),
    ...subjectConditions(frame),
    rangeCondition('TimeUnix', range),
    raw('bitAnd(Flags, 1) = 0'),
    ...attributeConditions(frame, 'AttributesPairs'),
    ...(isOfBuckets(what) ? [hasKey('AttributesPairs', bucketLabel)] : []),
  ]
}

function nameCondition({ aggregation, kind, metric }: MetricRequest): Sql {
  if (kind !== 'classic_histogram') return sql`MetricName = ${metric}`
  const names = familyCounters(metric, aggregation).map((name) => sql`${name}`)
  return sql`MetricName IN (${join(names, ', ')})`
}

function isOfBuckets({ aggregation, kind }: MetricRequest): boolean {
  return kind === 'classic_histogram' && quantileOf(aggregation) !== undefined
}

/** Over the counters of a bucket: the name of their classic histogram. */
export const familyColumn = raw(`substring(MetricName, 1, length(MetricName) - ${bucketSuffix.length})`)

/** Condition of bucket counters of any classic histogram. */
export function familyCondition(): Sql {
  return sql`(endsWith(MetricName, ${bucketSuffix}) AND ${hasKey('AttributesPairs', bucketLabel)})`
}

/** One row where a metric is a classic histogram: some counter of the family has a bucket label. */
export function familyStatement(from: From, frame: SeriesFrame, metric: string): Sql {
  const what: MetricRequest = { metric, kind: 'classic_histogram', aggregation: 'p50' }
  const conditions = pointConditions(frame, what, around(frame))
  return from.select(tableOf.classic_histogram, { columns: raw('1 AS found'), conditions, limit: 1 })
}

/**
 * One row of `MetricFacts` for each kind, and member, that has points of this name in the range; in no order.
 */
export function factsStatement(
  from: From,
  frame: SeriesFrame,
  metric: string,
  kinds: readonly MetricKind[] = metricKinds,
  aggregation: Aggregation = 'avg',
): Sql {
  const branches = kinds.map((kind) => {
    const flows = kind === 'sum' ? 'toUInt8(IsMonotonic OR AggregationTemporality = 1)' : 'toUInt8(0)'
    const conditions = pointConditions(frame, { metric, kind, aggregation }, around(frame))
    const own = raw(`'${kind}' AS kind`)
    if (frame.members === undefined) {
      const columns = sql`${own}, toString(MetricUnit) AS unit, ${raw(flows)} AS flows, '' AS grp`
      return sql`(${from.select(tableOf[kind], { columns, conditions, limit: 1, isOrdered: true })})`
    }
    const columns = sql`${own}, toString(any(MetricUnit)) AS unit, any(${raw(flows)}) AS flows, ${groupOf(frame, 'AttributesPairs')} AS grp`
    return sql`(${from.select(tableOf[kind], { columns, conditions, groupBy: raw('grp'), isOrdered: true })})`
  })
  return join(branches, ' UNION ALL ')
}

/**
 * How many points of a metric are in a range and a little around it: the cost of reading it. One row `{ n }`.
 */
export function countStatement(from: From, frame: SeriesFrame, what: MetricRequest): Sql {
  const conditions = pointConditions(frame, what, around(frame))
  return from.select(tableOf[what.kind], { columns: raw('toUInt32(count()) AS n'), conditions })
}
