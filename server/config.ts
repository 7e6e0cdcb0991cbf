// The configuration of the service, from environment variables that are read here and nowhere else. The
// schema of each variable, with its default and bounds, is in config/settings.ts; here they become what the
// rest of the code uses, and contradictions between settings are found. A wrong setting stops the start with
// a sentence that names it.

import { join, resolve } from 'node:path'
import { z } from 'zod'
import { connectionsPerAddressDefault, grpcPortDefault, Settings } from './config/settings.ts'
import { type ControlAddress, hasPassword, withPassword } from './control/control-address.ts'
import type { ProxyHeader } from './http/limits/client-address.ts'
import type { ConnectionLimits } from './http/limits/connections.ts'
import type { CommitSync } from './telemetry/chdb.ts'

export interface Config {
  /** Address to listen on. Loopback by default: the operator must decide to open the service to others. */
  readonly host: string
  readonly port: number
  /** Port of OTLP/gRPC on the same address; null where it is switched off. */
  readonly grpcPort: number | null
  /** The listener of metrics, reference and health for operators; null where the main port has them. */
  readonly admin: { readonly host: string; readonly port: number } | null
  /**
   * Whether the main port has the reference of all operations; with `admin` only the admin listener has it.
   */
  readonly docs: 'on' | 'admin'
  /** Trusted reverse proxies, by address or network: the client that they name is used. */
  readonly trustedProxies: readonly string[]
  /** The header in which they name the client. */
  readonly proxyHeader: ProxyHeader
  readonly connections: ConnectionLimits
  /** Folder for everything that the service stores: the engine's files and, by default, the control plane. */
  readonly dataDir: string
  /** Where the control-plane database is. */
  readonly control: ControlAddress
  /**
   * The source of the key that seals the signing keys in the control-plane database: the secret where there
   * is one, otherwise the file.
   */
  readonly keySource: { readonly secret: string | null; readonly file: string }
  /** The secret that sealed them before, for `lethe keys reseal`; null where it was a file. */
  readonly oldKeySecret: string | null
  /** Folder for backups and for the journal of erasures that a restore needs. */
  readonly backupDir: string
  /** Days after which the service removes a backup, where the command does not say otherwise. */
  readonly backupKeepDays: number
  /** Disk space that is reserved for erasing, bytes; 0 reserves none. */
  readonly reserveBytes: number
  /** Memory that the telemetry engine may use, bytes. */
  readonly engineMemoryBytes: number
  /** How long the first row of a placement waits for others, milliseconds. */
  readonly commitDelayMs: number
  /**
   * How acknowledged telemetry is synced to the disk, so that it survives a power loss and not only the end
   * of the process.
   */
  readonly commitSync: CommitSync
  /**
   * Limit of rows that wait or are being committed, bytes, and of bodies the same again; above it the
   * organisation with the most is refused with 503.
   */
  readonly ingestBufferBytes: number
  /** Largest ingest body after decompression, bytes. */
  readonly ingestBodyBytes: number
  /** Limits of an organisation without limits of its own; null is no limit. */
  readonly quota: { readonly rowsPerSecond: number | null; readonly bytesPerDay: number | null }
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Organisation and owner token to create at the start where the organisation doesn't exist. */
  readonly bootstrap: { readonly tenantId: string | null; readonly token: string | null }
  readonly restarts: Restarts
}

/** Number of restarts by the supervisor of this process, by cause. */
interface Restarts {
  readonly crashed: number
  readonly hung: number
}

/**
 * A setting or an option is wrong. The message names it and says what to change; it never contains a secret.
 */
export class ConfigError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ConfigError'
  }
}

type Environment = Readonly<Record<string, string | undefined>>
/** Set only by scripts/supervisor.mjs, for the service that it starts. */
const Told = z.object({
  LETHE_RESTARTS_CRASHED: z.coerce.number().int().min(0).default(0),
  LETHE_RESTARTS_HUNG: z.coerce.number().int().min(0).default(0),
})

const Given = Settings.extend(Told.shape)
type SettingValues = z.output<typeof Given>

/** Reads the settings of the service. Throws ConfigError with a line for each wrong setting. */
export function readConfig(env: Environment): Config {
  const given = Object.entries(env).filter(([, value]) => value !== '')
  const read = SettingsToConfig.safeParse(Object.fromEntries(given))
  if (read.success) return read.data
  const problems = read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`)
  throw new ConfigError(problems.join('\n'))
}

const mebibyte = 1024 * 1024

/** A transformation runs only where every setting is valid, so it receives values and no problems. */
const SettingsToConfig = Given.transform((settings, context) => {
  const config = toConfig(settings)
  for (const [name, message] of findContradictions(settings, config)) {
    context.addIssue({ code: 'custom', path: [name], message })
  }
  return config
})

function toConfig(settings: SettingValues): Config {
  const dataDir = resolve(settings.LETHE_DATA_DIR)
  const grpcPort = settings.LETHE_PORT === 0 ? 0 : grpcPortDefault
  const adminPort = settings.LETHE_ADMIN_PORT ?? null
  const connections = settings.LETHE_CONNECTIONS
  return {
    host: settings.LETHE_HOST,
    port: settings.LETHE_PORT,
    grpcPort: settings.LETHE_GRPC_PORT === undefined ? grpcPort : settings.LETHE_GRPC_PORT,
    admin: adminPort === null ? null : { host: settings.LETHE_ADMIN_HOST, port: adminPort },
    docs: settings.LETHE_DOCS,
    trustedProxies: settings.LETHE_TRUSTED_PROXIES,
    proxyHeader: settings.LETHE_PROXY_HEADER,
    connections: {
      total: connections,
      perAddress:
        settings.LETHE_CONNECTIONS_PER_ADDRESS ?? Math.min(connectionsPerAddressDefault, connections),
    },
    dataDir,
    control: controlOf(settings, dataDir),
    keySource: {
      secret: settings.LETHE_KEY_SECRET,
      file: resolve(settings.LETHE_KEY_FILE ?? join(dataDir, 'signing.key')),
    },
    oldKeySecret: settings.LETHE_OLD_KEY_SECRET,
    backupDir: resolve(settings.LETHE_BACKUP_DIR ?? join(dataDir, 'backups')),
    backupKeepDays: settings.LETHE_BACKUP_KEEP_DAYS,
    reserveBytes: settings.LETHE_RESERVE_MB * mebibyte,
    engineMemoryBytes: settings.LETHE_ENGINE_MEMORY_MB * mebibyte,
    commitDelayMs: settings.LETHE_COMMIT_DELAY_MS,
    commitSync: settings.LETHE_FSYNC,
    ingestBufferBytes: settings.LETHE_INGEST_BUFFER_MB * mebibyte,
    ingestBodyBytes: settings.LETHE_INGEST_BODY_MB * mebibyte,
    quota: {
      rowsPerSecond: settings.LETHE_QUOTA_ROWS_PER_SECOND,
      bytesPerDay: settings.LETHE_QUOTA_BYTES_PER_DAY,
    },
    logLevel: settings.LETHE_LOG_LEVEL,
    bootstrap: { tenantId: settings.LETHE_BOOTSTRAP_ORG, token: settings.LETHE_BOOTSTRAP_TOKEN },
    restarts: { crashed: settings.LETHE_RESTARTS_CRASHED, hung: settings.LETHE_RESTARTS_HUNG },
  }
}

function controlOf(
  { LETHE_CONTROL_PASSWORD_FILE: password, LETHE_CONTROL_URL: address }: SettingValues,
  dataDir: string,
): ControlAddress {
  if (address === undefined) return { kind: 'sqlite', path: join(dataDir, 'control.db') }
  return password === null ? address : withPassword(address, password)
}

/**
 * Finds settings that are valid alone and contradict each other: the one to change, and what is wrong with
 * it.
 */
function findContradictions(
  settings: SettingValues,
  { admin, docs, connections, dataDir, backupDir, keySource }: Config,
): (readonly [name: keyof SettingValues, problem: string])[] {
  const { total, perAddress } = connections
  const engineDir = join(dataDir, 'telemetry')
  const rules: readonly (readonly [isBroken: boolean, name: keyof SettingValues, problem: string])[] = [
    [
      docs === 'admin' && admin === null,
      'LETHE_DOCS',
      'can be admin only where LETHE_ADMIN_PORT is set; set both, or neither.',
    ],
    [
      perAddress > total,
      'LETHE_CONNECTIONS_PER_ADDRESS',
      `must be an integer from 4 to ${total}, not "${perAddress}".`,
    ],
    [
      `${backupDir}/`.startsWith(`${engineDir}/`),
      'LETHE_BACKUP_DIR',
      `must not be in ${engineDir}: a restore replaces what is there.`,
    ],
    [
      keySource.secret !== null && settings.LETHE_KEY_FILE !== undefined,
      'LETHE_KEY_SECRET',
      'and LETHE_KEY_FILE both name the key; set one of them.',
    ],
    [
      settings.LETHE_CONTROL_PASSWORD_FILE !== null && hasPassword(settings.LETHE_CONTROL_URL),
      'LETHE_CONTROL_PASSWORD_FILE',
      'and LETHE_CONTROL_URL both have a password; take it out of the address.',
    ],
    // A key beside the backups would open what is in them.
    [
      keySource.file.startsWith(`${backupDir}/`),
      'LETHE_KEY_FILE',
      'must not be in LETHE_BACKUP_DIR: it would open the keys in a backup.',
    ],
  ]
  return rules.flatMap(([isBroken, name, problem]) => (isBroken ? [[name, problem] as const] : []))
}
