// An incident as the service returns it: one provider is slow, and the callers of its service fail.

import type { IncidentWithMembers } from '../detection/incidents.ts'
import { incidentId } from './acme.ts'

const payments = {
  service: 'payments',
  metric_key: 'spans.error_ratio',
  score: 0.71,
  why: [
    '184 of 201 additional failures began in payments: no call below it failed.',
    'Its requests took 1.31 s of its own time on average, before 190 ms.',
    'Its error ratio was the first to leave its band, at 2026-11-22T20:35:00Z.',
  ],
}

export const incidentExample: IncidentWithMembers = {
  id: incidentId,
  title: 'payments: requests fail; 1 other service is affected',
  state: 'closed',
  started_at: '2026-11-22T20:35:00Z',
  ended_at: '2026-11-22T21:15:00Z',
  seen_until: '2026-11-22T21:15:00Z',
  told_at: '2026-11-22T20:50:31Z',
  updated_at: '2026-11-22T21:30:31Z',
  muted: false,
  verdict: null,
  services: ['payments', 'checkout'],
  metric_keys: ['spans.error_ratio'],
  anomaly_count: 2,
  anomaly_ids: ['ano_01kb2m7ze1v3v4h8m6tq0f9xka', 'ano_01kb2m7ze2j8r5c0y1w6d3n4pb'],
  origin: payments,
  candidates: [
    payments,
    {
      service: 'checkout',
      metric_key: 'spans.error_ratio',
      score: 0.29,
      why: ['17 of 201 additional failures began in checkout: no call below it failed.'],
    },
  ],
  members: [
    {
      anomaly_id: 'ano_01kb2m7ze1v3v4h8m6tq0f9xka',
      detector_id: 'det_01kampe0000000000000000000',
      service: 'payments',
      metric_key: 'spans.error_ratio',
      group: { service: 'payments' },
      started_at: '2026-11-22T20:35:00Z',
      ended_at: '2026-11-22T21:15:00Z',
      seen_until: '2026-11-22T21:15:00Z',
      score: 6.2,
      reason: 'error ratio of payments 0.52, expected 0 to 0.05; 40 minutes high from 20:35 to 21:15 UTC',
      muted: false,
      verdict: null,
      because: ['calls', 'began_together'],
    },
    {
      anomaly_id: 'ano_01kb2m7ze2j8r5c0y1w6d3n4pb',
      detector_id: 'det_01kampe0000000000000000000',
      service: 'checkout',
      metric_key: 'spans.error_ratio',
      group: { service: 'checkout' },
      started_at: '2026-11-22T20:35:00Z',
      ended_at: '2026-11-22T21:15:00Z',
      seen_until: '2026-11-22T21:15:00Z',
      score: 5.9,
      reason: 'error ratio of checkout 0.49, expected 0 to 0.05; 40 minutes high from 20:35 to 21:15 UTC',
      muted: false,
      verdict: null,
      because: ['calls', 'began_together'],
    },
  ],
  timeline: [
    {
      at: '2026-11-22T20:35:00Z',
      kind: 'anomaly_started',
      service: 'payments',
      anomaly_id: 'ano_01kb2m7ze1v3v4h8m6tq0f9xka',
      text: 'spans.error_ratio of payments leaves its band',
    },
    {
      at: '2026-11-22T20:35:00Z',
      kind: 'anomaly_started',
      service: 'checkout',
      anomaly_id: 'ano_01kb2m7ze2j8r5c0y1w6d3n4pb',
      text: 'spans.error_ratio of checkout leaves its band',
    },
    {
      at: '2026-11-22T20:50:31Z',
      kind: 'told',
      service: null,
      anomaly_id: null,
      text: 'the incident alarms for the first time',
    },
    {
      at: '2026-11-22T21:15:00Z',
      kind: 'closed',
      service: null,
      anomaly_id: null,
      text: 'nothing of it was seen for 30 minutes',
    },
  ],
}
