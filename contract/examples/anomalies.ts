// Examples of anomalies: the failed payments of one morning, the feedback of a person, and a mute.

import type { z } from 'zod'
import type { AnomalyWithContext, ListedAnomaly } from '../detection/context.ts'
import type { Anomaly, AnomalyVersion } from '../detection/detectors.ts'
import type { CreateMute, GiveFeedback, Mute } from '../detection/feedback.ts'
import { ada, anomalyId, ben, detectorId, holdId, muteId } from './acme.ts'
import { deployExample } from './telemetry.ts'

const anomaly: Anomaly = {
  id: anomalyId,
  detector_id: detectorId,
  metric_key: 'spans.error_ratio',
  group: { service: 'checkout' },
  signals: ['traces'],
  started_at: '2026-11-21T09:00:00Z',
  ended_at: null,
  seen_until: '2026-11-21T09:04:00Z',
  peak_at: '2026-11-21T09:02:00Z',
  value: 0.6,
  expected: 0.003,
  lower: null,
  upper: 0.103,
  score: 5.97,
  reason:
    'error ratio of checkout 0.600 (72 of 120 requests failed), expected at most 0.103; 4 minutes high since 09:00 UTC',
  muted: false,
  feedback: null,
  created_at: '2026-11-21T09:04:30.118Z',
  updated_at: '2026-11-21T09:04:30.118Z',
}

const relatedId = 'ano_01m7ynn12wawsh8vhtpre95b9e'

export const listedAnomalyExample: ListedAnomaly = {
  ...anomaly,
  reason: `${anomaly.reason}; since version 2.3.1 in production, deployed 08:58 UTC`,
  related_ids: [relatedId],
  incident_id: relatedId.replace('ano', 'inc'),
  deploy: deployExample,
}

export const anomalyWithContextExample: z.output<typeof AnomalyWithContext> = {
  ...listedAnomalyExample,
  context: {
    similar: {
      count: 1,
      latest: [
        {
          id: 'ano_01m7cmw02we0zbgj09tqm83xss',
          started_at: '2026-11-14T09:01:00Z',
          reason:
            'error ratio of checkout 0.210 (25 of 120 requests failed), expected at most 0.103; 3 minutes high since 09:01 UTC',
        },
      ],
    },
    contributors: {
      summary: '288 of 480 requests failed',
      values: [{ key: 'region', value: 'eu', share: 1, share_before: 0.4 }],
      is_partial: false,
    },
    links: {
      detector: `/anomalies/detectors/${detectorId}`,
      series:
        '/telemetry/series?service=checkout&metric_key=spans.error_ratio&range_start=2026-11-21T08%3A00%3A00Z&range_end=2026-11-21T10%3A04%3A00Z&step_seconds=60',
      events:
        '/telemetry/spans?service=checkout&range_start=2026-11-21T09%3A00%3A00Z&range_end=2026-11-21T09%3A04%3A00Z&status=error',
    },
    related: {
      count: 1,
      anomalies: [
        {
          id: relatedId,
          started_at: '2026-11-21T09:01:00Z',
          metric_key: 'spans.latency_p95',
          group: { service: 'storefront' },
          reason:
            'latency p95 of storefront 2,140 ms, expected 180 to 420 ms; 4 minutes high since 09:01 UTC',
          because: ['began_together'],
        },
      ],
    },
    deploys: [deployExample],
  },
}

export const giveFeedbackExample: z.input<typeof GiveFeedback> = {
  verdict: 'real',
  note: 'The payment provider was down',
}

export const judgedAnomalyExample: Anomaly = {
  ...anomaly,
  feedback: {
    verdict: 'real',
    note: 'The payment provider was down',
    given_by: ben,
    given_at: '2026-11-21T09:20:04.300Z',
    effect: 'The edge of this series stays within the size of this peak.',
  },
}

export const anomalyVersionExample: AnomalyVersion = {
  version: 1,
  replaced_at: '2026-11-21T09:20:04.301Z',
  replaced_by: ben,
  held_by: [holdId],
  anomaly,
}

export const createMuteExample: z.input<typeof CreateMute> = {
  group: { service: 'checkout' },
  open_ended: true,
  weekly: { days: ['sun'], from: '02:00', until: '04:00', time_zone: 'Europe/Berlin' },
  note: 'Weekly import',
}

export const muteExample: Mute = {
  id: muteId,
  detector_id: null,
  group: { service: 'checkout' },
  range_start: '2026-11-18T12:00:00Z',
  range_end: null,
  weekly: { days: ['sun'], from: '02:00', until: '04:00', time_zone: 'Europe/Berlin' },
  note: 'Weekly import',
  is_active: false,
  created_by: ada,
  created_at: '2026-11-18T12:00:00.000Z',
  from: '2026-11-18T12:00:00Z',
  until: null,
}
