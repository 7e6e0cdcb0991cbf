// Evidence on the wire: the audit log, which records who did what in a hash chain, so that a later change of
// an entry or of the order is noticed; and the public keys that verify signatures.

import { z } from 'zod'
import { DeletionStatus, LedgerEntry } from '../deletion/requests.ts'
import { cursorQuery, Instant, limitQuery, pageOf } from '../values/fields.ts'
import { MomentInput, momentForms } from '../values/instant.ts'

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
  .meta({ id: 'AuditEntry' })

/** Longer than any actor, action or id of an entry. */
const factText = z.string().min(1).max(300)

const chainQuery = {
  limit: limitQuery,
  cursor: cursorQuery,
  range_start: MomentInput.optional().describe(`Only entries at or after this time. ${momentForms}`),
  range_end: MomentInput.optional().describe(`Only entries before this time. ${momentForms}`),
  actor: factText.optional().describe('Only of this actor, exactly as entries have it.'),
}

export const AuditLogQuery = z.strictObject({
  ...chainQuery,
  action: factText
    .regex(/^[a-z_]+(?:\.[a-z_]+)?$/, {
      error: 'Write an action such as deletion.requested, or its noun alone',
    })
    .optional()
    .describe('Only this action; a noun alone, such as `deletion`, selects all of its actions.'),
  target: factText
    .optional()
    .describe('Only about this id: of a deletion request, a token, a hold or whatever `target` has.'),
  outcome: z.enum(['accepted', 'refused']).optional(),
})

export const LedgerQuery = z.strictObject({
  ...chainQuery,
  request_id: z.string().max(100).optional().describe('Only of this deletion request.'),
  to_status: DeletionStatus.optional().describe('Only changes to this status.'),
})

/** Of an export: a link of a page has no header, in which other requests name the token that it shows. */
export const ExportQuery = z.strictObject({
  token_id: factText
    .optional()
    .describe(
      'The id of your access token, where a link of a page names the one that the page shows; that of another token is refused with `other_token`.',
    ),
})

/** A page of a filtered chain: it may be empty and still have a cursor. */
function chainPageOf<T extends z.ZodType>(entry: T) {
  return pageOf(entry).extend({
    next_cursor: z
      .string()
      .nullable()
      .describe(
        'Pass it as `cursor` to get the next page, also after an empty one: with a filter, a page ends when it has searched as many entries as one page may. Null on the last page.',
      ),
  })
}
export const AuditPage = chainPageOf(AuditEntry).meta({ id: 'AuditLogPage' })
export const LedgerPage = chainPageOf(LedgerEntry).meta({ id: 'LedgerPage' })

export const Jwks = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        kid: z.string().describe('Thumbprint of the key by RFC 7638; in the header of what it signed.'),
        alg: z.string(),
        use: z.literal('sig'),
      }),
    ),
  })
  .describe('A JWK Set (RFC 7517), newest key first. A key is never removed from it.')
  .meta({ id: 'Jwks' })
