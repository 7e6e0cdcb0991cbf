// Operator commands on the signing keys. A running service uses a new key from its next signature on.

import { prepareSeal, reseal, sealForNewKey } from '../audit/sealed-keys.ts'
import { listSigningKeys, SigningKeys } from '../audit/signing.ts'
import { type Config, ConfigError } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { operator, withControl } from './open-control.ts'
import { type JsonOption, print, printJson } from './print.ts'

export async function listKeys(config: Config, options: JsonOption): Promise<void> {
  await withControl(config, async (control) => {
    const items = (await listSigningKeys(control)).map((key) => ({
      kid: key.kid,
      created_at: instantText(key.createdAtMs),
      retired_at: key.retiredAtMs === null ? null : instantText(key.retiredAtMs),
    }))
    if (options.json) return printJson({ items })
    for (const { kid, created_at, retired_at } of items) {
      print(`${kid}  created ${created_at}  ${retired_at === null ? 'signs' : `retired ${retired_at}`}`)
    }
  })
}

interface RotateOptions extends JsonOption {
  readonly lostKey?: boolean
}

export async function rotateKeys(config: Config, options: RotateOptions): Promise<void> {
  await withControl(config, async (control) => {
    const seal = options.lostKey
      ? sealForNewKey(config.keySource)
      : await prepareSeal(control, config.keySource)
    const kid = await new SigningKeys(control, systemClock, seal).rotate(operator)
    if (options.json) printJson({ kid })
    else print(kid)
  })
}

interface ResealOptions extends JsonOption {
  readonly oldKeyFile?: string
}

/**
 * Seals the keys with the key that the settings now name. A running service cannot sign until it is restarted
 * with these settings.
 */
export async function resealKeys(config: Config, { json, oldKeyFile }: ResealOptions): Promise<void> {
  const from = { secret: config.oldKeySecret, file: oldKeyFile ?? '' }
  if ((from.secret === null) === (oldKeyFile === undefined)) {
    throw new ConfigError(
      'Name the current sealing key: --old-key-file FILE, or its secret in LETHE_OLD_KEY_SECRET. The new one is that of LETHE_KEY_FILE or LETHE_KEY_SECRET.',
    )
  }
  await withControl(config, async (control) => {
    const sealed = await reseal(control, from, config.keySource)
    if (json) printJson({ sealed })
    else
      print(
        `${sealed === 1 ? '1 key is' : `${sealed} keys are`} sealed with the new key. Start the service with the same settings.`,
      )
  })
}
