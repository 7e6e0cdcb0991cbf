// Which keys a command trusts: the given ones, otherwise those of this machine's own data folder. Never keys
// that come with the evidence itself.

import { readFileSync } from 'node:fs'
import { readPublicKeys } from '../audit/signing.ts'
import { type Config, ConfigError } from '../config.ts'
import { fileBounds, JsonExcessError, parseBoundedJson } from '../core/input/json-bounds.ts'
import { hasControl, withControl } from './open-control.ts'

interface TrustedKeys {
  readonly keys: readonly unknown[]
}

/** Null where no file is given and the data folder has no signing keys. */
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
  throw new ConfigError(`${path} is not a JWK Set such as the service publishes at /.well-known/jwks.json.`)
}
