// What an organisation stores and what it has sent, on the wire.

import { z } from 'zod'
import { Instant } from './common.ts'

const Amount = {
  rows: z.int(),
  bytes: z
    .int()
    .describe(
      'Compressed bytes on disk; where organisations share a placement, an estimate from your own rows.',
    ),
}

export const StorageUsage = z
  .object({
    tenant_id: z.string(),
    rows: z.int(),
    bytes: z.int(),
    oldest: Instant.nullable(),
    newest: Instant.nullable(),
    signals: z.array(
      z.object({
        signal: z.enum(['metrics', 'logs', 'traces']),
        ...Amount,
        oldest: Instant.nullable(),
        newest: Instant.nullable(),
        days: z.array(z.object({ day: z.string().meta({ format: 'date' }), ...Amount })),
      }),
    ),
  })
  .meta({ id: 'StorageUsage' })

const IngestCounts = {
  day: z.string().meta({ format: 'date' }).describe('UTC day.'),
  bytes: z.int().describe('Bytes of accepted request bodies, uncompressed.'),
  rows_accepted: z.int().describe('Points, log records and spans that are committed.'),
  rows_rejected: z.int().describe('Those rejected from otherwise accepted requests.'),
  requests_refused: z.int().describe('Whole requests that a quota refused.'),
}

export const IngestUsage = z
  .object({
    tenant_id: z.string(),
    limits: z
      .object({
        rows_per_second: z.int().nullable(),
        burst_rows: z.int().nullable().describe('Rows that may come at once after a pause.'),
        bytes_per_day: z.int().nullable(),
      })
      .describe('The quota that the operator has set; null where there is no limit.'),
    today: z.object(IngestCounts),
    resets_at: Instant.describe('When the next UTC day begins.'),
    days: z.array(z.object(IngestCounts)).describe('Days with telemetry, newest first, at most 31.'),
  })
  .describe('What your organisation has sent, and what it may send.')
  .meta({ id: 'IngestUsage' })
