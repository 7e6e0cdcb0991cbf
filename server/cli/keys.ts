// Operator commands on the signing keys. A running service signs with the new key from its next signature on.

import { SigningKeys } from '../audit/signing.ts'
import type { Config } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { withControl } from './open-control.ts'
import { print } from './print.ts'

export async function listKeys(config: Config): Promise<void> {
  await withControl(config, async (control) => {
    for (const key of await new SigningKeys(control, systemClock).list()) {
      const state = key.retiredAtMs === null ? 'signs' : `retired ${instantText(key.retiredAtMs)}`
      print(`${key.kid}  made ${instantText(key.createdAtMs)}  ${state}`)
    }
  })
}

export async function rotateKeys(config: Config): Promise<void> {
  await withControl(config, async (control) => {
    print(await new SigningKeys(control, systemClock).rotate('operator:command-line'))
  })
}
