// Control planes of tests on PostgreSQL: each has its own database in the server of the run, a copy of one
// that was migrated once.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { CompiledQuery, sql } from 'kysely'
import type { Control } from '../server/control/database.ts'
import { dialectOf } from '../server/control/dialect.ts'
import { migrate } from '../server/control/migrate.ts'
import { defaultLimits, openPostgres } from '../server/control/postgres/postgres.ts'
import type { DatabaseShell, SharedTestControl, TestControl } from './control-plane.ts'
import { programOf, role, runFolder } from './postgres-server.ts'

const template = 'lethe_template'

/**
 * Connections of a handle: several, so that transactions run at the same time, and few, because a setting is
 * applied to each.
 */
const connections = Number(process.env.LETHE_TEST_CONTROL_CONNECTIONS ?? 4)

/** A machine that runs all tests at once takes its time to open a connection. */
const connectMs = 30_000

let opened = 0

/** The number in the name of the server's socket. */
const socketPort = 5432

/** The address of a database of the server in that folder, as settings have it. */
export function urlOf(folder: string, database: string): string {
  return `postgres://${role}@localhost/${database}?host=${encodeURIComponent(folder)}`
}

export function openDatabase(
  host: string,
  database: string,
  { port = socketPort, user = role, most = connections } = {},
): Control {
  return openPostgres({ host, port, user, database }, { ...defaultLimits, connectMs, connections: most })
}

/** Runs statements on the server, in its own database. */
export async function administer(folder: string, ...statements: string[]): Promise<void> {
  const server = openDatabase(folder, 'postgres')
  try {
    for (const statement of statements) await server.executeQuery(CompiledQuery.raw(statement))
  } finally {
    await server.destroy()
  }
}

/** Creates the database that the others are copies of. Called once a run. */
export async function createTemplate(folder: string): Promise<void> {
  await administer(folder, `create database ${template}`)
  const control = openDatabase(folder, template)
  await migrate(control)
  await control.destroy()
}

export async function openPostgresPlane(isMigrated: boolean): Promise<TestControl> {
  return openShared(isMigrated ? template : 'template1')
}

/** Opens several handles, also through another address, such as that of a proxy, or as another role. */
interface PostgresPlane extends SharedTestControl {
  readonly socketPath: string
  /** Its address, as settings have it. */
  readonly url: string
  readonly database: string
  as(role: string): Control
  /** A handle with one connection: what asks beside its own transaction waits for itself, and fails. */
  withOneConnection(): Control
  by(address: { readonly host: string; readonly port: number }): Control
}

export function openSharedPostgresPlane(isMigrated = true): Promise<PostgresPlane> {
  return openShared(isMigrated ? template : 'template1')
}

async function openShared(source: string): Promise<PostgresPlane> {
  const folder = runFolder()
  const database = `t_${process.pid}_${++opened}`
  await administer(folder, `create database ${database} template ${source}`)
  const handles: Control[] = []
  const kept = (handle: Control) => {
    handles.push(handle)
    return handle
  }
  const another = () => kept(openDatabase(folder, database))
  const control = another()
  return {
    control,
    another,
    url: urlOf(folder, database),
    database,
    as: (user) => kept(openDatabase(folder, database, { user })),
    withOneConnection: () => kept(openDatabase(folder, database, { most: 1 })),
    socketPath: join(folder, `.s.PGSQL.${socketPort}`),
    by: ({ host, port }) => kept(openDatabase(host, database, { port })),
    shell: postgresShell(control),
    waitAtMost,
    whileLocked: (work) => whileLocked(another(), work),
    filesWith: (text) => filesWith(folder, database, text),
    async close() {
      for (const handle of handles) await handle.destroy()
      await administer(folder, `drop database ${database} with (force)`)
    },
  }
}

/** Sets the limit on every connection of the handle, by using all of them at once. */
async function waitAtMost(handle: Control, ms: number): Promise<void> {
  const all = Promise.withResolvers<void>()
  let reached = 0
  const set = () =>
    handle.connection().execute(async (connection) => {
      if (++reached === connections) all.resolve()
      await all.promise
      // Zero would be no limit.
      await sql`set lock_timeout = ${sql.raw(String(Math.max(ms, 1)))}`.execute(connection)
    })
  await Promise.all(Array.from({ length: connections }, set))
}

async function whileLocked<T>(handle: Control, work: () => Promise<T>): Promise<T> {
  return handle.transaction().execute(async (trx) => {
    await dialectOf(trx).lockAll(trx)
    return work()
  })
}

/** Files of the database that have the text, after everything in memory was written to them. */
function filesWith(folder: string, database: string, text: string): string[] {
  const asked = spawnSync(
    programOf('psql'),
    ['-h', folder, '-U', role, '-d', database, '-Atq', '-c', 'checkpoint', '-c', oidQuery],
    { encoding: 'utf8' },
  )
  const oid = asked.stdout.trim()
  if (!/^\d+$/.test(oid)) throw new Error(`The server did not say where its files are: ${asked.stderr}`)
  const files = join(folder, 'data', 'base', oid)
  return readdirSync(files).filter((name) => readFileSync(join(files, name)).includes(text))
}

const oidQuery = 'select oid from pg_database where datname = current_database()'

function postgresShell(control: Control): DatabaseShell {
  const run = (text: string) => sql.raw(text).execute(control)
  return {
    async dropChainGuards() {
      for (const table of ['ledger_entries', 'audit_entries']) {
        for (const verb of ['change', 'truncate']) await run(`drop trigger ${table}_no_${verb} on ${table}`)
      }
    },
    async dropValueChecks() {
      const { rows } = await sql<{ table: string; name: string }>`
        select conrelid::regclass::text as table, conname as name from pg_constraint
        where contype = 'c' and conrelid <> 0`.execute(control)
      for (const { table, name } of rows) await run(`alter table ${table} drop constraint ${name}`)
    },
    async failMoves(tenantId, statuses) {
      await run(`create function refuse_move() returns trigger language plpgsql as
        $$ begin raise exception 'no'; end $$`)
      await run(`create trigger unwritable before update on deletion_requests for each row
        when (new.tenant_id = '${tenantId}' and new.status in (${statuses.map((status) => `'${status}'`).join(', ')}))
        execute function refuse_move()`)
      return async () => {
        await run('drop function refuse_move cascade')
      }
    },
    async failCommits() {
      // A deferred foreign key without a target fails when the transaction commits.
      await run(
        'create table orphans (parent text references deletion_requests (request_id) deferrable initially deferred)',
      )
      await run(`create function insert_orphan() returns trigger language plpgsql as
        $$ begin insert into orphans values ('none'); return null; end $$`)
      await run(`create trigger orphan after insert or update on deletion_requests
        for each row execute function insert_orphan()`)
      return async () => {
        await run('drop function insert_orphan cascade')
        await run('drop table orphans')
      }
    },
  }
}
