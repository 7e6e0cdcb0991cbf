// The settings of the service as environment variables: for each a Zod schema, and its text for
// docs/operating.md. A problem is worded to follow the name of its variable, and says what to change. It
// repeats the refused value, unless that may contain a secret.

import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { TenantId } from '../../contract/organisation/tenancy.ts'
import { AddressProblem } from '../control/address-problem.ts'
import { type ControlAddress, readControlAddress } from '../control/control-address.ts'
import { ClientAddresses, proxyHeaders } from '../http/limits/client-address.ts'
import { secretLengthMax, secretLengthMin } from '../tenancy/tenancy.ts'

/** A setting in the table of docs/operating.md; every text is Markdown. */
interface SettingDescription {
  readonly description: string
  /** The default where the variable is absent or empty. */
  readonly default: string
  /** The accepted values. */
  readonly values: string
  readonly unit?: string
}

/** The description of every schema in {@link Settings}. */
export const settingDescriptions = z.registry<SettingDescription>()

const code = (text: string | number) => `\`${text}\``

/** The default port of OpenTelemetry clients. */
export const grpcPortDefault = 4317

/**
 * A network behind one address may have hundreds of senders, and one attacker must not get all connections.
 */
export const connectionsPerAddressDefault = 1024

const portMax = 65_535
const diskMiBMax = 65_536
const watchdogSeconds = { min: 10, max: 3600 }

interface IntegerRule {
  readonly min: number
  readonly max: number
  readonly unit?: string
}

function isWithin(text: string, { min, max }: IntegerRule): boolean {
  return /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max
}

function range({ min, max }: IntegerRule): string {
  return max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`
}

/** A whole number in decimal digits. */
function integerText(rule: IntegerRule) {
  return z
    .string()
    .refine((text) => isWithin(text, rule), {
      error: ({ input }) => `must be an integer from ${rule.min} to ${rule.max}, not "${input}".`,
    })
    .transform(Number)
}

function integer(rule: IntegerRule & { readonly default: number }, description: string) {
  return integerText(rule)
    .default(rule.default)
    .register(settingDescriptions, {
      description,
      default: code(rule.default),
      values: range(rule),
      ...(rule.unit !== undefined && { unit: rule.unit }),
    })
}

/** A number that limits an organisation; null is no limit. */
function limit(unit: string, description: string) {
  const rule = { min: 0, max: Number.MAX_SAFE_INTEGER, unit }
  return integerText(rule)
    .transform((value) => value || null)
    .default(null)
    .register(settingDescriptions, { description, default: 'no limit', values: range(rule), unit })
}

/** A port, or `off` for none: null. */
function portOrOff(absent: string, description: string) {
  const rule = { min: 0, max: portMax }
  return z
    .string()
    .refine((text) => text === 'off' || isWithin(text, rule), {
      error: ({ input }) => `must be an integer from ${rule.min} to ${rule.max}, or off, not "${input}".`,
    })
    .transform((text) => (text === 'off' ? null : Number(text)))
    .optional()
    .register(settingDescriptions, {
      description,
      default: absent,
      values: `${range(rule)}, or ${code('off')}`,
    })
}

function oneOf<const T extends readonly [string, ...string[]]>(
  values: T,
  fallback: T[number],
  description: string,
) {
  return z
    .enum(values, { error: ({ input }) => `must be one of ${values.join(', ')}, not "${input}".` })
    .default(fallback)
    .register(settingDescriptions, {
      description,
      default: code(fallback),
      values: values.map(code).join(', '),
    })
}

function text(rule: { readonly default: string; readonly values: string }, description: string) {
  return z
    .string()
    .default(rule.default)
    .register(settingDescriptions, { description, default: code(rule.default), values: rule.values })
}

/** A path whose default is in the data folder. */
function pathInDataFolder(name: string, description: string) {
  return z
    .string()
    .optional()
    .register(settingDescriptions, {
      description,
      default: `${code(name)} in the data folder`,
      values: 'path',
    })
}

/** A text that no problem repeats. Null where it is absent. */
function secret(absent: string, description: string) {
  const length = `${secretLengthMin} to ${secretLengthMax}`
  return z
    .string()
    .regex(new RegExp(`^[\\x21-\\x7e]{${secretLengthMin},${secretLengthMax}}$`), {
      error: `must have ${length} visible ASCII characters.`,
    })
    .nullable()
    .default(null)
    .register(settingDescriptions, { description, default: absent, values: `secret of ${length} characters` })
}

/** A file whose one line is a secret, which no problem repeats. Null where the setting is absent. */
function secretFile(description: string) {
  return z
    .string()
    .transform((path, context) => {
      const refuse = (message: string) => {
        context.issues.push({ code: 'custom', input: undefined, message })
        return z.NEVER
      }
      let text: string
      try {
        text = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
      } catch (error) {
        const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
        return refuse(`names ${path}, which can't be read (${reason}).`)
      }
      return /^[^\0\r\n]+$/.test(text) ? text : refuse(`names ${path}, which must have one line and has not.`)
    })
    .nullable()
    .default(null)
    .register(settingDescriptions, { description, default: 'none', values: 'path' })
}

/** Addresses of stores may contain a password, so their problems don't repeat them. */
function storeAddress(scheme: string) {
  return z
    .string()
    .refine((text) => text.startsWith(scheme), {
      error: `must start with ${scheme} in this version.`,
      abort: true,
    })
    .transform((text) => text.slice(scheme.length).replace(/^\/\//, ''))
}

/** The path of SQLite's file, or the address of a PostgreSQL server. */
const controlAddress = z.string().transform((text, context): ControlAddress | undefined => {
  try {
    return readControlAddress(text)
  } catch (error) {
    if (!(error instanceof AddressProblem)) throw error
    // The address may have a password, so the problem has no input.
    context.issues.push({ code: 'custom', input: undefined, message: error.message })
    return z.NEVER
  }
})

const proxies = z.string().transform((text, context) => {
  const entries = text.split(',').map((entry) => entry.trim())
  const named = entries.filter((entry) => entry !== '')
  try {
    new ClientAddresses(named, 'x-forwarded-for')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    context.issues.push({
      code: 'custom',
      input: text,
      message: `must be addresses and networks, separated by commas: ${reason}`,
    })
  }
  return named
})

/** Every setting, in the order of the table. An empty variable counts as absent; the caller leaves it out. */
export const Settings = z.object({
  // Loopback by default: the operator must decide to open the service to others.
  LETHE_HOST: text(
    { default: '127.0.0.1', values: 'address' },
    'address to listen on; `0.0.0.0` or `::` opens the service to other machines',
  ),
  // 8080 is what people try first; 0 is for tests.
  LETHE_PORT: integer(
    { default: 8080, min: 0, max: portMax },
    'port of HTTP; for `0` the system chooses one',
  ),
  // Where the system chooses the HTTP port, the service is one of several on its machine, so the system
  // chooses this port too.
  LETHE_GRPC_PORT: portOrOff(
    `${code(grpcPortDefault)}; \`0\` where \`LETHE_PORT\` is \`0\``,
    'port of OTLP/gRPC on the same address',
  ),
  LETHE_ADMIN_PORT: portOrOff('`off`', 'port of the [admin listener](#the-admin-listener)'),
  // Only people who may see the state of the machine have access to it, or to a network that the operator
  // names.
  LETHE_ADMIN_HOST: text(
    { default: '127.0.0.1', values: 'address' },
    'address of the admin listener. It needs no token: use a private network',
  ),
  LETHE_DOCS: oneOf(
    ['on', 'admin'],
    'on',
    '`on`: the main port has `/docs` and `/openapi.json`; `admin`: only the admin listener has them',
  ),
  LETHE_TRUSTED_PROXIES: proxies.default([]).register(settingDescriptions, {
    description:
      'reverse proxies that are believed when they name their client; see [Behind a reverse proxy](#behind-a-reverse-proxy)',
    default: 'none',
    values: 'addresses and networks, separated by commas',
  }),
  LETHE_PROXY_HEADER: oneOf(
    proxyHeaders,
    'x-forwarded-for',
    'the header in which they name it; `forwarded` is that of RFC 7239. The other one is never read',
  ),
  // An idle connection takes some 15 kB, so that all of them take 60 MB.
  LETHE_CONNECTIONS: integer(
    { default: 4096, min: 16, max: 100_000 },
    'HTTP connections at once. At the limit a connection without a valid token, then an idle one, is closed for a new one',
  ),
  LETHE_CONNECTIONS_PER_ADDRESS: integerText({ min: 4, max: 100_000 })
    .optional()
    .register(settingDescriptions, {
      description:
        'the same from one address. Connections of a trusted proxy count for `LETHE_CONNECTIONS` alone',
      default: `${code(connectionsPerAddressDefault)}, and \`LETHE_CONNECTIONS\` at most`,
      values: '4 to `LETHE_CONNECTIONS`',
    }),
  LETHE_DATA_DIR: text(
    { default: './data', values: 'path' },
    'folder for everything that the service stores',
  ),
  LETHE_CONTROL_URL: controlAddress.optional().register(settingDescriptions, {
    description: 'the control-plane database; see [PostgreSQL](#the-control-plane-on-postgresql)',
    default: '`control.db` in the data folder',
    values: '`sqlite:` and a path, or `postgres://user:password@host:5432/database`',
  }),
  LETHE_CONTROL_PASSWORD_FILE: secretFile(
    'file with the password for PostgreSQL, in place of one in `LETHE_CONTROL_URL`; SQLite has none',
  ),
  LETHE_TELEMETRY_URL: storeAddress('chdb:')
    .refine((path) => path === '', { error: 'takes no path: the engine’s files are in LETHE_DATA_DIR.' })
    .default('')
    .register(settingDescriptions, {
      description: 'the telemetry engine; this version has the embedded one only',
      default: '`chdb:`',
      values: '`chdb:`',
    }),
  // docs/decisions/0024 has the space that erasing needs on a full disk.
  LETHE_RESERVE_MB: integer(
    { default: 64, min: 0, max: diskMiBMax, unit: 'MiB' },
    'disk space that is kept for erasing on a [full disk](#a-full-disk); `0` keeps none',
  ),
  LETHE_KEY_FILE: pathInDataFolder(
    'signing.key',
    'file with the key that seals the signing keys; created at the first start. **No backup contains it**: keep a copy ([backup.md](backup.md))',
  ),
  LETHE_KEY_SECRET: secret('none', 'seals the signing keys in place of the file'),
  LETHE_OLD_KEY_SECRET: secret('none', 'only for `lethe keys reseal`: the secret that sealed them before'),
  LETHE_BACKUP_DIR: pathInDataFolder(
    'backups',
    'folder for backups and the journal of erasures; better on another disk',
  ),
  // An erasure is complete only when the last older backup is removed: a month, the time that GDPR allows for
  // a response.
  LETHE_BACKUP_KEEP_DAYS: integer(
    { default: 30, min: 1, max: 3650, unit: 'days' },
    'age at which the service removes a backup, unless `backup create` names another',
  ),
  // Enough for a scan of a month on a small machine; below 512 MiB merges of wide parts begin to fail.
  LETHE_ENGINE_MEMORY_MB: integer(
    { default: 2048, min: 512, max: 1_048_576, unit: 'MiB' },
    'memory that the telemetry engine may use',
  ),
  // A longer delay makes commits larger and cheaper (a second saves a third of the CPU), a shorter one
  // acknowledges sooner.
  LETHE_COMMIT_DELAY_MS: integer(
    { default: 200, min: 0, max: 5_000, unit: 'ms' },
    'how long a commit waits for more rows. Longer costs less CPU, shorter acknowledges sooner',
  ),
  // docs/decisions/0007 and 0022 have the cost, and the reason for the default.
  LETHE_FSYNC: oneOf(
    ['on', 'files', 'off'],
    'on',
    'how a commit reaches the disk: one sync of the file system, a sync for each file, or none. After power loss with `off`, half a minute of acknowledged telemetry may be gone',
  ),
  LETHE_INGEST_BUFFER_MB: integer(
    { default: 256, min: 1, max: diskMiBMax, unit: 'MiB' },
    'memory for rows that wait or are being committed, and as much again for request bodies. Organisations share it fairly; past it the one with the most gets 503',
  ),
  // Larger than what SDKs and Collectors send, smaller than what would block the event loop for long.
  LETHE_INGEST_BODY_MB: integer(
    { default: 16, min: 1, max: 256, unit: 'MiB' },
    'largest body of an ingest request after decompression',
  ),
  LETHE_QUOTA_ROWS_PER_SECOND: limit(
    'rows a second',
    'what an organisation may send, unless `lethe quota set` says otherwise for it; `0` is no limit',
  ),
  LETHE_QUOTA_BYTES_PER_DAY: limit('bytes a UTC day', 'the same in uncompressed bytes'),
  LETHE_BOOTSTRAP_ORG: z
    .string()
    .refine((text) => TenantId.safeParse(text).success, {
      error:
        'must have 3 to 40 characters of a-z, 0-9 and hyphen, starting with a letter and not ending with a hyphen.',
    })
    .nullable()
    .default(null)
    .register(settingDescriptions, {
      description: 'organisation to create at the start where it doesn’t exist',
      default: '`default` in an empty data folder',
      values: 'tenant_id',
    }),
  LETHE_BOOTSTRAP_TOKEN: secret('generated, and printed once', 'owner token of that organisation'),
  // scripts/supervisor.mjs reads it, and here it is checked. Below ten seconds a statement that is only slow
  // would end the service.
  LETHE_WATCHDOG_SECONDS: z
    .string()
    .refine((text) => text === 'off' || isWithin(text, watchdogSeconds), {
      error: ({ input }) => `must be an integer from ${range(watchdogSeconds)}, or off, not "${input}".`,
    })
    .default('60')
    .register(settingDescriptions, {
      description:
        'how long the event loop may be blocked before the [watchdog](#the-watchdog) ends and restarts the service; five times as long where it is busy. `off`: no restarts, after a crash neither',
      default: code(60),
      values: `${range(watchdogSeconds)}, or ${code('off')}`,
      unit: 's',
    }),
  LETHE_LOG_LEVEL: oneOf(
    ['debug', 'info', 'warn', 'error', 'silent'],
    'info',
    'the least severe lines that are logged',
  ),
})
