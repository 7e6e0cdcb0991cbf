// Every setting of the service, once: name, unit, default, bounds, and why. Settings are environment variables,
// read here and nowhere else. A setting that can't be right stops the start with a sentence that names it.

import { join, resolve } from 'node:path'
import { TenantId } from '../contract/tenancy.ts'
import { ClientAddresses, type ProxyHeader, proxyHeaders } from './http/limits/client-address.ts'
import type { ConnectionLimits } from './http/limits/connections.ts'
import type { CommitSync } from './telemetry/chdb.ts'
import { secretLengthMax, secretLengthMin } from './tenancy/tenancy.ts'

export interface Config {
  /** Address to listen on. Loopback by default: opening the service to others is a decision. */
  readonly host: string
  readonly port: number
  /** Port of OTLP/gRPC on the same address; null where it is switched off. */
  readonly grpcPort: number | null
  /** Where metrics, reference and health are served for whoever runs the service; null where the main port has them. */
  readonly admin: { readonly host: string; readonly port: number } | null
  /** Whether the main port has the reference of all operations; `admin` leaves it to the admin listener. */
  readonly docs: 'on' | 'admin'
  /** Reverse proxies, by address or network, that are believed when they name their client. */
  readonly trustedProxies: readonly string[]
  /** The header in which they name it. */
  readonly proxyHeader: ProxyHeader
  readonly connections: ConnectionLimits
  /** Folder for everything the service keeps: the engine's files and, by default, the control plane. */
  readonly dataDir: string
  /** Path of the SQLite control-plane database. */
  readonly controlPath: string
  /** What seals the signing keys in the control-plane database: the secret where there is one, else what the file holds. */
  readonly keySource: { readonly secret: string | null; readonly file: string }
  /** The secret that sealed them before, for `lethe keys reseal`; null where a file did. */
  readonly oldKeySecret: string | null
  /** Folder for backups and for the journal of erasures that a restore needs. */
  readonly backupDir: string
  /** Days after which the service removes a backup, where the command names no other. */
  readonly backupKeepDays: number
  /** Room on the disk that is kept for erasing when there is no other, bytes; 0 keeps none. */
  readonly reserveBytes: number
  /** Memory the telemetry engine may use, bytes. */
  readonly engineMemoryBytes: number
  /** How long the first row for a placement waits for company, milliseconds. */
  readonly commitDelayMs: number
  /** How acknowledged telemetry is on the disk, so that it survives power loss and not only the end of the process. */
  readonly commitSync: CommitSync
  /** Rows that wait or are being committed, bytes, and as much again for bodies; past it whoever holds the most gets 503. */
  readonly ingestBufferBytes: number
  /** Largest ingest body after decompression, bytes. */
  readonly ingestBodyBytes: number
  /** What an organisation may send where the operator has set nothing for it; null is no limit. */
  readonly quota: { readonly rowsPerSecond: number | null; readonly bytesPerDay: number | null }
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Organisation and owner token to create at start where this organisation doesn't exist. */
  readonly bootstrap: { readonly tenantId: string | null; readonly token: string | null }
}

/** A setting is missing or out of bounds. The message names it and the mend; it never holds a secret. */
export class ConfigError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ConfigError'
  }
}

type Environment = Readonly<Record<string, string | undefined>>

const mebibyte = 1024 * 1024

export function readConfig(env: Environment): Config {
  const dataDir = resolve(text(env, 'LETHE_DATA_DIR', './data'))
  if (requireScheme(env, 'LETHE_TELEMETRY_URL', 'chdb:') !== '') {
    throw new ConfigError('LETHE_TELEMETRY_URL takes no path: the engine’s files are in LETHE_DATA_DIR.')
  }
  return {
    host: text(env, 'LETHE_HOST', '127.0.0.1'),
    // 8080 is what people try first; 0 lets the system choose, for tests.
    port: integer(env, 'LETHE_PORT', { fallback: 8080, min: 0, max: 65_535 }),
    grpcPort: readGrpcPort(env),
    ...readListeners(env),
    dataDir,
    controlPath: requireScheme(env, 'LETHE_CONTROL_URL', 'sqlite:') || join(dataDir, 'control.db'),
    keySource: readKeySource(env, dataDir),
    oldKeySecret: readSecret(env, 'LETHE_OLD_KEY_SECRET'),
    backupDir: readBackupDir(env, dataDir),
    // An erasure is whole only when the last backup from before it is gone: a month, as GDPR gives for an answer.
    backupKeepDays: integer(env, 'LETHE_BACKUP_KEEP_DAYS', { fallback: 30, min: 1, max: 3650 }),
    // docs/decisions/0024 has what erasing needs on a full disk.
    reserveBytes: integer(env, 'LETHE_RESERVE_MB', { fallback: 64, min: 0, max: 65_536 }) * mebibyte,
    // Enough for a month's scan on a small machine; below 512 MiB merges of wide parts begin to fail.
    engineMemoryBytes:
      integer(env, 'LETHE_ENGINE_MEMORY_MB', { fallback: 2048, min: 512, max: 1_048_576 }) * mebibyte,
    // Longer makes commits larger and cheaper (a second saves a third of the CPU), shorter acknowledges quicker.
    commitDelayMs: integer(env, 'LETHE_COMMIT_DELAY_MS', { fallback: 200, min: 0, max: 5_000 }),
    // docs/decisions/0007 and 0022 have the cost, and why it is paid where nothing is said.
    commitSync: oneOf(env, 'LETHE_FSYNC', ['on', 'files', 'off'], 'on'),
    ingestBufferBytes:
      integer(env, 'LETHE_INGEST_BUFFER_MB', { fallback: 256, min: 1, max: 65_536 }) * mebibyte,
    // Above what SDKs and Collectors send, below what would stall the event loop for long.
    ingestBodyBytes: integer(env, 'LETHE_INGEST_BODY_MB', { fallback: 16, min: 1, max: 256 }) * mebibyte,
    quota: {
      rowsPerSecond: limit(env, 'LETHE_QUOTA_ROWS_PER_SECOND'),
      bytesPerDay: limit(env, 'LETHE_QUOTA_BYTES_PER_DAY'),
    },
    logLevel: oneOf(env, 'LETHE_LOG_LEVEL', ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
    bootstrap: readBootstrap(env),
  }
}

/**
 * 4317 is where OpenTelemetry clients look. A service whose other port the system chooses is one of several on its
 * machine, so this one is chosen too.
 */
function readGrpcPort(env: Environment): number | null {
  if (env.LETHE_GRPC_PORT === 'off') return null
  const fallback = env.LETHE_PORT === '0' ? 0 : 4317
  return integer(env, 'LETHE_GRPC_PORT', { fallback, min: 0, max: 65_535 }, ', or off')
}

function readListeners(env: Environment) {
  const adminPort = text(env, 'LETHE_ADMIN_PORT', 'off')
  const admin =
    adminPort === 'off'
      ? null
      : {
          // Whoever may see how the machine is doing is on it, or on a network that the operator names.
          host: text(env, 'LETHE_ADMIN_HOST', '127.0.0.1'),
          port: integer(env, 'LETHE_ADMIN_PORT', { fallback: 0, min: 0, max: 65_535 }, ', or off'),
        }
  const docs = oneOf(env, 'LETHE_DOCS', ['on', 'admin'], 'on')
  if (docs === 'admin' && admin === null) {
    throw new ConfigError('LETHE_DOCS can be admin only where LETHE_ADMIN_PORT is set; set both, or neither.')
  }
  // An idle connection takes some 15 kB, so that all of them take 60 MB. From one address a quarter of them may come:
  // a network behind one address has hundreds of senders, and one attacker must not have them all.
  const total = integer(env, 'LETHE_CONNECTIONS', { fallback: 4096, min: 16, max: 100_000 })
  const perAddress = integer(env, 'LETHE_CONNECTIONS_PER_ADDRESS', {
    fallback: Math.min(1024, total),
    min: 4,
    max: total,
  })
  const proxyHeader = oneOf(env, 'LETHE_PROXY_HEADER', proxyHeaders, 'x-forwarded-for')
  return { admin, docs, connections: { total, perAddress }, proxyHeader, trustedProxies: readProxies(env) }
}

function readProxies(env: Environment): string[] {
  const proxies = text(env, 'LETHE_TRUSTED_PROXIES', '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  try {
    new ClientAddresses(proxies, 'x-forwarded-for')
  } catch (cause) {
    throw new ConfigError(
      `LETHE_TRUSTED_PROXIES must be addresses and networks, separated by commas: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    )
  }
  return proxies
}

/** Absent and 0 are no limit. */
function limit(env: Environment, name: string): number | null {
  return integer(env, name, { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }) || null
}

function readBackupDir(env: Environment, dataDir: string): string {
  const backupDir = resolve(text(env, 'LETHE_BACKUP_DIR', join(dataDir, 'backups')))
  const engineDir = join(dataDir, 'telemetry')
  if (`${backupDir}/`.startsWith(`${engineDir}/`)) {
    throw new ConfigError(`LETHE_BACKUP_DIR must not be in ${engineDir}: a restore replaces what is there.`)
  }
  return backupDir
}

/** A key that lies among the backups would open what is in them. */
function readKeySource(env: Environment, dataDir: string): Config['keySource'] {
  const secret = readSecret(env, 'LETHE_KEY_SECRET')
  if (secret !== null && env.LETHE_KEY_FILE) {
    throw new ConfigError('LETHE_KEY_SECRET and LETHE_KEY_FILE both name the key; set one of them.')
  }
  const file = resolve(text(env, 'LETHE_KEY_FILE', join(dataDir, 'signing.key')))
  if (file.startsWith(`${readBackupDir(env, dataDir)}/`)) {
    throw new ConfigError(
      'LETHE_KEY_FILE must not be in LETHE_BACKUP_DIR: it would open the keys in a backup.',
    )
  }
  return { secret, file }
}

function readSecret(env: Environment, name: string): string | null {
  const secret = env[name] || null
  if (secret === null || new RegExp(`^[\\x21-\\x7e]{${secretLengthMin},${secretLengthMax}}$`).test(secret)) {
    return secret
  }
  throw new ConfigError(
    `${name} must have ${secretLengthMin} to ${secretLengthMax} visible ASCII characters.`,
  )
}

function readBootstrap(env: Environment): Config['bootstrap'] {
  const tenantId = env.LETHE_BOOTSTRAP_ORG || null
  const token = env.LETHE_BOOTSTRAP_TOKEN || null
  const secretShape = new RegExp(`^[\\x21-\\x7e]{${secretLengthMin},${secretLengthMax}}$`)
  if (token !== null && !secretShape.test(token)) {
    throw new ConfigError(
      `LETHE_BOOTSTRAP_TOKEN must have ${secretLengthMin} to ${secretLengthMax} visible ASCII characters.`,
    )
  }
  if (tenantId !== null && !TenantId.safeParse(tenantId).success) {
    throw new ConfigError(
      'LETHE_BOOTSTRAP_ORG must have 3 to 40 characters of a-z, 0-9 and hyphen, starting with a letter and not ending with a hyphen.',
    )
  }
  return { tenantId, token }
}

function text(env: Environment, name: string, fallback: string): string {
  return env[name] || fallback
}

/** The path behind the one scheme that this version speaks; empty where the setting is absent or names no path. */
function requireScheme(env: Environment, name: string, scheme: string): string {
  const value = text(env, name, scheme)
  if (!value.startsWith(scheme)) throw new ConfigError(`${name} must start with ${scheme} in this version.`)
  return value.slice(scheme.length).replace(/^\/\//, '')
}

function integer(
  env: Environment,
  name: string,
  rule: { fallback: number; min: number; max: number },
  also = '',
): number {
  const value = text(env, name, String(rule.fallback))
  const number = Number(value)
  if (!/^\d+$/.test(value) || number < rule.min || number > rule.max) {
    throw new ConfigError(
      `${name} must be an integer from ${rule.min} to ${rule.max}${also}, not "${value}".`,
    )
  }
  return number
}

function oneOf<T extends string>(env: Environment, name: string, values: readonly T[], fallback: T): T {
  const value = text(env, name, fallback)
  const found = values.find((candidate) => candidate === value)
  if (found === undefined)
    throw new ConfigError(`${name} must be one of ${values.join(', ')}, not "${value}".`)
  return found
}
