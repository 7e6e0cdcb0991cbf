// Which keys a command may believe: those it is given, else those of this machine's own data folder. Never
// those that come with what is to be checked.

import { readFileSync } from 'node:fs'
import { readPublicKeys } from '../audit/signing.ts'
import { type Config, ConfigError } from '../config.ts'
import { fileBounds, JsonExcessError, parseBoundedJson } from '../core/json-bounds.ts'
import { hasControl, withControl } from './open-control.ts'

interface TrustedKeys {
  readonly keys: readonly unknown[]
}

/** Null where no file is given and this folder has never signed anything. */
export async function findTrustedKeys(config: Config, path: string | undefined): Promise<TrustedKeys | null> {
  if (path !== undefined) return readJwks(path)
  if (!hasControl(config)) return null
  return withControl(config, async (control) => {
    const keys = await readPublicKeys(control)
    return keys.length === 0 ? null : { keys }
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
