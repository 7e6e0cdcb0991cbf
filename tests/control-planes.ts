// Opens the control plane of a test. Suites of stores open it here and name no database, so that the same
// suite tests each of them: LETHE_TEST_CONTROL_PLANE chooses one, and `npm test control` runs all suites that
// open a control plane.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Control } from '../server/control/database.ts'
import { migrate } from '../server/control/migrate.ts'
import { openSqlite } from '../server/control/sqlite/sqlite.ts'
import type { DatabaseShell, SharedTestControl, TestControl } from './control-plane.ts'
import { openPostgresPlane, openSharedPostgresPlane } from './postgres-plane.ts'

interface ControlPlane {
  open(isMigrated: boolean): Promise<TestControl>
  openShared(isMigrated: boolean): Promise<SharedTestControl>
}

/** The databases that a control plane can use. */
const controlPlanes: Readonly<Record<string, ControlPlane>> = {
  sqlite: { open: openInMemory, openShared: openInFolder },
  postgres: { open: openPostgresPlane, openShared: openSharedPostgresPlane },
}

const chosen = process.env.LETHE_TEST_CONTROL_PLANE ?? 'sqlite'

export const isOnPostgres = chosen === 'postgres'

function chosenPlane(): ControlPlane {
  const plane = controlPlanes[chosen]
  if (plane === undefined) {
    throw new Error(
      `LETHE_TEST_CONTROL_PLANE is ${chosen}; known are ${Object.keys(controlPlanes).join(', ')}.`,
    )
  }
  return plane
}

/** Opens a new, migrated control plane at each call. */
export function openControlPlane(): Promise<TestControl> {
  return chosenPlane().open(true)
}

/** As {@link openControlPlane}, without any table: for tests of migrations. */
export function openEmptyControlPlane(): Promise<TestControl> {
  return chosenPlane().open(false)
}

/**
 * Opens the control plane of a service under test a second time, as another process does. `path` is the file
 * of the service's database.
 */
export function openSecondHandle(path: string): Control {
  return openSqlite(path)
}

/** As {@link openControlPlane}, for tests that need several handles or read the files. */
export function openSharedControlPlane(isMigrated = true): Promise<SharedTestControl> {
  return chosenPlane().openShared(isMigrated)
}

async function openInMemory(isMigrated: boolean): Promise<TestControl> {
  const control = openSqlite(':memory:')
  if (isMigrated) await migrate(control)
  return { control, shell: sqliteShell(control), close: () => control.destroy() }
}

async function openInFolder(isMigrated: boolean): Promise<SharedTestControl> {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-control-'))
  const path = join(folder, 'control.db')
  const handles: Control[] = []
  const another = () => {
    const handle = openSqlite(path)
    handles.push(handle)
    return handle
  }
  const control = another()
  if (isMigrated) await migrate(control)
  return {
    control,
    another,
    shell: sqliteShell(control),
    async waitAtMost(handle, ms) {
      await sql`pragma busy_timeout = ${sql.raw(String(ms))}`.execute(handle)
    },
    whileLocked: (work) => whileLocked(another(), work),
    filesWith: (text) =>
      readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(text)),
    async close() {
      for (const handle of handles) await handle.destroy()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs `work` while the handle locks the whole database of a service, as another process may do. */
export function whileLocked<T>(handle: Control, work: () => Promise<T>): Promise<T> {
  return handle.connection().execute(async (connection) => {
    await sql`begin exclusive`.execute(connection)
    try {
      return await work()
    } finally {
      await sql`rollback`.execute(connection)
    }
  })
}

function sqliteShell(control: Control): DatabaseShell {
  const run = (text: string) => sql.raw(text).execute(control)
  return {
    async dropChainGuards() {
      for (const table of ['ledger_entries', 'audit_entries']) {
        for (const verb of ['update', 'delete']) await run(`drop trigger ${table}_no_${verb}`)
      }
    },
    async dropValueChecks() {
      await run('pragma ignore_check_constraints = on')
    },
    async failMoves(tenantId, statuses) {
      await run(
        `create trigger unwritable before update on deletion_requests when new.tenant_id = '${tenantId}'
         and new.status in (${statuses.map((status) => `'${status}'`).join(', ')}) begin select raise(fail, 'no'); end`,
      )
      return async () => {
        await run('drop trigger unwritable')
      }
    },
    async failCommits() {
      // A deferred foreign key without a target fails when the transaction commits.
      await run(
        'create table orphans (parent text references deletion_requests (request_id) deferrable initially deferred)',
      )
      for (const verb of ['insert', 'update']) {
        await run(
          `create trigger orphan_of_${verb} after ${verb} on deletion_requests begin insert into orphans values ('none'); end`,
        )
      }
      return async () => {
        for (const verb of ['insert', 'update']) await run(`drop trigger orphan_of_${verb}`)
        await run('drop table orphans')
      }
    },
  }
}
