// A service in its own process that ends by an uncaught error while the engine runs a statement of half a
// minute. Prints its address, and throws when standard input has a line.

import { createApp } from '../../server/app.ts'
import { stopOnSignal } from '../../server/cli/serve.ts'
import { readConfig } from '../../server/config.ts'
import { systemClock } from '../../server/core/clock.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import type { TelemetryEngine } from '../../server/telemetry/engine.ts'
import { sql } from '../../server/telemetry/sql.ts'
import { silent } from '../fixtures.ts'

const engines: TelemetryEngine[] = []
const app = await createApp({
  config: readConfig(process.env),
  clock: systemClock,
  logger: silent,
  async openEngine(options) {
    const engine = await openChdb(options)
    engines.push(engine)
    return engine
  },
})
stopOnSignal(app, silent)
process.stdout.write(`listening at ${await app.start()}\n`)
process.stdin.once('data', () => {
  for (const engine of engines)
    void engine.select(sql`SELECT max(cityHash64(number)) FROM numbers(1000000000000)`)
  setImmediate(() => {
    throw new Error('an uncaught error of the test')
  })
})
