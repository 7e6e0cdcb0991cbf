// What an organisation stores, on the wire.

import { z } from 'zod'
import { Instant } from './common.ts'

const Amount = {
  rows: z.int(),
  bytes: z
    .int()
    .describe('Compressed bytes on disk; where organisations share a partition, the share by rows.'),
}

export const StorageUsage = z.object({
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
