// The service in its own process, for tests that kill it. It creates the given organisations on an empty
// folder, prints its address as a line of JSON, and can pause forever at a named failpoint and report it, so
// that the test knows exactly where it kills. A line of JSON on standard input names the failpoint.

import { createInterface } from 'node:readline'
import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { silent } from '../fixtures.ts'

export interface ChildOptions {
  readonly dataDir: string
  /** Organisations to create, each with an owner token of this secret. */
  readonly organisations: readonly { readonly tenantId: string; readonly secret: string }[]
}

/** Failpoint at which to pause, and at which of its occurrences from here on (1 is the first). */
export interface StandStill {
  readonly point: string
  readonly occurrence: number
}

const options: ChildOptions = JSON.parse(process.argv[2] ?? '')
const say = (fact: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(fact)}\n`)

let standStill: StandStill | null = null
let seen = 0
const app = await createApp({
  config: readConfig({ LETHE_DATA_DIR: options.dataDir, LETHE_PORT: '0', LETHE_COMMIT_DELAY_MS: '20' }),
  clock: systemClock,
  logger: silent,
  failpoint: async (point) => {
    if (point !== standStill?.point || ++seen !== standStill.occurrence) return
    say({ standsAt: point })
    await new Promise(() => {})
  },
})
for (const { tenantId, secret } of options.organisations) {
  await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('test') }, secret)
}
createInterface({ input: process.stdin }).on('line', (line) => {
  standStill = JSON.parse(line)
  seen = 0
  say({ willStandAt: standStill?.point })
})
say({ address: await app.start() })
process.on('SIGTERM', () => void app.close().then(() => process.exit(0)))
