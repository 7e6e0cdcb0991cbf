// Organisations, roles and access tokens on the wire.

import { z } from 'zod'
import { DisplayName, Instant } from './common.ts'

/** Roles of people and tokens. `ingest` may only write telemetry. */
export const roles = ['owner', 'admin', 'member', 'viewer', 'ingest'] as const
export const Role = z.enum(roles).meta({ id: 'Role' })
export type Role = z.infer<typeof Role>

/** Who erases, governs and reads evidence. */
export const administrators = ['owner', 'admin'] as const satisfies readonly Role[]
/** Who changes what detectors do. */
export const editors = ['owner', 'admin', 'member'] as const satisfies readonly Role[]
/** Who reads telemetry and what was found in it. */
export const readers = ['owner', 'admin', 'member', 'viewer'] as const satisfies readonly Role[]
/** Who sends telemetry. */
export const senders = ['owner', 'admin', 'member', 'ingest'] as const satisfies readonly Role[]

/**
 * Immutable and human-typable, because a person types it to confirm an erasure: 3 to 40 of a-z, 0-9 and
 * hyphen, starting with a letter, not ending with a hyphen.
 */
export const TenantId = z.string().regex(/^[a-z](?:[a-z0-9-]{1,38}[a-z0-9])$/, {
  error:
    'Use 3 to 40 characters of a-z, 0-9 and hyphen, starting with a letter and not ending with a hyphen.',
})

export const Me = z
  .object({
    tenant_id: z.string().describe('Your organisation; the word to type into confirm.'),
    organisation_name: z.string(),
    role: Role,
    requester: z.string().describe('The name under which your acts are recorded.'),
  })
  .describe('Who you are to this service.')
  .meta({ id: 'Me' })
export type Me = z.infer<typeof Me>

export const RemoveOrganisation = z
  .strictObject({
    confirm: z.string().describe('The tenant_id of your organisation, typed by a person.'),
  })
  .meta({ id: 'RemoveOrganisation' })

export const OrganisationRemoved = z
  .object({
    tenant_id: z.string(),
    removed_at: Instant,
    checkpoints: z
      .object({ ledger: z.string(), audit: z.string() })
      .describe('Signed ends of both chains as the operator keeps them: compact JWS. Your tokens end here.'),
  })
  .describe('The organisation is removed; its ledger, audit log and certificates stay with the operator.')
  .meta({ id: 'OrganisationRemoved' })
export type OrganisationRemoved = z.infer<typeof OrganisationRemoved>

export const AccessToken = z
  .object({
    id: z.string(),
    name: z.string(),
    role: Role,
    prefix: z.string().describe('The first characters of the secret, to recognise it by.'),
    created_at: Instant,
    created_by: z.string(),
    expires_at: Instant.nullable(),
    revoked_at: Instant.nullable(),
    made_with: z
      .string()
      .nullable()
      .describe('The id of the token it was made with; null where the operator made it.'),
    line_expires_at: Instant.nullable().describe(
      'The earliest expiry of it and of the tokens it descends from: nothing that is made with it lasts longer. Before `expires_at` only on tokens of versions that did not keep to this.',
    ),
    live_descendants: z
      .int()
      .describe('Tokens that work now and were made with it, at any distance; it can end without them.'),
  })
  .meta({ id: 'AccessToken' })
export type AccessToken = z.infer<typeof AccessToken>

export const RevokeQuery = z.strictObject({
  descendants: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      '`true` revokes everything that descends from it as well, also where it is revoked already. They stay where absent: a collector’s token should not end because the one that made it is replaced.',
    ),
})

export const RevokedAccessToken = AccessToken.extend({
  revoked_descendants: z.int().describe('Descendants that this request has revoked.'),
})
  .describe(
    'The token is revoked. Where `live_descendants` is not 0, tokens that were made with it go on; repeat with `descendants=true` to end them.',
  )
  .meta({ id: 'RevokedAccessToken' })
export type RevokedAccessToken = z.infer<typeof RevokedAccessToken>

export const CreateAccessToken = z
  .strictObject({
    name: DisplayName,
    role: Role,
    expires_in_days: z
      .int()
      .min(1)
      .max(3650)
      .optional()
      .describe(
        'At most what is left of the token that makes it, and as long as that where absent; never where that does not expire.',
      ),
  })
  .meta({ id: 'CreateAccessToken' })

export const CreatedAccessToken = AccessToken.extend({
  token: z.string().describe('The secret. It is shown this once and kept only as a hash.'),
}).meta({ id: 'CreatedAccessToken' })
