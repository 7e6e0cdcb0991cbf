// Which keys a command may believe: those it is given, else those of this machine's own data folder. Never those that
// come with what is to be checked.

import { readFileSync } from 'node:fs'
import { SigningKeys } from '../audit/signing.ts'
import { type Config, ConfigError } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { fileBounds, JsonExcessError, parseBoundedJson } from '../core/json-bounds.ts'
import { hasControl, withControl } from './open-control.ts'

export interface TrustedKeys {
  readonly keys: readonly unknown[]
}

/** Null where no file is given and this folder has never signed anything. */
export async function findTrustedKeys(config: Config, path: string | undefined): Promise<TrustedKeys | null> {
  if (path !== undefined) return readJwks(path)
  if (!hasControl(config)) return null
  return withControl(config, async (control) => {
    const own = new SigningKeys(control, systemClock)
    // Asking for the set would make a first key, and checking changes nothing.
    return (await own.list()).length === 0 ? null : own.jwks()
  })
}

function readJwks(path: string): TrustedKeys {
  let found: unknown
  try {
    found = parseBoundedJson(readFileSync(path, 'utf8'), fileBounds)
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof JsonExcessError)) throw error
  }
  if (typeof found === 'object' && found !== null && 'keys' in found && Array.isArray(found.keys)) {
    return { keys: found.keys }
  }
  throw new ConfigError(`${path} is not a JWK Set, as the service publishes at /.well-known/jwks.json.`)
}
