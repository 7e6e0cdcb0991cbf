// The product in its own process, with an extra channel for the bench: statements from the parent process run
// in the same engine, next to the service. So the baselines are mutations of the engine that serves the
// clients, and the engine itself can fill in the product's rows. The session for them is opened by the first
// statement. Uses the IPC channel of its parent.

import { join } from 'node:path'
import { Session } from 'chdb'
import pino from 'pino'
import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'

interface Statement {
  readonly id: number
  readonly sql: string
}

/** The result of a statement: its rows as lines of JSON, or the error. */
export interface Answer {
  readonly id: number
  readonly lines: string
  readonly error: string | null
}

/** Sent once, when the service is ready. */
export interface Ready {
  readonly address: string
}

const [dataDir = '', ...secrets] = process.argv.slice(2)
const app = await createApp({
  config: readConfig({ ...process.env, LETHE_DATA_DIR: dataDir, LETHE_PORT: '0' }),
  clock: systemClock,
  logger: pino({ level: process.env.LETHE_LOG_LEVEL ?? 'error' }, pino.destination(2)),
})
const isNew = (await app.tenancy.listOrganisations()).length === 0
for (const [i, secret] of isNew ? secrets.entries() : []) {
  await app.createOrganisation(
    { tenantId: `org-${i}`, name: `org-${i}`, actor: operatorActor('bench') },
    secret,
  )
}
const folder = join(dataDir, 'telemetry')
let session: Session | null = null
const running = new Set<Promise<void>>()

process.on('message', (statement: Statement) => {
  const run = answer(statement).finally(() => running.delete(run))
  running.add(run)
})

async function answer({ id, sql }: Statement): Promise<void> {
  try {
    session ??= new Session(join(folder, 'engine'), {
      connectionArgs: ['--async_load_databases=0', `--config-file=${join(folder, 'engine-settings.xml')}`],
    })
    const lines = (await session.queryAsync(sql, { format: 'JSONEachRow' })).text()
    send({ id, lines, error: null })
  } catch (error) {
    send({ id, lines: '', error: error instanceof Error ? error.message : String(error) })
  }
}

function send(message: Answer | Ready): void {
  process.send?.(message)
}

async function stop(): Promise<void> {
  await Promise.allSettled([...running])
  session?.close()
  await app.close()
  process.exit(0)
}

process.on('SIGTERM', () => void stop())
// If the parent has died, there is nothing more to do.
process.on('disconnect', () => process.exit(1))
send({ address: await app.start() })
