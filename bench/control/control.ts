// The same load on a service whose control plane is on SQLite and on one with PostgreSQL: both run beside
// each other, each on its own folder, and the rounds of a load alternate between them. PostgreSQL is
// Debian's, on the same disk, reached by a socket: a network adds its own time to each statement. Statements
// are those that a service counts, with those that begin and end transactions, less those that it sends
// without clients.
//
//   npm run bench -- control [--seconds 4] [--rounds 3] [--detectors 200] [--only REGEXP] [--root /tmp]

import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Service, startService } from '../ingest/service.ts'
import type { PsqlCommand } from '../peers/ingest-store.ts'
import { createDatabase, postgresVersion, withPostgres } from '../peers/postgresql.ts'
import { report } from '../report.ts'
import { quantile, rounded, shortVersion } from '../samples.ts'
import { measureDetectors } from './due-detectors.ts'
import { type Call, type Load, loads } from './loads.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    detectors: { type: 'string', default: '200' },
    only: { type: 'string', default: '' },
    root: { type: 'string', default: tmpdir() },
  },
})
const [seconds, rounds] = [Number(options.seconds), Number(options.rounds)]
const organisations = 4
const serviceEnv = { LETHE_COMMIT_DELAY_MS: '50', LETHE_GRPC_PORT: 'off' }

interface Plane {
  readonly name: string
  readonly service: Service
  /** What the service sends without clients, statements a millisecond. */
  idleRate: number
}

/** What a plane did in all rounds of a load. */
interface Measured {
  readonly plane: Plane
  readonly calls: readonly Call[]
  readonly ms: number[]
  statements: number
  elapsedMs: number
}

await withPostgres({ root: options.root, settings: {}, what: 'both control planes' }, measureBoth)

async function measureBoth({ psql, folder }: { psql: PsqlCommand; folder: string }): Promise<void> {
  const planes: Plane[] = []
  try {
    const addresses = {
      SQLite: (name: string) => `sqlite:${join(folder, `${name}.db`)}`,
      [`PostgreSQL ${shortVersion(postgresVersion())}`]: (name: string) => createDatabase(psql, name),
    }
    for (const [name, address] of Object.entries(addresses)) {
      const env = { ...serviceEnv, LETHE_CONTROL_URL: address('service') }
      const service = await startService(join(folder, `data-${planes.length}`), organisations, env)
      planes.push({ name, service, idleRate: 0 })
    }
    await measureIdle(planes)
    const chosen = loads.filter(({ name }) => new RegExp(options.only).test(name))
    for (const load of chosen) await measureLoad(load, planes)
    for (const { service } of planes.splice(0)) await service.stop()
    await measureDetectors({
      folder: join(folder, 'detection'),
      planes: Object.entries(addresses).map(([name, address]) => ({ name, address: address('detection') })),
      detectors: Number(options.detectors),
      rounds,
    })
  } finally {
    for (const { service } of planes) await service.stop()
  }
}

async function measureLoad(load: Load, planes: readonly Plane[]): Promise<void> {
  const all: Measured[] = []
  for (const plane of planes) {
    const clients = Array.from({ length: load.clients }, (_, client) => load.client(plane.service, client))
    const calls = await Promise.all(clients)
    // What a first request alone does, such as writing when a token was last used, is not counted.
    await Promise.all(calls.map((call) => call()))
    all.push({ plane, calls, ms: [], statements: 0, elapsedMs: 0 })
  }
  for (let round = 0; round < rounds; round++) for (const one of all) await runRound(one)
  const [sqlite] = all
  const rateOf = ({ elapsedMs, ms }: Measured) => (ms.length / elapsedMs) * 1000
  for (const one of all) {
    const own = one.statements - one.plane.idleRate * one.elapsedMs
    report('The same load on both', {
      load: load.name,
      clients: load.clients,
      'control plane': one.plane.name,
      'a second': rounded(rateOf(one), 1),
      'SQLite = 1': sqlite === undefined ? null : rounded(rateOf(one) / rateOf(sqlite)),
      'p50 ms': rounded(quantile(one.ms, 0.5), 1),
      'p99 ms': rounded(quantile(one.ms, 0.99), 1),
      'statements each': load.polls === true ? null : rounded(own / one.ms.length),
    })
  }
}

async function runRound(measured: Measured): Promise<void> {
  const { calls, plane } = measured
  const [before, startMs] = [await statementsOf(plane.service), performance.now()]
  const untilMs = startMs + seconds * 1000
  await Promise.all(
    calls.map(async (call) => {
      do {
        const calledMs = performance.now()
        await call()
        measured.ms.push(performance.now() - calledMs)
      } while (performance.now() < untilMs)
    }),
  )
  measured.elapsedMs += performance.now() - startMs
  measured.statements += (await statementsOf(plane.service)) - before
}

/** Measures what each service sends without clients, over as long as a load takes. */
async function measureIdle(planes: readonly Plane[]): Promise<void> {
  const startMs = performance.now()
  const before = await Promise.all(planes.map(({ service }) => statementsOf(service)))
  await sleep(seconds * rounds * 1000)
  for (const [at, plane] of planes.entries()) {
    const statements = (await statementsOf(plane.service)) - (before[at] ?? 0)
    plane.idleRate = statements / (performance.now() - startMs)
    report('Without clients', {
      'control plane': plane.name,
      'statements a second': rounded(plane.idleRate * 1000),
    })
  }
}

async function statementsOf({ address }: Service): Promise<number> {
  const page = await (await fetch(`${address}/metrics`)).text()
  const count = /^lethe_control_statements_total (\d+)/m.exec(page)?.[1]
  if (count === undefined) throw new Error('The service does not count its statements.')
  return Number(count)
}
