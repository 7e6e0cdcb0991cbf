// Operator commands on the control-plane database of this machine. They don't open the telemetry engine, so
// they work beside a running service, which applies a change from its next HTTP request on.

import { TenantId, TokenName } from '../../contract/organisation/tenancy.ts'
import { Role as RoleSchema } from '../../contract/role.ts'
import { DisplayName } from '../../contract/values/fields.ts'
import { type Config, ConfigError } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { dropLooserRule } from '../deletion/governance/policy.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { openAndWork, operator, requireOrganisation, withControl } from './open-control.ts'
import { type JsonOption, print, printJson } from './print.ts'

const msPerDay = 86_400_000

export async function createOrganisation(
  config: Config,
  tenantId: string,
  options: JsonOption & { name?: string },
): Promise<void> {
  const valid = TenantId.safeParse(tenantId)
  if (!valid.success)
    throw new ConfigError(`"${tenantId}" is not a valid tenant_id. ${valid.error.issues[0]?.message ?? ''}`)
  const name = readName('--name', options.name ?? tenantId, DisplayName)
  // The detectors need much of the service; no other command here loads that.
  const { foundOrganisation } = await import('../app/found-organisation.ts')
  await withTenancy(
    config,
    async (tenancy) => {
      const secret = newTokenSecret('owner')
      const organisation = { tenantId, name, actor: operator }
      await tenancy.createOrganisation(organisation, (trx, nowMs) =>
        foundOrganisation(trx, organisation, secret, nowMs),
      )
      if (options.json) printJson({ tenant_id: tenantId, name, token: secret })
      else print(secret)
    },
    true,
  )
}

export async function listOrganisations(config: Config, options: JsonOption): Promise<void> {
  await withTenancy(config, async (tenancy) => {
    const items = (await tenancy.describeOrganisations()).map(({ createdAtMs, name, tenantId }) => ({
      tenant_id: tenantId,
      name,
      created_at: instantText(createdAtMs),
    }))
    if (options.json) return printJson({ items })
    for (const { created_at, name, tenant_id } of items) {
      print(`${tenant_id.padEnd(40)}  founded ${created_at}  ${name}`)
    }
  })
}

export async function createToken(
  config: Config,
  options: JsonOption & { org: string; role: string; name: string; days?: string },
): Promise<void> {
  const days = options.days === undefined ? null : Number(options.days)
  if (days !== null && !(Number.isInteger(days) && days >= 1 && days <= 3650)) {
    throw new ConfigError('--days must be an integer from 1 to 3650.')
  }
  await withTenancy(config, async (tenancy) => {
    await requireOrganisation(tenancy, options.org)
    const expiresAtMs = days === null ? null : systemClock.nowMs() + days * msPerDay
    const role = RoleSchema.parse(options.role)
    const secret = newTokenSecret(role)
    const name = readName('--name', options.name, TokenName)
    const fields = { tenantId: options.org, name, role, expiresAtMs, secret, actor: operator }
    const token = await tenancy.createToken(fields)
    if (options.json) printJson({ ...token, token: secret })
    else print(secret)
  })
}

export async function listTokens(config: Config, options: JsonOption & { org: string }): Promise<void> {
  await withTenancy(config, async (tenancy) => {
    await requireOrganisation(tenancy, options.org)
    const items = await tenancy.listTokens(options.org, { limit: 500, beforeId: null })
    if (options.json) return printJson({ items })
    for (const token of items) {
      const state =
        token.revoked_at !== null ? `revoked ${token.revoked_at}` : `expires ${token.expires_at ?? 'never'}`
      const below = token.live_descendants === 0 ? '' : `  (working descendants: ${token.live_descendants})`
      const used = token.last_used_at === null ? 'never used' : `used ${token.last_used_at}`
      print(
        `${token.id}  ${token.role.padEnd(6)}  ${token.prefix.padEnd(18)}  ${state}  ${used}  ${token.name}${below}`,
      )
    }
  })
}

export async function revokeToken(
  config: Config,
  id: string,
  options: JsonOption & { org: string; withDescendants?: boolean },
): Promise<void> {
  await withTenancy(config, async (tenancy) => {
    await requireOrganisation(tenancy, options.org)
    const known = await tenancy.listTokens(options.org, { limit: 1, beforeId: `${id}~` })
    if (known[0]?.id !== id)
      throw new ConfigError(`The organisation ${options.org} has no token ${id}; see token list.`)
    const token = await tenancy.revokeToken({
      tenantId: options.org,
      id,
      actor: operator,
      actorRole: 'owner',
      withDescendants: options.withDescendants === true,
      onAdministratorRevoked: dropLooserRule,
    })
    if (options.json) return printJson(token)
    print(`${token.id} revoked ${token.revoked_at}`)
    if (token.revoked_descendants > 0) print(`descendants revoked too: ${token.revoked_descendants}`)
    if (token.live_descendants > 0) {
      print(`descendants that still work: ${token.live_descendants}; --with-descendants revokes them`)
    }
  })
}

function readName(option: string, name: string, schema: typeof DisplayName): string {
  const read = schema.safeParse(name)
  if (!read.success) throw new ConfigError(`${option}: ${read.error.issues[0]?.message ?? 'invalid name'}`)
  return read.data
}

/** `isFirst` allows creating the database; for other commands, a folder without one is a mistyped folder. */
async function withTenancy(
  config: Config,
  work: (tenancy: TenancyStore) => Promise<void>,
  isFirst = false,
): Promise<void> {
  const open = isFirst ? openAndWork : withControl
  await open(config, (control) => work(new TenancyStore(control, systemClock)))
}
