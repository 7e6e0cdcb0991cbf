// The built-in series, counted from spans, log records and stored rows. A span counts where work enters a
// service (SpanKind Server or Consumer), so that an incoming request is one event, however many inner spans
// it has. `spans.latency_*` are exact quantiles of the durations of spans, in milliseconds.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { type Signal, signals, type TableSpec, tablesOf } from '../telemetry/schema/tables.ts'
import { allOf, join, raw, type Sql, sql } from '../telemetry/sql.ts'
import { type From, rangeCondition } from '../telemetry/tenant-reader.ts'
import { firstRows } from './earlier-rows.ts'
import {
  attributeConditions,
  countedRange,
  groupingKey,
  groupingOf,
  packed,
  type SeriesFrame,
  subjectConditions,
} from './series-statement.ts'

export interface EventSeries {
  readonly key: string
  readonly signals: readonly Signal[]
  /** By aggregation; the first is the default and replaces any that is missing. */
  readonly aggregations: readonly Aggregation[]
  readonly unit: string
  /** Condition of rows that are events. */
  readonly of: Sql
  /** Condition of events that the series counts, besides the filter of the request. */
  readonly counted: Sql
  /** The value of a step over `matches` (0 or 1 for each row); `seconds` is the length of the step. */
  readonly reading: (matches: Sql, aggregation: Aggregation, seconds: number) => Sql
  /** Whether a step without events is zero. */
  readonly counting: boolean
}

const entrySpans = raw(`SpanKind IN ('Server', 'Consumer')`)
const every = raw('1')

const countOrRate = (matches: Sql, aggregation: Aggregation, seconds: number): Sql =>
  aggregation === 'rate'
    ? sql`countIf(${matches}) / ${raw(String(seconds))}`
    : sql`toFloat64(countIf(${matches}))`

const latency = (aggregation: 'p50' | 'p95' | 'p99'): EventSeries => ({
  key: `spans.latency_${aggregation}`,
  signals: ['traces'],
  aggregations: [aggregation],
  unit: 'ms',
  of: entrySpans,
  counted: every,
  reading: (matches) =>
    sql`quantileExactInclusiveIf(${raw(`0.${aggregation.slice(1)}`)})(Duration, ${matches}) / 1e6`,
  counting: false,
})

/** The built-in keys, in the order in which they are listed. */
export const eventSeries: readonly EventSeries[] = [
  {
    key: 'spans.rate',
    signals: ['traces'],
    aggregations: ['rate', 'count', 'increase'],
    unit: '{span}/s',
    of: entrySpans,
    counted: every,
    reading: countOrRate,
    counting: true,
  },
  {
    key: 'spans.error_ratio',
    signals: ['traces'],
    aggregations: ['avg'],
    unit: '1',
    of: entrySpans,
    counted: every,
    reading: (matches) => sql`countIf(${matches} AND StatusCode = 'Error') / countIf(${matches})`,
    counting: false,
  },
  latency('p50'),
  latency('p95'),
  latency('p99'),
  {
    key: 'logs.rate',
    signals: ['logs'],
    aggregations: ['rate', 'count', 'increase'],
    unit: '{record}/s',
    of: every,
    counted: every,
    reading: countOrRate,
    counting: true,
  },
  {
    key: 'logs.error_count',
    signals: ['logs'],
    aggregations: ['count', 'rate', 'increase'],
    unit: '{record}',
    of: every,
    counted: raw('SeverityNumber >= 17'),
    reading: countOrRate,
    counting: true,
  },
  {
    key: 'ingest.rate',
    signals,
    aggregations: ['rate', 'count', 'increase'],
    unit: '{row}/s',
    of: every,
    counted: every,
    reading: countOrRate,
    counting: true,
  },
]

/**
 * Returns one statement for a built-in series. The attributes of the request and the condition of the series
 * decide which rows are counted, but not which rows are read: a service that runs without errors has zero
 * errors, not no data.
 */
export function eventStatement(
  from: From,
  frame: SeriesFrame,
  series: EventSeries,
  aggregation: Aggregation,
): Sql {
  const found = tablesOf(series.signals)
  const rows =
    found.length === 1 && found[0] !== undefined
      ? stepsOf(from, frame, series, aggregation, found[0])
      : summed(
          frame,
          found.map((table) => stepsOf(from, frame, series, aggregation, table)),
        )
  return packed(frame, rows, raw(series.counting ? '1' : '0'))
}

function summed(frame: SeriesFrame, tables: readonly Sql[]): Sql {
  const key = groupingKey(frame)
  return sql`SELECT ${key}, sum(reading) AS reading, sum(amount) AS amount FROM (${join(tables, ' UNION ALL ')}) GROUP BY ${key}`
}

function stepsOf(
  from: From,
  frame: SeriesFrame,
  series: EventSeries,
  aggregation: Aggregation,
  table: TableSpec,
): Sql {
  const attributes = attributesColumn(table)
  const matches = allOf([series.counted, ...attributeConditions(frame, attributes)])
  const { columns, key } = groupingOf(frame, attributes, table.timeColumn)
  return from.select(table.name, {
    columns: sql`${columns}, ${series.reading(matches, aggregation, frame.stepSeconds)} AS reading, countIf(${matches}) AS amount`,
    conditions: [
      rangeCondition(table.timeColumn, countedRange(frame)),
      series.of,
      ...subjectConditions(frame),
    ],
    groupBy: key,
    isOrdered: true,
  })
}

/** One row for each table that has such rows before the start; each read stops at the first row. */
export function earlierStatement(from: From, frame: SeriesFrame, series: EventSeries): Sql {
  const conditions = [series.of, ...subjectConditions(frame)]
  return firstRows(from, series.signals, { endNs: countedRange(frame).startNs, conditions })
}

/** How many rows a read of the series takes. One row `{ n }`. */
export function eventCountStatement(from: From, frame: SeriesFrame, series: EventSeries): Sql {
  const counts = tablesOf(series.signals).map(({ name, timeColumn }) => {
    const ofService = frame.service === undefined ? every : sql`ServiceName = ${frame.service}`
    const source = from(name, rangeCondition(timeColumn, frame), series.of, ofService)
    return sql`(SELECT count() FROM ${source})`
  })
  return sql`SELECT toUInt32(${join(counts, ' + ')}) AS n`
}

/** The column of a table's own pairs; all tables of a signal have the same. */
export function attributesColumn({ signal }: Pick<TableSpec, 'signal'>): string {
  if (signal === 'logs') return 'LogAttributesPairs'
  return signal === 'traces' ? 'SpanAttributesPairs' : 'AttributesPairs'
}

/**
 * Whether a series counts some of the events of its subject, such as logs that are errors. Its usual value is
 * zero at any width of step, so wider steps add no information.
 */
export function countsSomeEvents(key: string): boolean {
  const series = eventSeriesOf(key)
  return series?.counting === true && series.counted !== every
}

/** Returns the signals from which a metric key is derived; erasing any of them makes its values unknown. */
export function signalsOf(metricKey: string): readonly Signal[] {
  return eventSeriesOf(metricKey)?.signals ?? ['metrics']
}

/** Returns the built-in series of a key; undefined where the key is not built in. */
export function eventSeriesOf(key: string): EventSeries | undefined {
  return eventSeries.find((series) => series.key === key)
}
