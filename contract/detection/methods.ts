// The parameters of every detection method, each with its description, bounds and default, in one place. The
// same schemas refuse misspelt keys (strict), fill in defaults, type the methods, and are served as JSON
// Schema, so that the console can draw its form and the reference page can explain it without a second list.
//
// A parameter is listed only where it has an effect: `threshold` compares with given limits, so it has no
// expected value and no budget, deviation or direction. To add a method, add its schema here and its file in
// `server/detection/methods/`; the compiler then reports what else is missing.

import { z } from 'zod'
import { alarmParams, bandParams, singleBucket, surpriseParams, violateWithinWindow } from './alarm-params.ts'
import { holidays, season, timezone, timezoneOfShapes } from './season-params.ts'

export const ThresholdParams = z
  .strictObject({
    upper: z.number().min(-1e300).max(1e300).optional().describe('Values above this violate.'),
    lower: z.number().min(-1e300).max(1e300).optional().describe('Values below this violate.'),
    ...alarmParams,
  })
  .refine((params) => params.upper !== undefined || params.lower !== undefined, {
    error: 'Give upper, lower or both',
    path: ['upper'],
    params: { type: 'value_error' },
  })
  .refine(
    (params) => params.upper === undefined || params.lower === undefined || params.lower <= params.upper,
    {
      error: 'lower must not exceed upper',
      path: ['lower'],
      params: { type: 'value_error' },
    },
  )
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe('Fixed limits that must never be exceeded: a quota, a full disk, an agreed latency.')

export const RobustBandParams = z
  .strictObject({
    window_points: z
      .int()
      .min(16)
      .max(20_000)
      .default(288)
      .describe(
        'How many buckets with data, before the judged one, make the baseline. A new level that lasts half as many becomes the baseline.',
      ),
    k: z
      .number()
      .min(1)
      .max(20)
      .default(4)
      .describe('Half the width of the band, in robust standard deviations (1.4826 MAD).'),
    ...bandParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'Median and MAD of the recent past, for gauges without a daily rhythm: queue length, memory, error count.',
  )

const RecordRangeParams = z
  .strictObject({
    tolerance: z
      .number()
      .min(0)
      .max(0.5)
      .default(0.01)
      .describe('How far beyond the range seen so far a value may go, as a share of that range.'),
    decay_days: z
      .number()
      .min(0)
      .max(365)
      .default(0)
      .describe(
        'Half-life of the range: it shrinks towards its middle unless new values extend it. 0: it does not shrink.',
      ),
    ...bandParams,
    ...singleBucket,
    min_rel_dev: bandParams.min_rel_dev
      .unwrap()
      .default(0)
      .describe(bandParams.min_rel_dev.description ?? ''),
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'A new highest or lowest value of the series: cheap, and as good as half of the published detectors.',
  )

const ShapeDiscordParams = z
  .strictObject({
    lengths: z
      .array(z.int().min(4).max(512))
      .min(1)
      .max(5)
      .default([12, 36, 96])
      .describe('Lengths of the shapes compared, in buckets with data.'),
    history_points: z
      .int()
      .min(512)
      .max(65_536)
      .default(4096)
      .describe('How far back similar shapes are searched, in buckets with data.'),
    timezone: timezoneOfShapes,
    ...surpriseParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe('Shapes unlike any before: a missing peak, a new rhythm, a spike at an unusual time.')

export const SeasonalBandParams = z
  .strictObject({
    season,
    timezone,
    holidays,
    history_seasons: z
      .int()
      .min(2)
      .max(60)
      .default(14)
      .describe('How many earlier days, weeks or holidays a value is compared with.'),
    k: z
      .number()
      .min(1)
      .max(20)
      .default(4)
      .describe('Half the width of the band, in robust standard deviations (1.4826 MAD).'),
    ...bandParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'A band around what is usual at this time of the day or the week: for traffic, latency, anything that people cause.',
  )

const SpectralResidualParams = z
  .strictObject({
    window_points: z
      .int()
      .min(64)
      .max(4096)
      .default(256)
      .describe('Values per window, rounded to a power of two.'),
    ...surpriseParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe('Spikes and dips that stand out visually in a chart of regular web traffic.')

const SubPcaParams = z
  .strictObject({
    length: z.int().min(4).max(64).default(24).describe('Values per compared stretch.'),
    history_points: z
      .int()
      .min(256)
      .max(16_384)
      .default(2048)
      .describe('How many values the usual stretches are learnt from.'),
    timezone: timezoneOfShapes,
    ...surpriseParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'Stretches in which values do not change together as usual: for servers, machines, smooth rhythms.',
  )

const LevelShiftParams = z
  .strictObject({
    k: z
      .number()
      .min(0.1)
      .max(3)
      .default(0.5)
      .describe('Deviations smaller than this many robust standard deviations do not add up.'),
    h: z.number().min(2).max(50).default(8).describe('A sum of deviations above this is a shift.'),
    min_run: z
      .int()
      .min(2)
      .max(1000)
      .default(8)
      .describe('After this many values beyond h the new level becomes the baseline.'),
    window_points: RobustBandParams.shape.window_points,
    ...surpriseParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe('A lasting change of level, also a small one: a leak, a deployment, a lost replica.')

export const AbsenceParams = z
  .strictObject({
    flatline_points: z
      .int()
      .min(0)
      .max(10_000)
      .default(60)
      .describe(
        'More equal values in a row than this violate, once the series has changed. 0 allows any number.',
      ),
    ...alarmParams,
    violate_n: alarmParams.violate_n
      .unwrap()
      .default(3)
      .describe(alarmParams.violate_n.description ?? ''),
    missing: alarmParams.missing
      .unwrap()
      .default('alert')
      .describe(alarmParams.missing.description ?? ''),
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe('A heartbeat that stopped, or a value that no longer changes.')

const RateTestParams = z
  .strictObject({
    base_days: z
      .number()
      .min(0.1)
      .max(365)
      .default(7)
      .describe('Half-life of the rate that values are compared with.'),
    prior_events: z
      .number()
      .min(0.1)
      .max(1e6)
      .default(50)
      .describe(
        'Minimum weight of the past, in events: with a larger one, more events are needed for an alarm.',
      ),
    k: RobustBandParams.shape.k
      .unwrap()
      .default(4)
      .describe('Half the width of the band, in standard deviations.'),
    ...bandParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'Ratios judged by their volume, and small counts: for example errors of requests, where two of three are not significant.',
  )

const RcfParams = z
  .strictObject({
    shingle_points: z
      .int()
      .min(1)
      .max(32)
      .default(8)
      .describe('Consecutive values that are judged together, as one point.'),
    trees: z
      .int()
      .min(10)
      .max(100)
      .default(30)
      .describe('More trees make the score more stable and take more time.'),
    sample_points: z.int().min(64).max(512).default(256).describe('Points in the sample of each tree.'),
    history_points: z
      .int()
      .min(512)
      .max(65_536)
      .default(2560)
      .describe('Mean age of the points in the trees, in buckets with data: older points fade out.'),
    ...surpriseParams,
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'Random cuts separate unusual groups of consecutive values early from the past: for sudden changes of any shape.',
  )

const PeerOutlierParams = z
  .strictObject({
    k: RobustBandParams.shape.k
      .unwrap()
      .default(4)
      .describe('Half the width of the band, in robust standard deviations of the peers.'),
    min_peers: z
      .int()
      .min(3)
      .max(49)
      .default(4)
      .describe(
        'A value is judged only where at least this many other series of the group have one in the same bucket.',
      ),
    window_points: z
      .int()
      .min(16)
      .max(2016)
      .default(288)
      .describe('From how many buckets the usual spread of the peers is computed.'),
    ...bandParams,
    warmup_points: bandParams.warmup_points
      .unwrap()
      .default(16)
      .describe(
        'Buckets with enough peers before the first judgement; until then the status is "learning". A series that joins later is judged at once.',
      ),
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe(
    'A series that differs from the others of its group in the same bucket: for hosts, pods or shards that should be alike. Needs scope.group_by.',
  )

const AutoParams = z
  .strictObject({
    timezone,
    history_points: ShapeDiscordParams.shape.history_points,
    memory_points: z
      .int()
      .min(1)
      .max(10_000)
      .default(100)
      .describe(
        'Half-life, in buckets with data, of the last reported score: until it has faded, only a clearly higher score is reported.',
      ),
    ...surpriseParams,
    alarm_budget_per_week: surpriseParams.alarm_budget_per_week
      .unwrap()
      .default(1)
      .describe(
        'False alarms you accept per series and week, at most. The past of the series moves the edge of alarm out: a little while this budget is met, and further when it is exceeded. More than one a week also moves it in, to smaller surprises.',
      ),
  })
  .refine((params) => params.violate_n <= params.window_m, violateWithinWindow)
  .describe('The default: the average of several methods, each calibrated by its own past.')

/** Every method by its `method_key`. */
export const methodParams = {
  threshold: ThresholdParams,
  robust_band: RobustBandParams,
  seasonal_band: SeasonalBandParams,
  record_range: RecordRangeParams,
  shape_discord: ShapeDiscordParams,
  spectral_residual: SpectralResidualParams,
  sub_pca: SubPcaParams,
  level_shift: LevelShiftParams,
  absence: AbsenceParams,
  rate_test: RateTestParams,
  rcf: RcfParams,
  peer_outlier: PeerOutlierParams,
  auto: AutoParams,
} as const

export const methodKeys = [
  'threshold',
  'robust_band',
  'seasonal_band',
  'record_range',
  'shape_discord',
  'spectral_residual',
  'sub_pca',
  'level_shift',
  'absence',
  'rate_test',
  'rcf',
  'peer_outlier',
  'auto',
] as const satisfies readonly (keyof typeof methodParams)[]
export const MethodKey = z.enum(methodKeys).meta({ id: 'MethodKey' })
export type MethodKey = keyof typeof methodParams

/** Methods that compare the series of a group with each other; they need `scope.group_by`. */
const peerMethodKeys = ['peer_outlier'] as const satisfies readonly MethodKey[]

export function comparesPeers(key: MethodKey): boolean {
  return peerMethodKeys.some((one) => one === key)
}

/** The parameters of a method after validation, defaults filled in. */
export type MethodParams<K extends MethodKey = MethodKey> = z.output<(typeof methodParams)[K]>

/** One item of `GET /anomalies/methods`. */
export const DetectionMethod = z
  .object({
    method_key: MethodKey,
    description: z.string(),
    needs_group_by: z
      .boolean()
      .describe(
        'Whether it compares the series of a group with each other, so that scope.group_by must be set.',
      ),
    params_schema: z.record(z.string(), z.unknown()).describe('JSON Schema (2020-12) of `params`.'),
  })
  .meta({ id: 'DetectionMethod' })
export type DetectionMethod = z.infer<typeof DetectionMethod>

/**
 * The whole catalogue, in the order of `methodKeys`. JSON Schema does not contain the
 * rules between two parameters.
 */
export function describeMethods(): DetectionMethod[] {
  return methodKeys.map((key) => {
    const schema = methodParams[key]
    return {
      method_key: key,
      description: schema.description ?? '',
      needs_group_by: comparesPeers(key),
      params_schema: { ...z.toJSONSchema(schema, { io: 'input' }) },
    }
  })
}
