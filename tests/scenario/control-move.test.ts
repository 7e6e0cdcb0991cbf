// `lethe migrate control` moves the control plane of a real data folder from SQLite to PostgreSQL, with
// telemetry, an erasure and its chains. It is killed in the middle and repeated; then the service runs on the
// new database, and nothing uses the old one any more. Every command is a process of its own.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { controlFilesAt } from '../../server/control/control-address.ts'
import { openSharedPostgresPlane } from '../postgres-plane.ts'
import { waitFor } from '../wait-for.ts'
import {
  acme,
  type BackupDirs,
  bodiesOf,
  cleanUp,
  completed,
  eraseBefore,
  eventsOf,
  globex,
  lethe,
  newBackupDirs,
  type Process,
  readDeletion,
  requestErasure,
  serveReady,
  takeBackup,
} from './backup-dirs.ts'
import { nodeEnvironment, nodeWords } from './command-line.ts'
import { assertGuarded, erasedHours, kept, populated, restored, rows } from './erased-since.ts'

const plane = await openSharedPostgresPlane()
const target = plane.control

after(async () => {
  await cleanUp()
  await plane.close()
})

/**
 * Runs the move until it waits for a table of the target, then kills it, and waits until the server has ended
 * what it was asked for.
 */
async function killMove(dirs: BackupDirs, words: readonly string[]): Promise<void> {
  let session: number | undefined
  await plane
    .another()
    .transaction()
    .execute(async (trx) => {
      await sql`lock table audit_entries in exclusive mode`.execute(trx)
      const child = spawn(process.execPath, [...nodeWords, ...words], {
        env: { ...nodeEnvironment, PATH: process.env.PATH, ...dirs.settings },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      const ended = once(child, 'exit')
      session = await waitFor(
        () => {
          assert.equal(child.exitCode, null, 'it has ended')
          return findWaiter('audit_entries')
        },
        (waiter) => waiter !== undefined,
      )
      child.kill('SIGKILL')
      await ended
    })
  await waitFor(
    () => isOpen(session),
    (isStillOpen) => !isStillOpen,
  )
}

/** The session that waits for a table. */
async function findWaiter(table: string): Promise<number | undefined> {
  const { rows } = await sql<{ pid: number }>`
    select pid from pg_locks where not granted and relation = ${table}::text::regclass`.execute(target)
  return rows[0]?.pid
}

async function isOpen(session: number | undefined): Promise<boolean> {
  const { rows } = await sql`select 1 from pg_stat_activity where pid = ${session}`.execute(target)
  return rows.length > 0
}

/** An erasure after the move is completed only when the old control plane is deleted. */
async function assertWaitsForOld(service: Process, path: string): Promise<void> {
  const requestId = await requestErasure(service, erasedHours)
  const { detail, status } = await waitFor(
    () => readDeletion(service, requestId),
    (request) => request.status === 'incomplete' || request.status === 'completed',
  )
  assert.equal(status, 'incomplete')
  assert.match(
    String(detail.blocked_reason),
    /control\.db is a control plane that is not used any more .*, delete /,
  )
  assert.ok(existsSync(path))
  for (const file of controlFilesAt(path)) rmSync(file, { force: true })
  assert.equal((await completed(service, requestId)).status, 'completed')
}

test('a control plane is moved by a command that was killed and repeated, and then only the new one is used', async () => {
  const old = newBackupDirs()
  const service = await populated(old)
  const backupId = await takeBackup(old)
  const { request_id: requestId } = await eraseBefore(service, erasedHours)
  await service.terminate()

  const moved = { ...old, settings: { ...old.settings, LETHE_CONTROL_URL: plane.url } }
  const from = `sqlite:${join(old.dataDir, 'control.db')}`
  const words = ['migrate', 'control', '--from', from, '--to', plane.url]
  const refused = async (dirs: BackupDirs, message: RegExp) => {
    const { code, err, out } = await lethe(dirs, 'serve')
    assert.equal(code, 1, out)
    assert.match(err, message)
  }

  await killMove(old, words)
  assert.notDeepEqual(await target.selectFrom('organisations').selectAll().execute(), [])
  // What comes after the page that the server was asked for last.
  assert.deepEqual(await target.selectFrom('detectors').selectAll().execute(), [])
  await refused(
    moved,
    /^lethe: This control plane is incomplete: its move from .*control\.db was interrupted\./m,
  )
  const usable = await lethe(old, 'token', 'list', '--org', 'acme')
  assert.equal(usable.code, 0, usable.err)

  const { code, err, out } = await lethe(old, ...words)
  assert.equal(code, 0, err)
  assert.match(out, /^The target has a part of this move, which continues\.$/m)
  assert.match(out, /^25 tables with \d+ rows are the same in /m)
  assert.match(out, /^Chains after: 4 with \d+ entries, checked entry by entry\.$/m)
  assert.match(
    out,
    /control\.db keeps what is erased from now on: no erasure is completed until you delete it\.$/m,
  )
  await refused(old, /^lethe: This control plane was moved to the database .* and is no longer used;/m)

  for (const chain of ['ledger', 'audit']) {
    const verified = await lethe(moved, chain, 'verify')
    assert.equal(verified.code, 0, `${verified.out}\n${verified.err}`)
  }
  const again = await serveReady(moved)
  assert.deepEqual(await bodiesOf(again, acme), kept)
  assert.deepEqual(await bodiesOf(again, globex), rows)
  assert.equal((await eventsOf(again, requestId)).at(-1), 'system:deletion completed')
  await assertWaitsForOld(again, join(old.dataDir, 'control.db'))
  await again.terminate()

  assert.match(await restored(moved, backupId), /The control plane was not changed\./)
  const guarded = await assertGuarded(moved, { dirs: moved, backupId, requestId })
  const events = await eventsOf(guarded, requestId)
  assert.ok(
    events.some((event) => event.startsWith('system:restore-guard ')),
    events.join(),
  )
  await guarded.terminate()

  const other = newBackupDirs()
  const foreign = { ...other, settings: { ...other.settings, LETHE_CONTROL_URL: plane.url } }
  await refused(foreign, /^lethe: The control-plane database belongs to another data folder;/m)
})
