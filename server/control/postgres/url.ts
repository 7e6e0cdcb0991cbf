// The address of a PostgreSQL server as people write it, `postgres://user:password@host:5432/database`, with
// parameters that have the names and meanings of libpq. Everything is checked here, before a connection is
// opened. A problem never repeats the address, because it has the password.

import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { AddressProblem } from '../address-problem.ts'

/** What the driver needs to connect. */
export interface PostgresServer {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password?: string
  readonly database: string
  /** False without TLS. */
  readonly ssl: false | ConnectionOptions
}

export const postgresSchemes: readonly string[] = ['postgres:', 'postgresql:']

const parameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'host'] as const
type Parameters = Partial<Record<(typeof parameters)[number], string>>

/** Modes that may fall back to a connection without TLS promise nothing, so they are refused. */
const modes = ['disable', 'require', 'verify-ca', 'verify-full'] as const

const portDefault = 5432

/** Reads an address, and the files that it names. Throws AddressProblem. */
export function readAddress(text: string): PostgresServer {
  requireOneHost(text)
  const url = URL.parse(text)
  if (url === null) throw new AddressProblem(`must be ${form}.`)
  const given = readParameters(url)
  // A host in the parameters is the folder of a socket, which has no place before the path.
  const host = given.host ?? decoded(url.hostname.replace(/^\[|\]$/g, ''))
  const user = decoded(url.username)
  const database = decoded(url.pathname.slice(1))
  if (host === '' || user === '' || database === '') {
    throw new AddressProblem(`must name a host, a user and a database: ${form}.`)
  }
  return {
    host,
    port: url.port === '' ? portDefault : Number(url.port),
    user,
    ...(url.password !== '' && { password: decoded(url.password) }),
    database,
    ssl: readTls(given, host),
  }
}

/** The driver connects to one host; libpq's lists of hosts and `target_session_attrs` are unknown to it. */
function requireOneHost(text: string): void {
  const hosts = /^[^/]*\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text)?.[1]
  if (hosts?.includes(',') !== true) return
  throw new AddressProblem(
    'names several hosts; name one that always leads to the primary, such as a proxy (docs/operating.md).',
  )
}

const form = 'postgres://user:password@host:5432/database'

/** Names a server in a sentence, without the password. */
export function nameOf({ database, host, port }: PostgresServer): string {
  return `the database ${database} on ${host}:${port}`
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new AddressProblem(`has a % that begins no encoded character; write it as %25.`)
  }
}

function readParameters(url: URL): Parameters {
  const known: readonly string[] = parameters
  for (const name of url.searchParams.keys()) {
    if (!known.includes(name)) {
      throw new AddressProblem(`has the parameter ${name}; known are ${parameters.join(', ')}.`)
    }
  }
  return Object.fromEntries(url.searchParams)
}

/**
 * Without a mode, a server on this machine is reached without TLS and every other one with a certificate that
 * is checked for its name.
 */
function readTls(given: Parameters, host: string): PostgresServer['ssl'] {
  const mode = given.sslmode ?? (isLocal(host) ? 'disable' : 'verify-full')
  if (!modes.some((one) => one === mode)) {
    throw new AddressProblem(`must have one of ${modes.join(', ')} as its sslmode.`)
  }
  if (mode === 'disable') return false
  const files = {
    ...(given.sslrootcert !== undefined && { ca: readPem('sslrootcert', given.sslrootcert) }),
    ...(given.sslcert !== undefined && { cert: readPem('sslcert', given.sslcert) }),
    ...(given.sslkey !== undefined && { key: readPem('sslkey', given.sslkey) }),
  }
  // As in libpq, a root certificate that is given is checked also where the mode only requires TLS.
  if (mode === 'require' && given.sslrootcert === undefined) return { ...files, rejectUnauthorized: false }
  const checksName = mode === 'verify-full'
  return { ...files, rejectUnauthorized: true, ...(!checksName && { checkServerIdentity: () => undefined }) }
}

function isLocal(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127\./.test(host)
}

function readPem(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable'
    throw new AddressProblem(`names ${path} as its ${name}, which can't be read (${reason}).`, { cause })
  }
}
