// What a detector would have done over a past range, on the wire. The request has the body that would create
// the detector, and the response comes from the code that would run it. Nothing is stored.

import { z } from 'zod'
import { Deploy } from '../telemetry/deploys.ts'
import { Instant } from '../values/fields.ts'
import { MomentInput, momentForms } from '../values/instant.ts'
import { oldNameOf, oldRangeNames, withOldNames } from '../values/old-names.ts'
import { Anomaly, CreateDetector, DetectorStatus } from './detectors.ts'

const PreviewDetectorFields = z
  .strictObject({
    ...CreateDetector.shape,
    name: CreateDetector.shape.name.default('Preview'),
    range_start: MomentInput.describe(
      `When the detector would have been created and first run. Inclusive. ${momentForms}`,
    ),
    range_end: MomentInput.describe(
      `End of the time that it judges. Exclusive, and not in the future. ${momentForms}`,
    ),
  })
  .describe('A detector as on creation, and the past range to try it on. enabled means nothing here.')
export const PreviewDetector = withOldNames(PreviewDetectorFields, oldRangeNames).meta({
  id: 'PreviewDetector',
})
export type PreviewDetector = z.infer<typeof PreviewDetector>

export const PreviewAnomaly = Anomaly.pick({
  group: true,
  signals: true,
  started_at: true,
  ended_at: true,
  seen_until: true,
  peak_at: true,
  value: true,
  expected: true,
  lower: true,
  upper: true,
  score: true,
  reason: true,
})
  .extend({
    raised_at: Instant.describe('When the run began that would have recorded it.'),
    deploy: Deploy.nullable().describe('The deploy that it began with, as an anomaly has it.'),
  })
  .meta({ id: 'PreviewAnomaly' })
export type PreviewAnomaly = z.infer<typeof PreviewAnomaly>

const edge = z.number().nullable()

export const PreviewPoint = z
  .object({
    time: Instant.describe('Start of the bucket.'),
    value: z.number().nullable().describe('Null where there is no data.'),
    expected: edge,
    lower: edge.describe('Lower edge of alarm; null where there is none yet, or none at all.'),
    upper: edge,
    score: z.number().nullable().describe('1 is the edge of alarm; null where nothing was judged.'),
    erased: z.boolean().optional().describe('True where the bucket touches erased time: unknown, not zero.'),
  })
  .meta({ id: 'PreviewPoint' })
export type PreviewPoint = z.infer<typeof PreviewPoint>

export const previewWarnings = [
  'no_runs',
  'no_data',
  'insufficient_data',
  'learning',
  'groups_cut',
  'points_cut',
  'anomalies_cut',
  'time_cut',
  'erased_time',
] as const

export const DetectorPreview = z
  .object({
    range_start: Instant,
    range_end: Instant.describe('End of the last bucket that was judged.'),
    step_minutes: z.int().describe('Width of a bucket.'),
    runs: z.int().describe('How often the detector would have run.'),
    last_status: DetectorStatus.nullable().describe('Status after its last run.'),
    last_note: z.string().nullable(),
    alarms: z.int().describe('Anomalies it would have raised.'),
    alarms_per_week: z.number().describe('Over all series.'),
    alarms_per_series_and_week: z
      .number()
      .describe('For comparison with `alarm_budget_per_week`, which is per series too.'),
    series: z.array(
      z.object({
        group: Anomaly.shape.group,
        points: z
          .array(PreviewPoint)
          .describe('Each bucket as the first run that judged it saw it, with the edges at that time.'),
      }),
    ),
    anomalies: z
      .array(PreviewAnomaly)
      .describe('The newest 1,000, in the order in which they would have been recorded.'),
    deploys: z
      .array(Deploy)
      .describe('The newest 100 deploys of its services in the range, oldest first, to draw.'),
    cost: z.object({
      duration_ms: z.int(),
      rows_read: z.int().describe('Rows of telemetry in the range and the windows before it.'),
      points_judged: z.int().describe('Over all runs; each run judges its whole window.'),
    }),
    warnings: z.array(z.object({ code: z.enum(previewWarnings), message: z.string() })),
    start: Instant.meta(oldNameOf('range_start')),
    end: Instant.meta(oldNameOf('range_end')),
  })
  .describe(
    'What the detector would have done if it had been created at `range_start`. No run uses anything later than itself. Late telemetry counts as if it had arrived in time; mutes and feedback are ignored.',
  )
  .meta({ id: 'DetectorPreview' })
export type DetectorPreview = z.infer<typeof DetectorPreview>
