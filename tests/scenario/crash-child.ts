// The service in its own process, for tests that kill it. It creates the given organisations on an empty
// folder, prints its address as a line of JSON, and can pause forever at a named failpoint and report it, so
// that the test knows exactly where it kills.

import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { silent } from '../fixtures.ts'

export interface ChildOptions {
  readonly dataDir: string
  /** Failpoint at which to pause, and at which of its occurrences (1 is the first). */
  readonly standStill: { readonly point: string; readonly occurrence: number } | null
  /** Organisations to create, each with an owner token of this secret. */
  readonly organisations: readonly { readonly tenantId: string; readonly secret: string }[]
}

const options: ChildOptions = JSON.parse(process.argv[2] ?? '')
const say = (fact: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(fact)}\n`)

let seen = 0
const app = await createApp({
  config: readConfig({ LETHE_DATA_DIR: options.dataDir, LETHE_PORT: '0', LETHE_COMMIT_DELAY_MS: '20' }),
  clock: systemClock,
  logger: silent,
  failpoint: async (point) => {
    if (point !== options.standStill?.point || ++seen !== options.standStill.occurrence) return
    say({ standsAt: point })
    await new Promise(() => {})
  },
})
for (const { tenantId, secret } of options.organisations) {
  await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('test') }, secret)
}
say({ address: await app.start() })
process.on('SIGTERM', () => void app.close().then(() => process.exit(0)))
