// Evidence on the wire: the audit log, which records who did what in a hash chain, so that a later change of
// an entry or of the order is noticed; and the public keys that verify signatures.

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
  .meta({ id: 'AuditEntry' })

export const ChainQuery = z.strictObject({ limit: limitQuery, cursor: cursorQuery })

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
