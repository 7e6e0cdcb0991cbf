// Operator commands on the signing keys. A running service signs with the new key from its next signature on.

import { SigningKeys } from '../audit/signing.ts'
import type { Config } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { operator, withControl } from './open-control.ts'
import { type JsonOption, print, printJson } from './print.ts'

export async function listKeys(config: Config, options: JsonOption): Promise<void> {
  await withControl(config, async (control) => {
    const items = (await new SigningKeys(control, systemClock).list()).map((key) => ({
      kid: key.kid,
      created_at: instantText(key.createdAtMs),
      retired_at: key.retiredAtMs === null ? null : instantText(key.retiredAtMs),
    }))
    if (options.json) return printJson({ items })
    for (const { kid, created_at, retired_at } of items) {
      print(`${kid}  made ${created_at}  ${retired_at === null ? 'signs' : `retired ${retired_at}`}`)
    }
  })
}

export async function rotateKeys(config: Config, options: JsonOption): Promise<void> {
  await withControl(config, async (control) => {
    const kid = await new SigningKeys(control, systemClock).rotate(operator)
    if (options.json) printJson({ kid })
    else print(kid)
  })
}
