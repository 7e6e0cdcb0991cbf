// A suggestion for a metric, on the wire: a body for creating a detector, and the reasons for it.

import { z } from 'zod'
import { DetectorScope, MetricKey } from './detectors.ts'
import { MethodKey } from './methods.ts'

export const SuggestQuery = z.strictObject({
  metric_key: MetricKey,
  service: z.string().min(1).max(300).optional(),
  group_by: z.string().min(1).max(300).optional(),
})

export const DetectorSuggestion = z
  .object({
    detector: z
      .object({
        name: z.string(),
        metric_key: z.string(),
        method_key: MethodKey,
        params: z.record(z.string(), z.unknown()),
        scope: DetectorScope,
        window_minutes: z.int(),
        schedule_minutes: z.int(),
      })
      .describe('Send it to /anomalies/detectors, or to the preview first.'),
    step_minutes: z.int().describe('Width of a bucket that follows from window and schedule.'),
    filled: z
      .array(z.object({ step_minutes: z.int(), share: z.number() }))
      .describe('Share of buckets with data, for each width, since the first bucket with data.'),
    daily_rhythm: z
      .number()
      .nullable()
      .describe(
        'Correlation of each hour with the same hour of the day before, -1 to 1; null with less than three days.',
      ),
    reasons: z.array(z.string()),
  })
  .describe('Read from the last seven days; a suggestion, not a promise: preview it.')
  .meta({ id: 'DetectorSuggestion' })
export type DetectorSuggestion = z.infer<typeof DetectorSuggestion>
