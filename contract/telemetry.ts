// Reading telemetry back, on the wire. Instants inside telemetry keep their nanoseconds; every list is paged
// and every time range is half-open.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery, queryInt, refuse } from './common.ts'
import { MomentInput, momentForms } from './instant.ts'
import { oldNameOf, oldRangeNames, withOldNames } from './old-names.ts'

const Attributes = z.record(z.string(), z.string())

/** Characters; the longest metric name and attribute key that are taken in. */
const longestName = 1_024

/** `key=value` pairs, each parameter one pair; repeat the parameter for more. */
const attributeFilter = z
  .union([z.string(), z.array(z.string()).max(20)])
  .optional()
  .transform((given, context) => {
    const pairs: [string, string][] = []
    for (const text of given === undefined ? [] : [given].flat()) {
      const at = text.indexOf('=')
      if (at < 1) return refuse(context, 'value_error', 'Write each filter as key=value', {})
      pairs.push([text.slice(0, at), text.slice(at + 1)])
    }
    return pairs
  })

const range = {
  range_start: MomentInput.optional().describe(
    `Inclusive; an hour before \`range_end\` where absent. ${momentForms}`,
  ),
  range_end: MomentInput.optional().describe(`Exclusive; now where absent. ${momentForms}`),
}

export const aggregations = [
  'avg',
  'sum',
  'min',
  'max',
  'count',
  'last',
  'rate',
  'p50',
  'p90',
  'p95',
  'p99',
] as const
export const Aggregation = z.enum(aggregations)
export type Aggregation = z.infer<typeof Aggregation>

const SeriesQueryFields = z.strictObject({
  metric_key: z
    .string()
    .min(1)
    .max(longestName)
    .describe('A metric name or a built-in key such as `spans.error_ratio`.'),
  ...range,
  step_seconds: queryInt({ min: 1, max: 86_400, fallback: 60, describe: 'Seconds per point.' }),
  aggregation: Aggregation.optional().describe('Chosen by the kind of metric where absent.'),
  service: z.string().max(longestName).optional(),
  attribute: attributeFilter.describe('Filter `key=value`; repeat for more.'),
  group_by: z
    .string()
    .max(longestName)
    .optional()
    .describe('`service` or an attribute key: a series per value, the 50 busiest at most.'),
})
export const SeriesQuery = withOldNames(SeriesQueryFields, { metric: 'metric_key', ...oldRangeNames })

export const Series = z.object({
  group: z.string().nullable().describe('The value of group_by; null where it was not asked for.'),
  points: z.array(
    z.object({
      time: Instant.describe('Start of the step.'),
      value: z.number().nullable().describe('Null where there is no data.'),
      erased: z.boolean().optional().describe('True where the step touches erased time: unknown, not zero.'),
    }),
  ),
})

export const SeriesAnswer = z.object({
  metric_key: z.string(),
  unit: z.string(),
  aggregation: Aggregation,
  step_seconds: z.int(),
  range_start: Instant,
  range_end: Instant,
  series: z.array(Series),
  truncated: z.boolean().describe('True where more groups exist than are shown.'),
  metric: z.string().meta(oldNameOf('metric_key')),
  start: Instant.meta(oldNameOf('range_start')),
  end: Instant.meta(oldNameOf('range_end')),
})

const LogQueryFields = z.strictObject({
  ...range,
  limit: limitQuery,
  cursor: cursorQuery,
  service: z.string().max(longestName).optional(),
  severity: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .optional()
    .describe('This severity or worse.'),
  text: z.string().min(1).max(500).optional().describe('Found in the body, in any case.'),
  trace_id: z.string().max(64).optional(),
  attribute: attributeFilter.describe(
    'Filter `key=value` over log and resource attributes; repeat for more.',
  ),
})
export const LogQuery = withOldNames(LogQueryFields, oldRangeNames)

export const LogRecord = z.object({
  time: Instant,
  service: z.string(),
  severity: z.string(),
  severity_number: z.int(),
  body: z.string(),
  trace_id: z.string(),
  span_id: z.string(),
  event_name: z.string(),
  attributes: Attributes,
  resource_attributes: Attributes,
})

const SpanQueryFields = z.strictObject({
  ...range,
  limit: limitQuery,
  cursor: cursorQuery,
  service: z.string().max(longestName).optional(),
  name: z.string().max(longestName).optional(),
  status: z.enum(['unset', 'ok', 'error']).optional(),
  min_duration_ms: queryInt({ min: 0, max: 86_400_000, fallback: 0, describe: 'At least this long.' }),
  attribute: attributeFilter.describe(
    'Filter `key=value` over span and resource attributes; repeat for more.',
  ),
})
export const SpanQuery = withOldNames(SpanQueryFields, oldRangeNames)

export const Span = z.object({
  trace_id: z.string(),
  span_id: z.string(),
  parent_span_id: z.string(),
  time: Instant,
  duration_ns: z.string().describe('Nanoseconds as decimal text: they may pass what a JSON number holds.'),
  service: z.string(),
  name: z.string(),
  kind: z.string(),
  status: z.string(),
  status_message: z.string(),
  attributes: Attributes,
  resource_attributes: Attributes,
  events: z.array(z.object({ time: Instant, name: z.string(), attributes: Attributes })),
  links: z.array(z.object({ trace_id: z.string(), span_id: z.string(), attributes: Attributes })),
})

export const TraceParams = z.object({
  trace_id: z.string().regex(/^[0-9a-fA-F]{32}$/, { error: 'A trace id is 32 hex digits.' }),
})
export const Trace = z.object({
  trace_id: z.string(),
  spans: z.array(Span).describe('By start time; at most 10,000.'),
  truncated: z.boolean(),
})

export const CatalogueQuery = withOldNames(
  z.strictObject({ ...range, limit: limitQuery, cursor: cursorQuery }),
  oldRangeNames,
)

export const ServiceEntry = z.object({
  service: z.string(),
  signals: z.array(z.enum(['metrics', 'logs', 'traces'])),
  last_seen: Instant,
})

export const MetricEntry = z.object({
  metric_key: z.string(),
  kind: z.enum(['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary']),
  unit: z.string(),
  description: z.string(),
  services: z.array(z.string()),
  last_seen: Instant,
  metric: z.string().meta(oldNameOf('metric_key')),
})
