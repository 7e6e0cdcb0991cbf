// Examples of detectors: one that watches the error ratio of each service, its preview, and a suggestion for
// another metric.

import type { z } from 'zod'
import type { CreateDetector, Detector, MetricChoice, PatchDetector } from '../detection/detectors.ts'
import { type DetectionMethod, describeMethods } from '../detection/methods.ts'
import type { DetectorPreview, PreviewDetector } from '../detection/preview.ts'
import type { DetectorSuggestion } from '../detection/suggestion.ts'
import { detectorId } from './acme.ts'
import { deployExample } from './telemetry.ts'

export const createDetectorExample: z.input<typeof CreateDetector> = {
  name: 'Errors by service',
  metric_key: 'spans.error_ratio',
  method_key: 'robust_band',
  params: { min_abs_dev: 0.1, direction: 'up' },
  scope: { group_by: 'service' },
  window_minutes: 1440,
  schedule_minutes: 1,
}

export const patchDetectorExample: z.input<typeof PatchDetector> = { schedule_minutes: 5 }

/** A band of a day of minutes; the other parameters are the defaults. */
const bandParams = {
  window_points: 288,
  k: 4,
  violate_n: 2,
  window_m: 3,
  clear_n: 3,
  cooldown_minutes: 30,
  missing: 'skip',
  min_volume: 0,
  direction: 'up',
  min_abs_dev: 0.1,
  min_rel_dev: 0.1,
  alarm_budget_per_week: 1,
  warmup_points: 64,
}

export const newDetectorExample: Detector = {
  id: detectorId,
  name: 'Errors by service',
  metric_key: 'spans.error_ratio',
  method_key: 'robust_band',
  params: bandParams,
  scope: { group_by: 'service' },
  window_minutes: 1440,
  schedule_minutes: 1,
  enabled: true,
  is_system: false,
  last_run_at: null,
  last_status: null,
  created_at: '2026-10-05T07:12:31.090Z',
  last_note: null,
  next_run_at: '2026-10-05T07:12:31.090Z',
}

export const detectorExample: Detector = {
  ...newDetectorExample,
  last_run_at: '2026-11-21T09:04:30.118Z',
  last_status: 'anomalous',
  last_note: 'Series: 1 anomalous, 3 ok.',
  next_run_at: '2026-11-21T09:05:30.000Z',
}

export const patchedDetectorExample: Detector = { ...detectorExample, schedule_minutes: 5 }

export const previewDetectorExample: z.input<typeof PreviewDetector> = {
  metric_key: 'spans.error_ratio',
  method_key: 'robust_band',
  params: { min_abs_dev: 0.1, direction: 'up' },
  scope: { group_by: 'service' },
  range_start: '-7d',
  range_end: 'now',
}

export const detectorPreviewExample: DetectorPreview = {
  range_start: '2026-11-14T09:10:00Z',
  range_end: '2026-11-21T09:05:00Z',
  step_minutes: 5,
  runs: 2016,
  last_status: 'anomalous',
  last_note: 'Series: 1 anomalous, 3 ok.',
  alarms: 1,
  alarms_per_week: 1,
  alarms_per_series_and_week: 0.25,
  series: [
    {
      group: { service: 'checkout' },
      points: [
        {
          time: '2026-11-21T08:55:00Z',
          value: 0.004,
          expected: 0.003,
          lower: null,
          upper: 0.103,
          score: 0.01,
        },
        {
          time: '2026-11-21T09:00:00Z',
          value: 0.6,
          expected: 0.003,
          lower: null,
          upper: 0.103,
          score: 5.97,
        },
      ],
    },
  ],
  anomalies: [
    {
      group: { service: 'checkout' },
      signals: ['traces'],
      started_at: '2026-11-21T09:00:00Z',
      ended_at: null,
      seen_until: '2026-11-21T09:05:00Z',
      peak_at: '2026-11-21T09:00:00Z',
      value: 0.6,
      expected: 0.003,
      lower: null,
      upper: 0.103,
      score: 5.97,
      reason:
        'error ratio of checkout 0.600 (72 of 120 requests failed), expected at most 0.103; 5 minutes high since 09:00 UTC; since version 2.3.1 in production, deployed 08:58 UTC',
      raised_at: '2026-11-21T09:05:30.000Z',
      deploy: deployExample,
    },
  ],
  deploys: [deployExample],
  cost: { duration_ms: 310, rows_read: 812_400, points_judged: 580_608 },
  warnings: [],
  start: '2026-11-14T09:10:00Z',
  end: '2026-11-21T09:05:00Z',
}

export const suggestionExample: DetectorSuggestion = {
  detector: {
    name: 'queue.length',
    metric_key: 'queue.length',
    method_key: 'seasonal_band',
    params: { k: 4, alarm_budget_per_week: 1 },
    scope: {},
    window_minutes: 1440,
    schedule_minutes: 5,
  },
  step_minutes: 5,
  filled: [
    { step_minutes: 1, share: 0.42 },
    { step_minutes: 5, share: 0.99 },
    { step_minutes: 15, share: 1 },
    { step_minutes: 60, share: 1 },
  ],
  daily_rhythm: 0.83,
  reasons: ['99 % of buckets of 5 minutes have data; narrower buckets have too many gaps.'],
}

export const methodsExample: DetectionMethod[] = describeMethods().filter(
  ({ method_key }) => method_key === 'threshold',
)

export const metricChoicesExample: MetricChoice[] = [
  {
    metric_key: 'spans.error_ratio',
    description: 'Share of requests with an error status, 0 to 1.',
    is_built_in: true,
  },
  { metric_key: 'queue.length', description: '', is_built_in: false },
]
