// The context of one anomaly, on the wire: similar anomalies, anomalies of the same incident, what its events
// have in common, and links.

import { z } from 'zod'
import { Deploy } from '../telemetry/deploys.ts'
import { Instant } from '../values/fields.ts'
import { Anomaly } from './detectors.ts'

const share = z.number().describe('0 to 1.')

const relatedText =
  'Anomalies that may belong to the same incident: they overlap in time, with a tolerance of 15 minutes, and are of the same service or began within an hour of each other. Computed on request.'

export const RelatedAnomalies = z
  .object({
    count: z.int().describe('At most 1000 anomalies of that time are compared.'),
    anomalies: z
      .array(
        z.object({
          id: z.string(),
          started_at: Instant,
          metric_key: z.string(),
          group: Anomaly.shape.group,
          reason: z.string(),
          because: z
            .array(z.enum(['same_service', 'began_together']))
            .describe('In addition to the overlap in time; at least one.'),
        }),
      )
      .describe('The 20 that began closest to it, closest first.'),
  })
  .describe(relatedText)
  .meta({ id: 'RelatedAnomalies' })
export type RelatedAnomalies = z.infer<typeof RelatedAnomalies>

const relatedIds = z
  .array(z.string())
  .describe(`${relatedText} The 20 that began closest to it, closest first.`)

export const AnomalyContext = z
  .object({
    similar: z
      .object({
        count: z.int().describe('At most 500 of the detector are compared.'),
        latest: z.array(z.object({ id: z.string(), started_at: Instant, reason: z.string() })),
      })
      .describe('Earlier anomalies of the same series.'),
    contributors: z
      .object({
        summary: z.string().describe('Such as "41 of 43 spans were slower than 420 ms".'),
        values: z.array(
          z.object({
            key: z.string(),
            value: z.string(),
            share: share.describe('Of the events concerned that have it, 0 to 1.'),
            share_before: share.describe('Of all events before that had it, 0 to 1.'),
          }),
        ),
        is_partial: z.boolean().describe('Some of the time is erased, and was not counted.'),
      })
      .nullable()
      .describe(
        'Attribute values that are over-represented in its time against before; null for metrics that are not counted from spans or log records, and where it could not be computed in time.',
      ),
    links: z.object({
      detector: z.string(),
      series: z.string().describe('The series around it.'),
      events: z.string().nullable().describe('Its spans or log records.'),
    }),
    related: RelatedAnomalies,
    deploys: z
      .array(Deploy)
      .describe(
        'Deploys of any service from six hours before it on, while it lasted and for a quarter of an hour after; the 20 closest to its start, oldest first.',
      ),
  })
  .meta({ id: 'AnomalyContext' })
export type AnomalyContext = z.infer<typeof AnomalyContext>

/** One item of `GET /anomalies`. */
export const ListedAnomaly = Anomaly.extend({
  related_ids: relatedIds,
  incident_id: z
    .string()
    .nullable()
    .describe(
      'The incident that it belongs to, as `GET /incidents/{id}` has it. Computed on request; null where computing it took too long, in long lists of busy days.',
    ),
  deploy: Deploy.nullable().describe(
    'The deploy of its service that it began with, at most half an hour after and a quarter before; `reason` names it at its end. Computed on request; null where there was none, where it has no service, and where computing it took too long.',
  ),
}).meta({ id: 'ListedAnomaly' })
export type ListedAnomaly = z.infer<typeof ListedAnomaly>

export const AnomalyWithContext = ListedAnomaly.extend({ context: AnomalyContext }).meta({
  id: 'AnomalyWithContext',
})
