// The service of the tests of backup and restore: with organisations of a known token, and with a failpoint
// at which it pauses.

import { type App, createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import type { Failpoint } from '../../server/deletion/attempt/eraser.ts'
import { silent } from '../fixtures.ts'

/** Settings by their environment variable. */
type Settings = Readonly<Record<string, string>>

/** Organisations to create, each with an owner token of this secret. */
export type NewOrganisations = readonly { readonly tenantId: string; readonly secret: string }[]

export const configOf = (settings: Settings) =>
  readConfig({ LETHE_PORT: '0', LETHE_RESERVE_MB: '1', LETHE_COMMIT_DELAY_MS: '20', ...settings })

/** Opens the service; `start` makes it listen, and passes its address on before it is ready. */
export async function openService(
  settings: Settings,
  organisations: NewOrganisations,
  failpoint: Failpoint,
): Promise<{ readonly app: App; start(onListening: (address: string) => void): Promise<void> }> {
  const app = await createApp({ config: configOf(settings), clock: systemClock, logger: silent, failpoint })
  for (const { tenantId, secret } of organisations) {
    await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('test') }, secret)
  }
  return {
    app,
    async start(onListening) {
      await app.start(async () => {
        const address = app.http.server.address()
        if (address === null || typeof address === 'string') throw new Error('The service has no port.')
        onListening(`http://127.0.0.1:${address.port}`)
      })
    },
  }
}

/** Calls `pause` at the failpoint of this name, the first time. */
export function pausingAt(name: string | null, pause: () => Promise<void>): Failpoint {
  let hasPaused = false
  return async (point) => {
    if (point !== name || hasPaused) return
    hasPaused = true
    await pause()
  }
}
