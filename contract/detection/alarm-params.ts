// The parameters that methods share because the alarm layer uses them for every method. A method has those
// that apply to it, with other defaults where its alarms are of another kind.

import { z } from 'zod'

/** Parameters of the alarm layer for every method. */
export const alarmParams = {
  violate_n: z
    .int()
    .min(1)
    .max(60)
    .default(2)
    .describe('Open when this many of the last window_m buckets violate.'),
  window_m: z
    .int()
    .min(1)
    .max(60)
    .default(3)
    .describe('How many of the last judged buckets violate_n counts in.'),
  clear_n: z.int().min(1).max(60).default(3).describe('Close after this many calm buckets in a row.'),
  cooldown_minutes: z
    .int()
    .min(0)
    .max(1440)
    .default(30)
    .describe('After closing, open again within this time only if at least 1.5 times worse than before.'),
  missing: z
    .enum(['skip', 'zero', 'alert'])
    .default('skip')
    .describe(
      'How a bucket without data is treated: "skip", it is ignored; "zero", the value 0 in the whole window; "alert", a violation once the series has had data. Erased time is never missing data.',
    ),
  min_volume: z
    .number()
    .min(0)
    .max(1e15)
    .default(0)
    .describe('Buckets with fewer events than this are not judged: a percentile of two requests is noise.'),
}

/** Additional parameters for methods that expect a value and have a band around it. */
export const bandParams = {
  ...alarmParams,
  direction: z.enum(['both', 'up', 'down']).default('both').describe('Which side of the band can alarm.'),
  min_abs_dev: z
    .number()
    .min(0)
    .max(1e300)
    .default(0)
    .describe('A value no further than this from the expected one never violates, in units of the metric.'),
  min_rel_dev: z
    .number()
    .min(0)
    .max(10)
    .default(0.1)
    .describe('The same as a share of the expected value: 0.1 ignores deviations up to 10 %.'),
  alarm_budget_per_week: z
    .number()
    .min(0.01)
    .max(100)
    .default(1)
    .describe(
      'False alarms you accept per series and week, at most. The edge of alarm moves out until the expected number of alarms is within this, as estimated from the past of the series; it never moves in.',
    ),
  warmup_points: z
    .int()
    .min(16)
    .max(10_000)
    .default(64)
    .describe(
      'Buckets with data before the first judgement; until then the status is "learning". An episode that ends within the first sixteen judged buckets is not reported.',
    ),
}

export const violateWithinWindow = {
  error: 'violate_n must not exceed window_m',
  path: ['violate_n'],
  params: { type: 'value_error' },
}

/**
 * For methods whose alarms are single events: a value that they report at one bucket is expected at the next
 * one.
 */
export const singleBucket = {
  violate_n: alarmParams.violate_n
    .unwrap()
    .default(1)
    .describe(alarmParams.violate_n.description ?? ''),
  window_m: alarmParams.window_m
    .unwrap()
    .default(1)
    .describe(alarmParams.window_m.description ?? ''),
}

/** For methods that judge how unusual a bucket is, without a band around its value. */
export const surpriseParams = {
  ...alarmParams,
  ...singleBucket,
  alarm_budget_per_week: bandParams.alarm_budget_per_week
    .unwrap()
    .default(1)
    .describe(
      'False alarms you accept per series and week, at most. The edge of alarm moves out until the expected number of alarms is within this, as estimated from the past of the series. More than one a week also moves it in, to smaller surprises.',
    ),
  warmup_points: bandParams.warmup_points,
}
