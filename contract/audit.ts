// The audit log on the wire: who did what, in an order and wording that can't be changed afterwards unseen.

import { z } from 'zod'
import { cursorQuery, Instant, limitQuery } from './common.ts'

export const AuditEntry = z
  .object({
    seq: z.int(),
    at: Instant,
    actor: z.string(),
    action: z.string().describe('Noun and verb, such as `deletion.requested`.'),
    target: z.string().nullable(),
    outcome: z.enum(['accepted', 'refused']),
    facts: z.record(z.string(), z.unknown()),
    prev_hash: z.string(),
    hash: z.string().describe('SHA-256 over the RFC 8785 form of this entry without `hash`.'),
  })
  .describe('One act; entries of an organisation form a hash chain.')

export const ChainQuery = z.strictObject({ limit: limitQuery, cursor: cursorQuery })
