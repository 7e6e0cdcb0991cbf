// The service in its own process for benches, so that clients and server don't share an event loop. It
// creates one organisation per given secret, prints its address as a line of JSON, and ends on SIGTERM.

import pino from 'pino'
import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'

const [dataDir = '', ...secrets] = process.argv.slice(2)
const app = await createApp({
  config: readConfig({ ...process.env, LETHE_DATA_DIR: dataDir, LETHE_PORT: '0' }),
  clock: systemClock,
  logger: pino({ level: 'error' }),
})
for (const [i, secret] of secrets.entries()) {
  const tenantId = `org-${i}`
  await app.createOrganisation({ tenantId, name: tenantId, actor: operatorActor('bench') }, secret)
}
process.stdout.write(`${JSON.stringify({ address: await app.start() })}\n`)
process.on('SIGTERM', () => void app.close().then(() => process.exit(0)))
