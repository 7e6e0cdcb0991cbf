// Reading telemetry back, on the wire. Instants inside telemetry keep their nanoseconds; every list is paged
// and every time range is half-open.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery, pageOf, queryInt, refuse } from './common.ts'
import { MomentInput, momentForms } from './instant.ts'
import { labelMap } from './label-map.ts'
import { oldNameOf, oldRangeNames, withOldNames } from './old-names.ts'

const Attributes = labelMap()

/** Characters; the longest metric name and attribute key that are taken in. */
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

/** Keys by which a series is split at most: each multiplies the groups. */
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
    '`increase` is what counters, or the counts of histograms, added in a step; `rate` is that over the seconds of the step. Resets and start times are minded, and only the ends of a series are extrapolated, by half an interval at most: docs/decisions/0025. Quantiles of a classic Prometheus histogram are those of `histogram_quantile` over the increase of each bucket, by the name of the histogram or of its buckets.',
  )
  .meta({ id: 'Aggregation' })
export type Aggregation = z.infer<typeof Aggregation>

const acrossSeries = ['avg', 'sum', 'min', 'max'] as const

/** What an attribute filter or a group can name; said where one is asked for. */
const pathNames =
  'A name of up to five parts with dots between also leads into nested values of logs and spans: `http.request.method` finds `method` in the map `request` in the map `http`.'
const attributeNames = `${pathNames} Metric points also have \`job\`, \`instance\`, \`otel_scope_name\` and \`otel_scope_version\`.`

const SeriesQueryFields = z.strictObject({
  metric_key: z
    .string()
    .min(1)
    .max(longestName)
    .describe(
      'A metric name, of a classic Prometheus histogram with or without `_bucket`, or a built-in key such as `spans.error_ratio`.',
    ),
  ...rangeQuery,
  step_seconds: queryInt({ min: 1, max: 86_400, fallback: 60, describe: 'Seconds per point.' }),
  aggregation: Aggregation.optional().describe(
    'What is computed per step, chosen by the kind of metric where absent. `avg`, `min`, `max`, `count` and quantiles are over all points of the step, of whatever underlying series (for histograms over what was observed); `sum` adds up what each series added (counters, histograms) or its mean (gauges); `rate` and `increase` add up those of each series; `last` takes the latest value of each series and then what `across` says.',
  ),
  across: z
    .enum(acrossSeries)
    .optional()
    .describe(
      'With `aggregation=last`: how the latest values of several underlying series become one. `avg` where absent.',
    ),
  service: z.string().max(longestName).optional(),
  attribute: attributeFilter.describe(
    `Filter \`key=value\`; repeat for more. A list matches by any of its items. ${attributeNames}`,
  ),
  group_by: groupKeys.describe(
    `\`service\` or an attribute key: a series per value, the 50 busiest at most; repeat for a series per combination, of ${groupKeysMax} keys at most.`,
  ),
})
export const SeriesQuery = withOldNames(SeriesQueryFields, { metric: 'metric_key', ...oldRangeNames })

const Series = z
  .object({
    group: z
      .string()
      .nullable()
      .describe('The value of group_by, of several keys with `, ` between; null where it was not asked for.'),
    labels: Attributes.describe('The value of each key of group_by; empty where a row has none.'),
    points: z.array(
      z.object({
        time: Instant.describe('Start of the step; of the first one where the range begins.'),
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
        'How several underlying series became one: by a value of each of them, or `pooled` where all their points, buckets or events of a step were taken together.',
      ),
    step_seconds: z
      .int()
      .describe(
        'Steps begin at multiples of it since 1970; the first and the last hold only what lies in the range.',
      ),
    range_start: Instant.describe(
      'Where the range begins, as asked; at a whole step where `range_start` was absent.',
    ),
    range_end: Instant.describe('Where the range ends, as asked.'),
    series: z.array(Series),
    truncated: z.boolean().describe('True where more groups exist than are shown.'),
    warnings: z
      .array(z.string())
      .describe(
        'What the question names and no row in the range has: the metric, the service, an attribute.',
      ),
    metric: z.string().meta(oldNameOf('metric_key')),
    start: Instant.meta(oldNameOf('range_start')),
    end: Instant.meta(oldNameOf('range_end')),
  })
  .meta({ id: 'SeriesAnswer' })

/** What the pages of a search say besides their items. */
const searchWarnings = z
  .array(z.string())
  .describe('What the page had to leave out, and why it ended where it did, in sentences for a person.')

/** A page of what may be much to search: it may be empty and still have a cursor. */
function searchPageOf<T extends z.ZodType>(item: T) {
  return pageOf(item).extend({
    next_cursor: z
      .string()
      .nullable()
      .describe(
        'Pass as `cursor` to go on, also after an empty page: a page ends at 4 MiB of JSON, and where much is searched also before it is full. Null on the last page.',
      ),
    searched: z
      .object({ range_start: Instant, range_end: Instant })
      .describe(
        'The part of the range that this page and those before it have searched: all of it on the last page.',
      ),
    warnings: searchWarnings,
  })
}

const LogQueryFields = z.strictObject({
  ...rangeQuery,
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
    `Filter \`key=value\` over log and resource attributes; repeat for more. A list matches by any of its items. ${pathNames}`,
  ),
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

const SpanQueryFields = z.strictObject({
  ...rangeQuery,
  limit: limitQuery,
  cursor: cursorQuery,
  service: z.string().max(longestName).optional(),
  name: z.string().max(longestName).optional(),
  status: z.enum(['unset', 'ok', 'error']).optional(),
  min_duration_ms: queryInt({ min: 0, max: 86_400_000, fallback: 0, describe: 'At least this long.' }),
  attribute: attributeFilter.describe(
    `Filter \`key=value\` over span and resource attributes; repeat for more. A list matches by any of its items. ${pathNames}`,
  ),
})
export const SpanQuery = withOldNames(SpanQueryFields, oldRangeNames)

export const Span = z
  .object({
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
  .meta({ id: 'Span' })

export const SpanPage = searchPageOf(Span).meta({ id: 'SpanPage' })

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
    truncated: z.boolean().describe('Whether there are more spans than these: those behind `next_cursor`.'),
    next_cursor: z.string().nullable().describe('Pass as `cursor` to go on; null on the last page.'),
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
        'The range whose names are listed: a newer part of what was asked for where that has too many.',
      ),
    warnings: z.array(z.string()).describe('Says so where not the whole range is listed.'),
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
    services: z.array(z.string()),
    last_seen: Instant,
    metric: z.string().meta(oldNameOf('metric_key')),
  })
  .meta({ id: 'MetricEntry' })

export const MetricPage = cataloguePageOf(MetricEntry).meta({ id: 'MetricPage' })
