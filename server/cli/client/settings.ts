// Where a client command finds the service and its access token: the environment, then a file that only its
// user can read. Never the command line, which other users of the machine can see. A token is sent only to
// the address that it was configured with.

import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { CommandFailure } from '../failure.ts'

export interface Connection {
  /** With a path where the service has one, and without a slash at the end. */
  readonly url: string
  readonly token: string
}

type Environment = Readonly<Record<string, string | undefined>>

const defaultUrl = 'http://127.0.0.1:8080'

const ConfigFile = z.strictObject({ url: z.string().optional(), token: z.string().optional() })

/** `LETHE_CONFIG`, otherwise the folder of XDG. */
export function configPath(env: Environment): string {
  if (env.LETHE_CONFIG) return env.LETHE_CONFIG
  return join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'lethe', 'config.json')
}

/** Throws CommandFailure with a correction where something is missing or invalid. */
export function readConnection(env: Environment, path = configPath(env)): Connection {
  // With both from the environment, the file is not used, so errors in it don't matter.
  const isNeeded = !env.LETHE_URL || !env.LETHE_TOKEN
  const file = isNeeded ? readConfigFile(path, Boolean(env.LETHE_CONFIG)) : {}
  const url = addressOf(env.LETHE_URL || file.url || defaultUrl, env.LETHE_URL ? 'LETHE_URL' : path)
  const token = env.LETHE_TOKEN || file.token
  if (!token) {
    throw new CommandFailure(
      `There is no access token. Set LETHE_TOKEN, or write {"url": "${url}", "token": "<token>"} to ${path} and let nobody else read it: chmod 600 ${path}`,
    )
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new CommandFailure(
      `The access token (${env.LETHE_TOKEN ? 'LETHE_TOKEN' : path}) has characters that no token has, such as a line break.`,
    )
  }
  if (!env.LETHE_TOKEN && url !== addressOf(file.url ?? defaultUrl, path)) {
    throw new CommandFailure(
      `The token in ${path} is for ${file.url ?? defaultUrl}, and LETHE_URL is ${url}: set LETHE_TOKEN for that address.`,
    )
  }
  return { url, token }
}

/** Whether the token is sent over a network without encryption. */
export function isUnencrypted({ url }: Connection): boolean {
  const { hostname, protocol } = new URL(url)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Returns an empty object where there is no file, unless the file was named explicitly. */
function readConfigFile(path: string, isNamed: boolean): z.output<typeof ConfigFile> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (isAbsent && !isNamed) return {}
    throw new CommandFailure(`${path} can't be read: ${error instanceof Error ? error.message : error}`)
  }
  const read = ConfigFile.safeParse(jsonOf(text))
  if (!read.success) {
    throw new CommandFailure(
      `${path} must be a JSON object of "url" and "token", both text, and nothing else.`,
    )
  }
  if (read.data.token !== undefined && (statSync(path).mode & 0o077) !== 0) {
    throw new CommandFailure(`${path} contains a token and other users can read it: chmod 600 ${path}`)
  }
  return read.data
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Errors don't contain the address, because people paste addresses with a password in them. */
function addressOf(text: string, source: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new CommandFailure(`The address of the service (${source}) must be a URL such as ${defaultUrl}.`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new CommandFailure(
      `The address of the service (${source}) must have no user, password, query or fragment; the access token has its own setting.`,
    )
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}
