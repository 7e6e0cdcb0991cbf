// The seven telemetry tables, each declared once: the table text, the row encoder, the eraser and the
// verifier are all derived from this list, so a table that is missing here can't exist, and an erasure can't
// miss a table that is added here. Names, order and types follow the OpenTelemetry Collector's ClickHouse
// exporter; `Placement` and `TenantId` come first in every table, and the engine port writes them, never a
// decoder. Codecs and sort keys differ from the exporter's where docs/decisions/0006 measured better ones;
// attributes are stored as texts of pairs (docs/decisions/0018). Existing ClickHouse dashboards read views of
// these tables, which have the exporter's maps (exporter-views.ts).

import type { MapColumn } from './attribute-pairs.ts'
import { seriesIdExpression } from './series-id.ts'

/** The kinds of telemetry that an organisation can erase or hold separately. */
export type Signal = 'metrics' | 'logs' | 'traces'

export const signals = ['metrics', 'logs', 'traces'] as const satisfies readonly Signal[]

export type TableName =
  | 'otel_metrics_gauge'
  | 'otel_metrics_sum'
  | 'otel_metrics_histogram'
  | 'otel_metrics_exponential_histogram'
  | 'otel_metrics_summary'
  | 'otel_logs'
  | 'otel_traces'

export interface ColumnSpec {
  readonly name: string
  readonly type: string
  /** Column codec; the engine's default where absent. */
  readonly codec?: string
  /**
   * Expression by which the engine fills rows that came without a value. Tables that are older than the
   * column get it at the next start.
   */
  readonly fallback?: string
  /** For attributes: the exporter's column that the view of the table computes from this one. */
  readonly map?: MapColumn
}

export interface TableSpec {
  readonly name: TableName
  readonly signal: Signal
  /**
   * The event time by which a range deletion selects: `Timestamp` or `TimeUnix`, always DateTime64(9, 'UTC').
   */
  readonly timeColumn: 'Timestamp' | 'TimeUnix'
  /** Sort key after `TenantId`. */
  readonly orderBy: readonly string[]
  /** Columns after `Placement` and `TenantId`, in insert order. */
  readonly columns: readonly ColumnSpec[]
  /** Data-skipping indexes, as in the text of the table. */
  readonly indexes: readonly string[]
  /**
   * Rows in a granule, 8,192 where absent. It can't be changed for an existing table: tables of earlier
   * builds keep theirs, and return the same results.
   */
  readonly granuleRows?: number
}

/** The first columns of every table. */
export const placeColumns: readonly ColumnSpec[] = [
  { name: 'Placement', type: 'UInt16' },
  { name: 'TenantId', type: 'LowCardinality(String)' },
]

const instant = (name: string): ColumnSpec => ({
  name,
  type: "DateTime64(9, 'UTC')",
  codec: 'Delta(8), ZSTD(1)',
})
const word = (name: string): ColumnSpec => ({ name, type: 'LowCardinality(String)' })
const text = (name: string): ColumnSpec => ({ name, type: 'String', codec: 'ZSTD(1)' })

/** Attributes that many rows share, or by which series differ. */
const sharedAttributes = (name: string): ColumnSpec => ({
  ...word(`${name}Pairs`),
  map: { name, isList: false },
})
/** Attributes of a single record, which may be an id. */
const ownAttributes = (name: string): ColumnSpec => ({
  ...text(`${name}Pairs`),
  map: { name, isList: false },
})
const attributeList = (name: string): ColumnSpec => ({
  ...column(`${name}Pairs`, 'Array(String)'),
  map: { name, isList: true },
})
const column = (name: string, type: string): ColumnSpec => ({ name, type, codec: 'ZSTD(1)' })

const metricHead: readonly ColumnSpec[] = [
  sharedAttributes('ResourceAttributes'),
  word('ResourceSchemaUrl'),
  word('ScopeName'),
  word('ScopeVersion'),
  sharedAttributes('ScopeAttributes'),
  column('ScopeDroppedAttrCount', 'UInt32'),
  word('ScopeSchemaUrl'),
  word('ServiceName'),
  word('MetricName'),
  word('MetricDescription'),
  word('MetricUnit'),
  sharedAttributes('Attributes'),
  instant('StartTimeUnix'),
  instant('TimeUnix'),
]

const exemplars: readonly ColumnSpec[] = [
  attributeList('Exemplars.FilteredAttributes'),
  column('Exemplars.TimeUnix', "Array(DateTime64(9, 'UTC'))"),
  column('Exemplars.Value', 'Array(Float64)'),
  column('Exemplars.SpanId', 'Array(String)'),
  column('Exemplars.TraceId', 'Array(String)'),
]

/** docs/decisions/0015. After the exporter's columns, so that what reads those still works. */
const seriesId: ColumnSpec = { ...column('SeriesId', 'UInt64'), fallback: seriesIdExpression }

const metricTable = (name: TableName, own: readonly ColumnSpec[]): TableSpec => ({
  name,
  signal: 'metrics',
  timeColumn: 'TimeUnix',
  orderBy: ['MetricName', 'ServiceName', 'TimeUnix'],
  columns: [...metricHead, ...own, seriesId],
  indexes: [],
})

/**
 * Reading a window needs a few hundred rows of each series with their lists, which are long
 * (docs/decisions/0019).
 */
const distributionTable = (name: TableName, own: readonly ColumnSpec[]): TableSpec => ({
  ...metricTable(name, own),
  granuleRows: 1024,
})

export const tables: readonly TableSpec[] = [
  metricTable('otel_metrics_gauge', [column('Value', 'Float64'), column('Flags', 'UInt32'), ...exemplars]),
  metricTable('otel_metrics_sum', [
    column('Value', 'Float64'),
    column('Flags', 'UInt32'),
    ...exemplars,
    column('AggregationTemporality', 'Int32'),
    column('IsMonotonic', 'Bool'),
  ]),
  distributionTable('otel_metrics_histogram', [
    column('Count', 'UInt64'),
    column('Sum', 'Float64'),
    column('BucketCounts', 'Array(UInt64)'),
    column('ExplicitBounds', 'Array(Float64)'),
    ...exemplars,
    column('Flags', 'UInt32'),
    column('Min', 'Nullable(Float64)'),
    column('Max', 'Nullable(Float64)'),
    column('AggregationTemporality', 'Int32'),
  ]),
  distributionTable('otel_metrics_exponential_histogram', [
    column('Count', 'UInt64'),
    column('Sum', 'Float64'),
    column('Scale', 'Int32'),
    column('ZeroCount', 'UInt64'),
    column('PositiveOffset', 'Int32'),
    column('PositiveBucketCounts', 'Array(UInt64)'),
    column('NegativeOffset', 'Int32'),
    column('NegativeBucketCounts', 'Array(UInt64)'),
    ...exemplars,
    column('Flags', 'UInt32'),
    column('Min', 'Nullable(Float64)'),
    column('Max', 'Nullable(Float64)'),
    column('AggregationTemporality', 'Int32'),
  ]),
  metricTable('otel_metrics_summary', [
    column('Count', 'UInt64'),
    column('Sum', 'Float64'),
    column('ValueAtQuantiles.Quantile', 'Array(Float64)'),
    column('ValueAtQuantiles.Value', 'Array(Float64)'),
    column('Flags', 'UInt32'),
  ]),
  {
    name: 'otel_logs',
    signal: 'logs',
    timeColumn: 'Timestamp',
    orderBy: ['ServiceName', 'Timestamp'],
    columns: [
      instant('Timestamp'),
      text('TraceId'),
      text('SpanId'),
      column('TraceFlags', 'UInt8'),
      word('SeverityText'),
      column('SeverityNumber', 'UInt8'),
      word('ServiceName'),
      text('Body'),
      word('ResourceSchemaUrl'),
      sharedAttributes('ResourceAttributes'),
      word('ScopeSchemaUrl'),
      word('ScopeName'),
      word('ScopeVersion'),
      sharedAttributes('ScopeAttributes'),
      ownAttributes('LogAttributes'),
      word('EventName'),
    ],
    indexes: ['INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1'],
  },
  {
    name: 'otel_traces',
    signal: 'traces',
    timeColumn: 'Timestamp',
    // By time only, so that the spans of one trace are stored together.
    orderBy: ['Timestamp'],
    columns: [
      instant('Timestamp'),
      text('TraceId'),
      text('SpanId'),
      text('ParentSpanId'),
      text('TraceState'),
      word('SpanName'),
      word('SpanKind'),
      word('ServiceName'),
      sharedAttributes('ResourceAttributes'),
      word('ScopeName'),
      word('ScopeVersion'),
      ownAttributes('SpanAttributes'),
      column('Duration', 'UInt64'),
      word('StatusCode'),
      text('StatusMessage'),
      column('Events.Timestamp', "Array(DateTime64(9, 'UTC'))"),
      column('Events.Name', 'Array(LowCardinality(String))'),
      attributeList('Events.Attributes'),
      column('Links.TraceId', 'Array(String)'),
      column('Links.SpanId', 'Array(String)'),
      column('Links.TraceState', 'Array(String)'),
      attributeList('Links.Attributes'),
    ],
    indexes: ['INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1'],
  },
]

/** Returns the tables of a signal, in the order of {@link tables}. */
export function tablesOf(selected: readonly Signal[]): readonly TableSpec[] {
  return tables.filter((table) => selected.includes(table.signal))
}

/** The table of the ids of completed erasures (deletion/attempt/completion-marks.ts); it has no telemetry. */
export const completionTable = 'erasures_done'
