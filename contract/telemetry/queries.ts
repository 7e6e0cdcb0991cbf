// Reading telemetry, on the wire. Instants of telemetry are exact to the nanosecond; every list has pages,
// and every time range is half-open.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery, pageOf, queryInt, refuse } from '../values/fields.ts'
import { MomentInput, momentForms } from '../values/instant.ts'
import { labelMap } from '../values/label-map.ts'
import { oldNameOf, oldRangeNames, withOldNames } from '../values/old-names.ts'

const Attributes = labelMap()

/** Characters; ingest accepts metric names and attribute keys up to this length. */
export const longestName = 1_024

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

/** Maximum number of keys by which a series is split: each multiplies the groups. */
const groupKeysMax = 10

/** Repeat the parameter for more. */
const groupKeys = z
  .union([z.string().max(longestName), z.array(z.string().max(longestName)).max(groupKeysMax)])
  .optional()
  .transform((given) => (given === undefined ? undefined : [...new Set([given].flat())]))

export const rangeQuery = {
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
  'increase',
  'p50',
  'p90',
  'p95',
  'p99',
] as const
export const Aggregation = z
  .enum(aggregations)
  .describe(
    '`increase` is what a counter, or the count of a histogram, grew in a step; `rate` is that divided by the seconds of the step. Resets and start times are taken into account. Only the ends of a series are extrapolated, by half an interval at most (docs/decisions/0025). Quantiles of a classic Prometheus histogram are computed as by `histogram_quantile` over the increase of each bucket; name the histogram or its buckets.',
  )
  .meta({ id: 'Aggregation' })
export type Aggregation = z.infer<typeof Aggregation>

const acrossSeries = ['avg', 'sum', 'min', 'max'] as const

/** What an attribute filter or a group can name, for the descriptions of such parameters. */
const pathNames =
  'A name of up to five parts, separated by dots, also finds nested values of logs and spans: `http.request.method` finds `method` in the map `request` in the map `http`.'
const attributeNames = `${pathNames} Metric points also have \`job\`, \`instance\`, \`otel_scope_name\` and \`otel_scope_version\`.`

const SeriesQueryFields = z.strictObject({
  metric_key: z
    .string()
    .min(1)
    .max(longestName)
    .describe(
      'A metric name, or a built-in key such as `spans.error_ratio`. A classic Prometheus histogram may be named with or without `_bucket`.',
    ),
  ...rangeQuery,
  step_seconds: queryInt({ min: 1, max: 86_400, fallback: 60, describe: 'Seconds per point.' }),
  aggregation: Aggregation.optional().describe(
    'What is computed per step; where absent, the kind of metric decides. `avg`, `min`, `max`, `count` and quantiles are computed over all points of the step in all underlying series (for histograms over the observed values). `sum` adds up the increase of each series (counters, histograms) or its mean (gauges). `rate` and `increase` add up those of each series. `last` combines the latest value of each series as `across` says.',
  ),
  across: z
    .enum(acrossSeries)
    .optional()
    .describe(
      'With `aggregation=last`: how the latest values of several underlying series are combined. `avg` where absent.',
    ),
  service: z.string().max(longestName).optional(),
  attribute: attributeFilter.describe(
    `Filter \`key=value\`; repeat for more. A list matches if any of its items does. ${attributeNames}`,
  ),
  group_by: groupKeys.describe(
    `\`service\` or an attribute key: one series per value, at most the 50 busiest. Repeat for one series per combination of values, with at most ${groupKeysMax} keys.`,
  ),
})
export const SeriesQuery = withOldNames(SeriesQueryFields, { metric: 'metric_key', ...oldRangeNames })

const Series = z
  .object({
    group: z
      .string()
      .nullable()
      .describe('The value of group_by; several values are separated by `, `. Null without group_by.'),
    labels: Attributes.describe('The value of each key of group_by; empty where a row has none.'),
    points: z.array(
      z.object({
        time: Instant.describe('Start of the step; for the first one, the start of the range.'),
        seconds: z
          .number()
          .optional()
          .describe('Length of a first or last step that the range cuts; `step_seconds` where absent.'),
        value: z.number().nullable().describe('Null where there is no data.'),
        erased: z
          .boolean()
          .optional()
          .describe('True where the step touches erased time: unknown, not zero.'),
      }),
    ),
  })
  .meta({ id: 'Series' })

export const SeriesAnswer = z
  .object({
    metric_key: z.string(),
    unit: z.string(),
    aggregation: Aggregation,
    across: z
      .enum([...acrossSeries, 'pooled'])
      .describe(
        'How several underlying series were combined: by one value of each, or `pooled` where all their points, buckets or events of a step were used together.',
      ),
    step_seconds: z
      .int()
      .describe(
        'Steps begin at multiples of it since 1970; the first and the last step include only the part inside the range.',
      ),
    range_start: Instant.describe(
      'Start of the requested range; the start of a step where `range_start` was absent.',
    ),
    range_end: Instant.describe('End of the requested range.'),
    series: z.array(Series),
    truncated: z.boolean().describe('True where there are more groups than are returned.'),
    warnings: z
      .array(z.string())
      .describe('Names of the query that no row in the range has: the metric, the service, an attribute.'),
    metric: z.string().meta(oldNameOf('metric_key')),
    start: Instant.meta(oldNameOf('range_start')),
    end: Instant.meta(oldNameOf('range_end')),
  })
  .meta({ id: 'SeriesAnswer' })

/** Warnings of a page of search results. */
const searchWarnings = z
  .array(z.string())
  .describe('What the page leaves out and why it ended there, as sentences for people.')

/** A page of a search that may take long: it may be empty and still have a cursor. */
function searchPageOf<T extends z.ZodType>(item: T) {
  return pageOf(item).extend({
    next_cursor: z
      .string()
      .nullable()
      .describe(
        'Pass it as `cursor` to get the next page, also after an empty one: a page ends at 4 MiB of JSON, and a long search ends pages before they are full. Null on the last page.',
      ),
    searched: z
      .object({ range_start: Instant, range_end: Instant })
      .describe(
        'The part of the range that was searched by this page and the pages before it; on the last page, all of it.',
      ),
    warnings: searchWarnings,
  })
}

/** From least to worst. */
export const severities = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

const logFilters = {
  service: z.string().max(longestName).optional(),
  severity: z.enum(severities).optional().describe('This severity or worse.'),
  text: z.string().min(1).max(500).optional().describe('Text in the body, upper or lower case.'),
  trace_id: z.string().max(64).optional(),
  attribute: attributeFilter.describe(
    `Filter \`key=value\` over log and resource attributes; repeat for more. A list matches if any of its items does. ${pathNames}`,
  ),
}

const LogQueryFields = z.strictObject({
  ...rangeQuery,
  limit: limitQuery,
  cursor: cursorQuery,
  order: z
    .enum(['newest', 'oldest'])
    .optional()
    .describe(
      'Which records come first; `newest` where absent. The same on all pages. A live view reads `oldest` with the time of its last record as `range_start`, and leaves out what it has.',
    ),
  ...logFilters,
})
export const LogQuery = withOldNames(LogQueryFields, oldRangeNames)

export const LogRecord = z
  .object({
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
  .meta({ id: 'LogRecord' })

export const LogPage = searchPageOf(LogRecord).meta({ id: 'LogPage' })

/** More than a chart has columns. */
export const logCountStepsMax = 1_000

export const LogCountQuery = z.strictObject({
  ...rangeQuery,
  step_seconds: z
    .string()
    .regex(/^[1-9]\d{0,5}$/, { error: 'Write whole seconds, at most 999999' })
    .transform(Number)
    .optional()
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: 999_999,
      description: `Seconds per step; chosen for about 100 steps where absent. At most ${logCountStepsMax} steps.`,
    }),
  ...logFilters,
})

const SeverityCounts = z.object({
  unspecified: z.int().describe('Records without a severity.'),
  ...Object.fromEntries(severities.map((severity) => [severity, z.int()] as const)),
} as Record<'unspecified' | (typeof severities)[number], z.ZodInt>)

export const LogCounts = z
  .object({
    range_start: Instant,
    range_end: Instant,
    step_seconds: z
      .int()
      .describe('Steps begin at multiples of it since 1970; the first and the last may be cut.'),
    totals: SeverityCounts.describe('Records of the range.'),
    steps: z
      .array(
        z.object({
          time: Instant.describe('Start of the step; for the first one, the start of the range.'),
          counts: SeverityCounts,
          erased: z
            .boolean()
            .optional()
            .describe(
              'True where the step touches hidden or erased time: its counts are not the whole truth.',
            ),
        }),
      )
      .describe('Every step of the range, also those without records.'),
  })
  .describe('How many log records match, by severity and time.')
  .meta({ id: 'LogCounts' })

const SpanQueryFields = z.strictObject({
  ...rangeQuery,
  limit: limitQuery,
  cursor: cursorQuery,
  service: z.string().max(longestName).optional(),
  name: z.string().max(longestName).optional(),
  status: z.enum(['unset', 'ok', 'error']).optional(),
  min_duration_ms: queryInt({ min: 0, max: 86_400_000, fallback: 0, describe: 'At least this long.' }),
  attribute: attributeFilter.describe(
    `Filter \`key=value\` over span and resource attributes; repeat for more. A list matches if any of its items does. ${pathNames}`,
  ),
})
export const SpanQuery = withOldNames(SpanQueryFields, oldRangeNames)

export const Span = z
  .object({
    trace_id: z.string(),
    span_id: z.string(),
    parent_span_id: z.string(),
    time: Instant,
    duration_ns: z
      .string()
      .describe('Nanoseconds as decimal text: they may exceed the exact range of a JSON number.'),
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
  .meta({ id: 'Span' })

export const SpanPage = searchPageOf(Span).meta({ id: 'SpanPage' })

export const AttributeQuery = z.strictObject({
  ...rangeQuery,
  signal: z.enum(['metrics', 'logs', 'traces']),
  service: z.string().max(longestName).optional(),
  key: z
    .string()
    .min(1)
    .max(longestName)
    .optional()
    .describe('List the values of this attribute; where absent, the names of attributes.'),
  prefix: z.string().max(200).optional().describe('Only names or values that begin with this.'),
  limit: queryInt({ min: 1, max: 100, fallback: 20, describe: 'Names or values.' }),
})

export const AttributeNames = z
  .object({
    key: z.string().nullable().describe('The attribute whose values are listed; null for names.'),
    items: z
      .array(z.object({ text: z.string(), rows: z.int().describe('Read rows that have it.') }))
      .describe('The most frequent first. Texts of more than 200 characters are left out.'),
    rows_read: z
      .int()
      .describe('Rows that were read: the newest of the range, so rare names and values may be missing.'),
  })
  .describe(
    'Names or values of attributes, of records and of their resources, to suggest the rest of what a person types.',
  )
  .meta({ id: 'AttributeNames' })

export const TraceParams = z.object({
  trace_id: z.string().regex(/^[0-9a-fA-F]{32}$/, { error: 'A trace id is 32 hex digits.' }),
})
export const TraceQuery = z.strictObject({
  limit: queryInt({ min: 1, max: 10_000, fallback: 10_000, describe: 'Spans per page.' }),
  cursor: cursorQuery,
})
export const Trace = z
  .object({
    trace_id: z.string(),
    spans: z.array(Span).describe('By start time; at most 10,000, and at most 4 MiB of JSON.'),
    truncated: z.boolean().describe('Whether there are more spans; `next_cursor` leads to them.'),
    next_cursor: z
      .string()
      .nullable()
      .describe('Pass it as `cursor` to get the next page; null on the last page.'),
    warnings: searchWarnings,
  })
  .meta({ id: 'Trace' })

export const CatalogueQuery = withOldNames(
  z.strictObject({ ...rangeQuery, limit: limitQuery, cursor: cursorQuery }),
  oldRangeNames,
)

function cataloguePageOf<T extends z.ZodType>(item: T) {
  return pageOf(item).extend({
    searched: z
      .object({ range_start: Instant, range_end: Instant })
      .describe(
        'The range whose names are listed; where the requested range has too many, a newer part of it.',
      ),
    warnings: z.array(z.string()).describe('Has a warning where not the whole range is listed.'),
  })
}

export const ServiceEntry = z
  .object({
    service: z.string(),
    signals: z.array(z.enum(['metrics', 'logs', 'traces'])),
    last_seen: Instant,
  })
  .meta({ id: 'ServiceEntry' })

export const ServicePage = cataloguePageOf(ServiceEntry).meta({ id: 'ServicePage' })

export const MetricEntry = z
  .object({
    metric_key: z.string(),
    kind: z.enum(['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary']),
    unit: z.string(),
    description: z.string(),
    services: z
      .array(z.string())
      .describe('At most 100. A name of more than 1,024 characters is cut and ends with an ellipsis.'),
    last_seen: Instant,
    metric: z.string().meta(oldNameOf('metric_key')),
  })
  .meta({ id: 'MetricEntry' })

export const MetricPage = cataloguePageOf(MetricEntry).meta({ id: 'MetricPage' })
