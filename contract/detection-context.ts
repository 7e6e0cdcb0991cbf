// What stands around one anomaly, on the wire: what was like it, what its events have in common, where to look.

import { z } from 'zod'
import { Instant } from './common.ts'
import { Anomaly } from './detection.ts'

const share = z.number().describe('0 to 1.')

export const AnomalyContext = z.object({
  similar: z
    .object({
      count: z.int().describe('At most 500 of the detector are looked through.'),
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
      'Attribute values that are over-represented in its time against before; null for metrics that are not counted from spans or log records, and where it could not be told in time.',
    ),
  links: z.object({
    detector: z.string(),
    series: z.string().describe('The series around it.'),
    events: z.string().nullable().describe('Its spans or log records.'),
  }),
})
export type AnomalyContext = z.infer<typeof AnomalyContext>

export const AnomalyWithContext = Anomaly.extend({ context: AnomalyContext })
