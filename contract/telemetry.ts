// Reading telemetry back, on the wire. Instants inside telemetry keep their nanoseconds; every list is paged
// and every time range is half-open.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery, queryInt, refuse } from './common.ts'
import { InstantInput } from './instant.ts'

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
  start: InstantInput.optional().describe('Inclusive; an hour before `end` where absent.'),
  end: InstantInput.optional().describe('Exclusive; now where absent.'),
}

export const aggregations = [
  'avg',
  'sum',
  'min',
  'max',
  'count',
  'last',
  'rate',
  'increase',
  'p50',
  'p90',
  'p95',
  'p99',
] as const
export const Aggregation = z
  .enum(aggregations)
  .describe(
    '`increase` is what counters, or the counts of histograms, added in a step; `rate` is that over the seconds of the step. Resets and start times are minded, and only the ends of a series are extrapolated, by half an interval at most: docs/decisions/0025. Quantiles of a classic Prometheus histogram are those of `histogram_quantile` over the increase of each bucket, by the name of the histogram or of its buckets.',
  )
export type Aggregation = z.infer<typeof Aggregation>

export const SeriesQuery = z.strictObject({
  metric: z
    .string()
    .min(1)
    .max(longestName)
    .describe(
      'A metric name, of a classic Prometheus histogram with or without `_bucket`, or a built-in key such as `spans.error_ratio`.',
    ),
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
  metric: z.string(),
  unit: z.string(),
  aggregation: Aggregation,
  step_seconds: z.int(),
  start: Instant,
  end: Instant,
  series: z.array(Series),
  truncated: z.boolean().describe('True where more groups exist than are shown.'),
})

export const LogQuery = z.strictObject({
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

export const SpanQuery = z.strictObject({
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

export const CatalogueQuery = z.strictObject({
  ...range,
  limit: limitQuery,
  cursor: cursorQuery,
})

export const ServiceEntry = z.object({
  service: z.string(),
  signals: z.array(z.enum(['metrics', 'logs', 'traces'])),
  last_seen: Instant,
})

export const MetricEntry = z.object({
  metric: z.string(),
  kind: z.enum(['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary']),
  unit: z.string(),
  description: z.string(),
  services: z.array(z.string()),
  last_seen: Instant,
})
