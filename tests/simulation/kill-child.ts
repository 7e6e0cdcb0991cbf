// The service in its own process, controlled over the channel to its parent: for simulations that end it with
// kill -9. Only the calls of {@link Subject} that need this process are handled here.

import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { openControlAt } from '../../server/control/control-address.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import type { LocalEngine } from '../../server/telemetry/engine-files.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { silent } from '../fixtures.ts'
import type { Call, ChildOptions } from './killed.ts'
import { Failpoints, remainsIn, removeReplaced, SimulatedClock } from './service-run.ts'
import { newOrganisations, populate } from './simulation.ts'
import { countedOf, type ListedRow, listRows, tableNames } from './telemetry.ts'

const options: ChildOptions = JSON.parse(process.argv[2] ?? '')
const clock = new SimulatedClock(options.nowMs)
const failpoints = new Failpoints()
const config = readConfig({
  LETHE_DATA_DIR: options.dataDir,
  LETHE_PORT: '0',
  LETHE_RESERVE_MB: '1',
  LETHE_GRPC_PORT: 'off',
  LETHE_ENGINE_MEMORY_MB: '1024',
  LETHE_COMMIT_DELAY_MS: '0',
})
let engine: LocalEngine | null = null
const app = await createApp({
  config,
  clock,
  logger: silent,
  failpoint: failpoints.pass,
  // The model is compared while an erasure is paused; another one beside it would continue meanwhile.
  erasing: { attemptsAtOnce: 1, fewRows: 0 },
  isManual: true,
  openEngine: async (opened) => {
    const own = await openChdb(opened)
    engine = own
    clock.hurry = () => removeReplaced(own)
    return own
  },
})
const say = (fact: unknown) => process.send?.(fact)
let round: Promise<void> = Promise.resolve()

const answers: Record<Call['name'], (call: Call) => Promise<unknown>> = {
  advance: async ({ ms = 0 }) => clock.advance(ms),
  async visible({ place, names = [] }) {
    if (place === undefined || names.length === 0) return []
    const rows = await app.readerOf(place).rows<ListedRow>((from) => listRows(names, (name) => from(name)))
    return [...(countedOf(rows).get(place.tenantId) ?? [])]
  },
  async stored() {
    const rows = (await engine?.select<ListedRow>(listRows(tableNames, raw))) ?? []
    return [...countedOf(rows)].map(([tenantId, counted]) => [tenantId, [...counted]])
  },
  async round({ fault = null }) {
    round = failpoints.during(fault, () => app.round())
    const end = await Promise.race([round.then(() => 'ended' as const), failpoints.standing])
    return { end, faultedAt: failpoints.faultedAt }
  },
  async resume({ how = 'continue' }) {
    failpoints.goOn(how)
    await round
  },
  remains: async () => (engine === null ? [] : remainsIn(engine)),
  close: async () => app.close(),
}

process.on('message', (call: Call) => {
  answers[call.name](call).then(
    (result) => say({ id: call.id, nowMs: clock.nowMs(), result }),
    (error: unknown) => say({ id: call.id, nowMs: clock.nowMs(), error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(1))

const address = await app.start(async () => {
  if (!options.isFirst) return
  const control = openControlAt(config.control)
  await populate(app, control, newOrganisations(), async () => {})
  await control.destroy()
})
say({ address, nowMs: clock.nowMs() })
