// Organisations and access tokens on the wire.

import { z } from 'zod'
import { Role } from '../role.ts'
import { cursorQuery, DisplayName, Instant, limitQuery } from '../values/fields.ts'

/**
 * Never changes, and short because a person types it to confirm an erasure: 3 to 40 of a-z, 0-9 and hyphen,
 * starting with a letter, not ending with a hyphen.
 */
export const TenantId = z.string().regex(/^[a-z](?:[a-z0-9-]{1,38}[a-z0-9])$/, {
  error:
    'Use 3 to 40 characters of a-z, 0-9 and hyphen, starting with a letter and not ending with a hyphen.',
})

export const Me = z
  .object({
    tenant_id: z.string().describe('Your organisation; type it as `confirm`.'),
    organisation_name: z.string(),
    role: Role,
    token_id: z
      .string()
      .describe(
        'The id of your access token, also where a session of the console stands for it. A page of a session sends it with each request, as `Lethe-Token-Id`; the session of another token is refused with `other_token`.',
      ),
    requester: z.string().describe('The name under which your actions are recorded.'),
  })
  .describe('Who you are to this service.')
  .meta({ id: 'Me' })
export type Me = z.infer<typeof Me>

export const Organisation = z
  .object({
    tenant_id: z.string(),
    name: z
      .string()
      .describe(
        'Set by the operator who created it. It never changes, because certificates name it by its hash.',
      ),
    created_at: Instant,
  })
  .describe('Your organisation.')
  .meta({ id: 'Organisation' })

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
      .describe(
        'Signed checkpoints of both chains, as the operator keeps them: compact JWS. Your tokens stop working now.',
      ),
  })
  .describe('The organisation is removed; its ledger, audit log and certificates stay with the operator.')
  .meta({ id: 'OrganisationRemoved' })
export type OrganisationRemoved = z.infer<typeof OrganisationRemoved>

/** A use is recorded when the last recorded use is older than this, so few requests of a busy token write. */
export const tokenUseMinutes = 5

export const AccessToken = z
  .object({
    id: z.string(),
    name: z.string(),
    role: Role,
    prefix: z.string().describe('The first characters of the secret, to identify it.'),
    created_at: Instant,
    created_by: z.string(),
    last_used_at: Instant.nullable().describe(
      `When it was last used, itself or by a session of the console; at most ${tokenUseMinutes} minutes too early. Null where no use is recorded.`,
    ),
    expires_at: Instant.nullable(),
    revoked_at: Instant.nullable(),
    made_with: z
      .string()
      .nullable()
      .describe('The id of the token that created it; null where the operator created it.'),
    line_expires_at: Instant.nullable().describe(
      'The earliest expiry among this token and the tokens that it descends from. No token created with it lasts longer. Earlier than `expires_at` only on tokens that an old version created.',
    ),
    live_descendants: z
      .int()
      .describe(
        'Number of its descendants that work now. They are not revoked with it unless the request says so.',
      ),
  })
  .meta({ id: 'AccessToken' })
export type AccessToken = z.infer<typeof AccessToken>

export const TokenListQuery = z.strictObject({
  limit: limitQuery,
  cursor: cursorQuery,
  active: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true` for tokens that work now, `false` for those that are revoked or have expired.'),
  descendants_of: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Only tokens that were made with this one, directly or through others: what a revocation with `descendants=true` ends.',
    ),
})

export const RevokeQuery = z.strictObject({
  descendants: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      '`true` also revokes all its descendants, also where the token itself is revoked already. Where absent, they keep working: the token of a collector should not end when the token that created it is replaced.',
    ),
})

export const RevokedAccessToken = AccessToken.extend({
  revoked_descendants: z.int().describe('Number of descendants that this request revoked.'),
})
  .describe(
    'The token is revoked. Where `live_descendants` is not 0, some descendants still work; send the request again with `descendants=true` to revoke them.',
  )
  .meta({ id: 'RevokedAccessToken' })
export type RevokedAccessToken = z.infer<typeof RevokedAccessToken>

/**
 * Characters that change how others look, or that one does not see: accents and other marks, joiners,
 * fillers, selectors, and every space but the usual one.
 */
const unseen = /(?! )[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zs}\u2800]/gu

/**
 * Whether a person may read a word in the name that begins with `tok_`. Forms of a letter, such as wide ones,
 * count as it.
 */
function showsTokenId(name: string): boolean {
  const shown = name.replace(unseen, '').normalize('NFKD').replace(unseen, '')
  return /(?<![\p{L}\p{N}])tok_/iu.test(shown)
}

/**
 * Records show a token as `token:NAME (tok_…)`, with its own id at the end. A name with an id would look like
 * another token to a person who reads the first id. Letters of other scripts that look like these are
 * accepted.
 */
export const TokenName = DisplayName.refine((name) => !showsTokenId(name), {
  error:
    'Use a name without a word that begins with “tok_”: ids do, and records show the id, so the name would look like another token',
}).describe('What uses the token. Records show it with the id. No word of it may begin with `tok_`.')

export const CreateAccessToken = z
  .strictObject({
    name: TokenName,
    role: Role,
    expires_in_days: z
      .int()
      .min(1)
      .max(3650)
      .optional()
      .describe(
        'At most the remaining time of the token that creates it. Where absent, the same expiry as that token, which may be none.',
      ),
  })
  .meta({ id: 'CreateAccessToken' })

export const CreatedAccessToken = AccessToken.extend({
  token: z.string().describe('The secret. It is shown only once; the service stores only its hash.'),
}).meta({ id: 'CreatedAccessToken' })
