// Incidents on the wire: anomalies of one organisation that belong together. They are computed from the
// anomalies and spans that are visible at the time of the request. Nothing of them is stored, so an erasure
// has nothing to remove.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from '../values/fields.ts'
import { MomentInput, momentForms } from '../values/instant.ts'
import { Anomaly } from './detectors.ts'
import { Verdict } from './feedback.ts'

/** Why an anomaly belongs to an incident, besides the overlap in time. */
const memberLinks = ['same_service', 'same_attributes', 'calls', 'same_deploy', 'began_together'] as const
export const MemberLink = z.enum(memberLinks).meta({ id: 'MemberLink' })
export type MemberLink = z.infer<typeof MemberLink>

export const membersMax = 200
export const candidatesMax = 10
export const timelineMax = 100

const service = z.string().nullable().describe('Null where the telemetry has no service.')

export const IncidentOrigin = z
  .object({
    service,
    metric_key: z
      .string()
      .describe(
        'What shows it most clearly there: the metric of a member, or a built-in metric of the spans.',
      ),
    score: z
      .number()
      .describe('0 to 1: the share of the evidence that points here. All candidates together have 1.'),
    why: z.array(z.string()).describe('The evidence, as sentences, strongest first.'),
  })
  .describe('A service where an incident may have begun.')
  .meta({ id: 'IncidentOrigin' })
export type IncidentOrigin = z.infer<typeof IncidentOrigin>

const IncidentState = z.enum(['open', 'closed'])

export const Incident = z
  .object({
    id: z
      .string()
      .describe(
        'Stays the same when anomalies join. Where two incidents become one, it has the older id, and a request for the younger id returns it.',
      ),
    title: z.string().describe('What happens and where, in a sentence of at most 200 characters.'),
    state: IncidentState.describe(
      '`open` while an anomaly of it is open, and for 30 minutes after the last one was seen.',
    ),
    started_at: Instant.describe('Start of its first anomaly.'),
    ended_at: Instant.nullable().describe('End of its last anomaly; null while it is open.'),
    seen_until: Instant.describe('The last time at which one of its anomalies was seen.'),
    told_at: Instant.nullable().describe(
      'When its first anomaly alarmed; null where all are muted. One notification for each incident is due then.',
    ),
    updated_at: Instant.describe('When a run or a person last changed one of its anomalies.'),
    muted: z.boolean().describe('True while all of its anomalies are muted.'),
    verdict: Verdict.nullable().describe(
      '`real` where one of its anomalies has this verdict, `not_an_anomaly` where all of them have it, otherwise null.',
    ),
    services: z.array(z.string()).describe('Services of its anomalies, by their first anomaly.'),
    metric_keys: z.array(z.string()).describe('Metrics of its anomalies, by their first anomaly.'),
    anomaly_count: z.int(),
    anomaly_ids: z.array(z.string()).describe(`By start; the first ${membersMax}.`),
    origin: IncidentOrigin.describe('The likeliest origin, which is the first of the candidates.'),
  })
  .describe('Anomalies of your organisation that belong together.')
  .meta({ id: 'Incident' })
export type Incident = z.infer<typeof Incident>

export const IncidentMember = Anomaly.pick({
  detector_id: true,
  metric_key: true,
  group: true,
  started_at: true,
  ended_at: true,
  seen_until: true,
  score: true,
  reason: true,
  muted: true,
})
  .extend({
    anomaly_id: z.string(),
    service,
    verdict: Verdict.nullable(),
    because: z.array(MemberLink).describe('Why it belongs to the others; empty where it is the only one.'),
  })
  .meta({ id: 'IncidentMember' })
export type IncidentMember = z.infer<typeof IncidentMember>

export const IncidentEvent = z
  .object({
    at: Instant,
    kind: z.enum(['deploy', 'anomaly_started', 'told', 'anomaly_ended', 'closed']),
    service,
    anomaly_id: z.string().nullable().describe('Null where it is not about an anomaly.'),
    text: z.string().describe('What happened, in a sentence.'),
  })
  .meta({ id: 'IncidentEvent' })
export type IncidentEvent = z.infer<typeof IncidentEvent>

export const IncidentWithMembers = Incident.extend({
  candidates: z
    .array(IncidentOrigin)
    .describe(`Where it may have begun, likeliest first; at most ${candidatesMax}.`),
  members: z.array(IncidentMember).describe(`By start; the first ${membersMax}.`),
  timeline: z.array(IncidentEvent).describe(`By time; the first ${timelineMax}.`),
}).meta({ id: 'IncidentWithMembers' })
export type IncidentWithMembers = z.infer<typeof IncidentWithMembers>

export const IncidentParams = z.object({ incident_id: z.string().max(100) })

export const IncidentListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  state: IncidentState.optional(),
  service: z.string().max(1000).optional().describe('Only those with an anomaly of this service.'),
  range_start: MomentInput.optional().describe(`Only those seen at or after this instant. ${momentForms}`),
  range_end: MomentInput.optional().describe(`Only those that started before this instant. ${momentForms}`),
})
export type IncidentListQuery = z.infer<typeof IncidentListQuery>
