// Anomaly detectors and their anomalies, on the wire. The thirteen fields of `Detector` from `id` to
// `created_at` were given with the requirements of the product; `last_note` adds a sentence to `last_status`,
// and `next_run_at` is the time beside `last_run_at`.
//
// The schemas of the two bodies leave `params` open, because its content depends on the method. The parameter
// schemas are in `methods.ts`, and the server reports problems of both in one response.

import { z } from 'zod'
import { Aggregation } from '../telemetry/queries.ts'
import { cursorQuery, Instant, limitQuery, refuse } from '../values/fields.ts'
import { MomentInput, momentForms } from '../values/instant.ts'
import { areShort, labelMap, storedLabels, tooManyBytes } from '../values/label-map.ts'
import { oldRangeNames, withOldNames } from '../values/old-names.ts'
import { Feedback } from './feedback.ts'
import { MethodKey } from './methods.ts'

/** 90 days. */
const windowMinutesMax = 129_600
/** A week. */
const scheduleMinutesMax = 10_080

export const detectorStatuses = [
  'learning',
  'ok',
  'anomalous',
  'recovering',
  'no_data',
  'insufficient_data',
  'muted',
  'degraded',
  'error',
] as const
export const DetectorStatus = z.enum(detectorStatuses).meta({ id: 'DetectorStatus' })
export type DetectorStatus = z.infer<typeof DetectorStatus>

/** Metrics that every organisation has, computed from its spans, log records and stored rows. */
export const builtInMetrics = [
  { metric_key: 'spans.rate', description: 'Requests (spans that enter a service) per second.' },
  { metric_key: 'spans.error_ratio', description: 'Share of requests with an error status, 0 to 1.' },
  { metric_key: 'spans.latency_p50', description: 'Median duration of requests, ms.' },
  { metric_key: 'spans.latency_p95', description: '95th percentile of the duration of requests, ms.' },
  { metric_key: 'spans.latency_p99', description: '99th percentile of the duration of requests, ms.' },
  { metric_key: 'logs.rate', description: 'Log records per second.' },
  { metric_key: 'logs.error_count', description: 'Log records of severity ERROR or worse.' },
  { metric_key: 'ingest.rate', description: 'Rows of all telemetry per second.' },
] as const

const builtInKeys: ReadonlySet<string> = new Set(builtInMetrics.map(({ metric_key }) => metric_key))

/**
 * The name of a metric as OpenTelemetry and Prometheus write it, or a built-in metric. Names under `spans.`
 * and `logs.` are reserved: otherwise a misspelt built-in metric would be a metric that never has data.
 */
export const MetricKey = z
  .string()
  .max(255)
  .regex(/^[A-Za-z_:][A-Za-z0-9_:./-]*$/, {
    error: 'A metric key starts with a letter, _ or :, followed by letters, digits and _ . : / -',
  })
  .refine((key) => builtInKeys.has(key) || !/^(?:spans|logs)\./.test(key), {
    error: `Keys under spans. and logs. are built in; use one of ${[...builtInKeys].join(', ')}`,
  })

const groupKey = z.string().min(1).max(300)
/** Each key multiplies the number of series. */
const groupKeysMax = 5

export const DetectorScope = z
  .strictObject({
    service: z.string().min(1).max(300).optional().describe('Only this service.'),
    attributes: storedLabels('attributes')
      .optional()
      .describe(
        'Only telemetry that has all these attributes with these values. At most 20, and when set at most 4,096 bytes of JSON.',
      ),
    group_by: z
      .union([groupKey, z.array(groupKey).min(1).max(groupKeysMax)])
      .optional()
      .describe(
        '`service` or an attribute key: each value is a series of its own, at most the 50 busiest. With a list of keys, each combination of values is a series. A series whose values take more than 4,096 bytes is not judged. Methods that compare series need it.',
      ),
    aggregation: Aggregation.optional().describe(
      'How the points in a bucket are combined. Default: by the kind of metric. Built-in metrics have their own.',
    ),
  })
  .describe('What the detector applies to; everything where empty.')
  .meta({ id: 'DetectorScope' })
export type DetectorScope = z.infer<typeof DetectorScope>

/** A scope that a client sets. Scopes that were stored before there was a limit may have more bytes. */
const SetScope = DetectorScope.refine(({ attributes }) => attributes === undefined || areShort(attributes), {
  ...tooManyBytes('attributes'),
  path: ['attributes'],
})

/** An integer in a JSON body. Any other value, text or 1.5 for example, is reported as `int_type`. */
function bodyInt(options: { min: number; max: number }) {
  return z
    .unknown()
    .transform((value, context) => {
      if (typeof value !== 'number' || !Number.isInteger(value)) {
        return refuse(context, 'int_type', 'Input should be a valid integer', {})
      }
      if (value < options.min) {
        const message = `Input should be at least ${options.min}`
        return refuse(context, 'greater_than_equal', message, { ge: options.min })
      }
      if (value > options.max) {
        const message = `Input should be at most ${options.max}`
        return refuse(context, 'less_than_equal', message, { le: options.max })
      }
      return value
    })
    .meta({ type: 'integer', minimum: options.min, maximum: options.max })
}

const name = z.string().min(1).max(200)
const params = z
  .record(z.string(), z.unknown())
  .describe('Parameters of the method; their JSON Schema is at /anomalies/methods.')
const windowMinutes = bodyInt({ min: 1, max: windowMinutesMax })
const scheduleMinutes = bodyInt({ min: 1, max: scheduleMinutesMax })
const windowText = 'The window each run judges, in minutes; the method may also learn from time before it.'
const scheduleText = 'Minutes between runs.'

export const Detector = z
  .object({
    id: z.string(),
    name: z.string(),
    metric_key: z.string(),
    method_key: z.string(),
    params: z.record(z.string(), z.unknown()).describe('With the defaults of the method filled in.'),
    scope: DetectorScope,
    window_minutes: z.int().describe(windowText),
    schedule_minutes: z.int().describe(scheduleText),
    enabled: z.boolean(),
    is_system: z
      .boolean()
      .describe('Every organisation starts with it; its name, metric_key and method_key are fixed.'),
    last_run_at: Instant.nullable().describe('Null before the first run.'),
    last_status: DetectorStatus.nullable().describe(
      'Null before the first run, and until the next run after a deletion has hidden something.',
    ),
    created_at: Instant,
    last_note: z.string().nullable().describe('An explanation of last_status, for people.'),
    next_run_at: Instant.nullable().describe(
      'Not before this time; a time in the past means that it is due. Null while it is disabled.',
    ),
  })
  .describe('Evaluates a metric with a method over a window, on a schedule.')
  .meta({ id: 'Detector' })
export type Detector = z.infer<typeof Detector>

export const CreateDetector = z
  .strictObject({
    name,
    metric_key: MetricKey,
    method_key: MethodKey,
    params: params.default({}),
    scope: SetScope.default({}),
    window_minutes: windowMinutes.default(1440).describe(windowText),
    schedule_minutes: scheduleMinutes.default(5).describe(scheduleText),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'CreateDetector' })
export type CreateDetector = z.infer<typeof CreateDetector>

/** The same for a definition whose scope is the stored one. */
export const DraftWithStoredScope = CreateDetector.extend({ scope: DetectorScope })

export const PatchDetector = z
  .strictObject({
    name: name.optional(),
    metric_key: MetricKey.optional(),
    method_key: MethodKey.optional(),
    params: params.optional(),
    scope: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Fields service, attributes, group_by and aggregation, as on creation.'),
    window_minutes: windowMinutes.optional().describe(windowText),
    schedule_minutes: scheduleMinutes.optional().describe(scheduleText),
    enabled: z.boolean().optional(),
  })
  .describe(
    'Absent fields do not change. As application/json, params and scope replace the old object as a whole; as application/merge-patch+json they are merged into it (RFC 7396). A new method_key needs its params.',
  )
  .meta({ id: 'PatchDetector' })
export type PatchDetector = z.infer<typeof PatchDetector>

export const DetectorParams = z.object({ detector_id: z.string().max(100) })

export const DetectorListQuery = z.strictObject({ limit: limitQuery, cursor: cursorQuery })

export const Anomaly = z
  .object({
    id: z.string(),
    detector_id: z.string(),
    metric_key: z.string(),
    group: labelMap().describe(
      'Which series of the metric, such as {"service": "checkout"}; empty where not grouped.',
    ),
    signals: z
      .array(z.enum(['metrics', 'logs', 'traces']))
      .describe('The signals that the values are derived from.'),
    started_at: Instant.describe('Start of the first violating bucket.'),
    ended_at: Instant.nullable().describe('End of the last violating bucket; null while it is open.'),
    seen_until: Instant.describe('End of the last violating bucket so far.'),
    peak_at: Instant.describe('Start of the worst bucket.'),
    value: z.number().nullable().describe('At the peak; null where the anomaly is that no data arrived.'),
    expected: z
      .number()
      .nullable()
      .describe(
        'At the peak; null where the method has no expected value, and where what it learnt from is erased or not recorded.',
      ),
    lower: z.number().nullable().describe('Lower edge of the band at the peak; null where there is none.'),
    upper: z.number().nullable().describe('Upper edge of the band at the peak; null where there is none.'),
    score: z
      .number()
      .describe(
        'Distance at the peak: 1 is the edge of the band. 0 where the band is erased or not recorded.',
      ),
    reason: z.string().describe('What happened, in a sentence.'),
    muted: z
      .boolean()
      .describe(
        'True while all of it is inside mutes, so that it did not alarm; false once it lasts longer.',
      ),
    feedback: Feedback.nullable().describe('The last verdict of a person.'),
    created_at: Instant,
    updated_at: Instant,
  })
  .describe('One episode of one series, however long it lasted.')
  .meta({ id: 'Anomaly' })
export type Anomaly = z.infer<typeof Anomaly>

export const AnomalyVersion = z
  .object({
    version: z.int().describe('From 1.'),
    replaced_at: Instant,
    replaced_by: z.string().describe('Who changed it: a requester, or `system:detection` for a run.'),
    held_by: z.array(z.string()).describe('Legal holds that covered it at that time.'),
    anomaly: Anomaly.describe('The anomaly before the change.'),
  })
  .describe('An earlier version of an anomaly under a legal hold; stored until the hold is released.')
  .meta({ id: 'AnomalyVersion' })
export type AnomalyVersion = z.infer<typeof AnomalyVersion>

export const AnomalyParams = z.object({ anomaly_id: z.string().max(100) })

const AnomalyListFields = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  detector_id: z.string().max(100).optional().describe('Only of this detector.'),
  open: z
    .enum(['true', 'false'])
    .optional()
    .describe('"true": only open anomalies; "false": only ended ones.'),
  muted: z.enum(['true', 'false']).optional().describe('"false": only those that alarmed.'),
  range_start: MomentInput.optional().describe(`Only those seen at or after this instant. ${momentForms}`),
  range_end: MomentInput.optional().describe(`Only those that started before this instant. ${momentForms}`),
})
export const AnomalyListQuery = withOldNames(AnomalyListFields, oldRangeNames)
export type AnomalyListQuery = z.infer<typeof AnomalyListQuery>

/** One item of `GET /anomalies/metrics`. */
export const MetricChoice = z
  .object({
    metric_key: z.string(),
    description: z.string(),
    is_built_in: z.boolean(),
  })
  .meta({ id: 'MetricChoice' })
export type MetricChoice = z.infer<typeof MetricChoice>
