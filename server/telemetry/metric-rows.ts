// Which rows of the tables are points of a metric, and of which underlying series: one service, resource, scope and
// attribute set, which each row says by its SeriesId. What reads metrics, by the engine or point by point, takes its rows
// from here, so that both agree.

import { type MetricKind, metricKinds, tableOf } from './metric-kind.ts'
import { attributeConditions, groupOf, type SeriesFrame, subjectConditions } from './series-statement.ts'
import { join, raw, type Sql, sql } from './sql.ts'
import { type From, rangeCondition } from './tenant-reader.ts'

/** How far outside the series a counter may find the points that complete its first and last step. Prometheus looks back as far. */
export const reachNs = 300_000_000_000n

/** The time of a series with what completes its first and last step. */
export function around({ startNs, endNs }: SeriesFrame): Pick<SeriesFrame, 'startNs' | 'endNs'> {
  return { startNs: startNs > reachNs ? startNs - reachNs : 0n, endNs: endNs + reachNs }
}

/** Recorded points of a metric, or of the members of a frame, within a range. */
export function pointConditions(
  frame: SeriesFrame,
  metric: string,
  range: Pick<SeriesFrame, 'startNs' | 'endNs'>,
): Sql[] {
  return [
    ...(frame.members === undefined ? [sql`MetricName = ${metric}`] : []),
    ...subjectConditions(frame),
    rangeCondition('TimeUnix', range),
    raw('bitAnd(Flags, 1) = 0'),
    ...attributeConditions(frame, 'AttributesPairs'),
  ]
}

/** One row of `MetricFacts` per kind, and member, that has points of this name in the range, in no order. */
export function factsStatement(
  from: From,
  frame: SeriesFrame,
  metric: string,
  kinds: readonly MetricKind[] = metricKinds,
): Sql {
  const branches = kinds.map((kind) => {
    const flows = kind === 'sum' ? 'toUInt8(IsMonotonic OR AggregationTemporality = 1)' : 'toUInt8(0)'
    const conditions = pointConditions(frame, metric, around(frame))
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

/** How many points of a metric lie in a range and a little around it: what reading it costs. One row `{ n }`. */
export function countStatement(from: From, frame: SeriesFrame, kind: MetricKind, metric: string): Sql {
  const conditions = pointConditions(frame, metric, around(frame))
  return from.select(tableOf[kind], { columns: raw('toUInt32(count()) AS n'), conditions })
}
