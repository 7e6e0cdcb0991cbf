// Operator commands on the signing keys. A running service signs with the new key from its next signature on.

import { SigningKeys } from '../audit/signing.ts'
import type { Config } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { withControl } from './open-control.ts'

export async function listKeys(config: Config): Promise<void> {
  await withControl(config, async (control) => {
    for (const key of await new SigningKeys(control, systemClock).list()) {
      const state = key.retiredAtMs === null ? 'signs' : `retired ${instantText(key.retiredAtMs)}`
      process.stdout.write(`${key.kid}  made ${instantText(key.createdAtMs)}  ${state}\n`)
    }
  })
}

export async function rotateKeys(config: Config): Promise<void> {
  await withControl(config, async (control) => {
    const kid = await new SigningKeys(control, systemClock).rotate('operator:command-line')
    process.stdout.write(`${kid}\n`)
  })
}
