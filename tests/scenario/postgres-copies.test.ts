// Older copies of a control plane on PostgreSQL come back: a dump, the files of the server, and a backup of
// the service. What was erased after the copy is erased again before anything is served, also the anomalies,
// which lie in that database; the neighbour's identical rows stay. And a standby is refused with a sentence.
// Every command is a process of its own; the server belongs to this file, because its files are replaced.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { controlFilesAt } from '../../server/control/control-address.ts'
import type { Control } from '../../server/control/database.ts'
import { administer, openDatabase, urlOf } from '../postgres-plane.ts'
import { type PostgresServer, programOf, role, startPostgres } from '../postgres-server.ts'
import {
  acme,
  type BackupDirs,
  backupDirsOf,
  bodiesOf,
  cleanUp,
  eraseBefore,
  eventsOf,
  globex,
  type Here,
  killRestoreAt,
  lethe,
  madeOnce,
  newBackupDirs,
  serveReady,
  takeBackup,
} from './backup-dirs.ts'
import {
  assertGuarded,
  type ErasedSince,
  erasedHours,
  kept,
  populated,
  restored,
  rows,
} from './erased-since.ts'

const database = 'lethe'
/** Has the name of a series of both organisations, and so is telemetry. */
const canary = 'canary-of-the-checkout'

let server: PostgresServer
let files: string
let dump: string

before(async () => {
  // What a server with standbys writes.
  server = await startPostgres({ wal_level: 'replica' })
  await administer(server.folder, `create database ${database}`)
})

after(async () => {
  await cleanUp()
  await server.stop()
})

/** The same folders with a control plane in that database. */
function onDatabase({ dataDir, backupDir, settings }: BackupDirs, name: string): BackupDirs {
  return {
    dataDir,
    backupDir,
    settings: { ...settings, LETHE_CONTROL_URL: urlOf(server.folder, name) },
  }
}

async function onServer<T>(name: string, work: (control: Control) => Promise<T>): Promise<T> {
  const control = openDatabase(server.folder, name)
  try {
    return await work(control)
  } finally {
    await control.destroy()
  }
}

/** Runs a program of PostgreSQL on a database; `input` is its standard input. Returns what it wrote. */
function run(program: string, name: string, words: readonly string[], input = ''): string {
  const { status, stderr, stdout } = spawnSync(
    programOf(program),
    ['-h', server.folder, '-U', role, ...words, name],
    { input, encoding: 'utf8', maxBuffer: 2 ** 28 },
  )
  assert.equal(status, 0, stderr)
  return stdout
}

const copyFiles = (from: string, to: string) => assert.equal(spawnSync('cp', ['-a', from, to]).status, 0)

/** Both organisations have the same anomaly, in the first week. */
async function insertAnomalies(name: string): Promise<void> {
  const startNs = 1_767_571_200_000_000_000n
  await onServer(name, async (control) => {
    for (const { tenantId } of [acme, globex]) {
      await control
        .insertInto('anomalies')
        .values({
          id: `ano_${tenantId}`,
          tenant_id: tenantId,
          detector_id: 'det_1',
          group_key: canary,
          metric_key: 'logs.rate',
          signal: 'logs',
          started_at_ns: String(startNs),
          ended_at_ns: String(startNs + 1n),
          seen_until_ns: String(startNs + 1n),
          peak_at_ns: String(startNs),
          value: 1,
          expected: 0,
          lower: 0,
          upper: 0,
          score: 3,
          reason: 'r',
          read_from_ns: String(startNs),
          created_at_ms: 1,
          updated_at_ms: 1,
        })
        .execute()
    }
  })
}

/** Organisations with the anomaly. */
const withAnomaly = (name: string) =>
  onServer(name, async (control) => {
    const found = control.selectFrom('anomalies').select('tenant_id').where('group_key', '=', canary)
    return (await found.orderBy('tenant_id').execute()).map(({ tenant_id }) => tenant_id)
  })

const knows = (name: string, requestId: string) =>
  onServer(name, async (control) => {
    const found = control.selectFrom('deletion_requests').select('status')
    return (await found.where('request_id', '=', requestId).execute()).length > 0
  })

/**
 * A stopped service with three older copies of its control plane: in a backup, in a dump, and in files. An
 * erasure of acme's was completed after all of them.
 */
const erasedSinceCopies = madeOnce(async (): Promise<ErasedSince> => {
  const dirs = onDatabase(newBackupDirs(), database)
  const service = await populated(dirs)
  await insertAnomalies(database)
  const backupId = await takeBackup(dirs)
  dump = run('pg_dump', database, [])
  await service.terminate()
  files = `${server.folder}/files`
  await server.whileStopped((data) => copyFiles(data, files))
  const again = await serveReady(dirs)
  assert.deepEqual(await bodiesOf(again, acme), rows)
  assert.deepEqual(await withAnomaly(database), ['acme', 'globex'])
  const { request_id } = await eraseBefore(again, erasedHours)
  assert.deepEqual(await bodiesOf(again, acme), kept)
  await again.terminate()
  assert.deepEqual(await withAnomaly(database), ['globex'])
  return { dirs, backupId, requestId: request_id }
})

/** The guard has recorded the erasure; `last` is its last entry in the ledger. Ends the service. */
async function assertTakenUp(
  service: Here,
  name: string,
  requestId: string,
  last = 'system:deletion completed',
): Promise<void> {
  assert.deepEqual(await withAnomaly(name), ['globex'])
  const events = await eventsOf(service, requestId)
  assert.match(events[0] ?? '', /^system:restore-guard /)
  assert.equal(events.at(-1), last)
  await service.terminate()
}

/** The engine knows the erasure, so nothing of the telemetry is erased again. */
const recorded = 'system:restore-guard completed'

test('a dump from before an erasure is guarded, beside the telemetry of a backup from before it', async () => {
  const since = await erasedSinceCopies()
  await administer(server.folder, 'create database dumped')
  run('psql', 'dumped', ['-q', '-v', 'ON_ERROR_STOP=1'], dump)
  const dirs = onDatabase(since.dirs, 'dumped')
  assert.match(await restored(dirs, since.backupId), /The control plane was not changed\./)
  assert.deepEqual(await withAnomaly('dumped'), ['acme', 'globex'], 'it came back')
  assert.equal(await knows('dumped', since.requestId), false)
  await assertTakenUp(await assertGuarded(dirs, since), 'dumped', since.requestId)
  const verified = await lethe(dirs, 'ledger', 'verify')
  assert.equal(verified.code, 0, verified.err)
})

test('the control plane of a backup alone is moved into an empty database, and guarded beside newer telemetry', async () => {
  const since = await erasedSinceCopies()
  await administer(server.folder, 'create database alone')
  const copy = join(since.dirs.dataDir, 'control.copy')
  copyFiles(join(since.dirs.backupDir, since.backupId, 'control.db'), copy)
  const dirs = onDatabase(since.dirs, 'alone')
  const words = ['--from', `sqlite:${copy}`, '--to', urlOf(server.folder, 'alone')]
  const { code, err } = await lethe(dirs, 'migrate', 'control', ...words)
  assert.equal(code, 0, err)
  assert.deepEqual(await withAnomaly('alone'), ['acme', 'globex'], 'it came back')
  const refused = await lethe(dirs, 'serve')
  assert.equal(refused.code, 1)
  assert.match(
    refused.err,
    /^lethe: .*control\.copy is a control plane that is not used any more .*, delete /m,
  )
  for (const file of controlFilesAt(copy)) rmSync(file, { force: true })
  const service = await serveReady(dirs)
  assert.deepEqual(await bodiesOf(service, acme), kept)
  assert.deepEqual(await bodiesOf(service, globex), rows)
  await assertTakenUp(service, 'alone', since.requestId, recorded)
})

test('a backup fills an empty database, continues after a kill, and is guarded', async () => {
  const since = await erasedSinceCopies()
  const words = ['backup', 'restore', since.backupId, '--control-plane', 'from-backup']
  const refused = await lethe(since.dirs, ...words)
  assert.equal(refused.code, 1)
  assert.match(
    refused.err,
    /^lethe: the database lethe on .* contains a control plane; .* empty database only/,
  )
  const untouched = await withAnomaly(database)
  assert.deepEqual(untouched, ['globex'])

  await administer(server.folder, 'create database filled')
  const dirs = onDatabase(since.dirs, 'filled')
  const backup = join(dirs.backupDir, since.backupId)
  await killRestoreAt(dirs, 'restore database filled', { backup, isControlReplaced: true })
  assert.deepEqual(await withAnomaly('filled'), ['acme', 'globex'], 'it came back')
  await assertTakenUp(await assertGuarded(dirs, since), 'filled', since.requestId)
})

test('a backup of a control plane on PostgreSQL is restored into a folder with a file of SQLite', async () => {
  const since = await erasedSinceCopies()
  const dirs = backupDirsOf(newBackupDirs().dataDir, since.dirs.backupDir)
  const out = await restored(dirs, join(dirs.backupDir, since.backupId))
  assert.match(out, /It has 2 organisations and 2 valid access tokens/)
  await (await assertGuarded(dirs, since)).terminate()
})

test('the files of the server from before an erasure are guarded', async () => {
  const since = await erasedSinceCopies()
  await server.whileStopped((data) => {
    rmSync(data, { recursive: true })
    copyFiles(files, data)
  })
  assert.deepEqual(await withAnomaly(database), ['acme', 'globex'], 'it came back')
  assert.equal(await knows(database, since.requestId), false)
  await restored(since.dirs, since.backupId)
  await assertTakenUp(await assertGuarded(since.dirs, since), database, since.requestId)
})

test('a standby is refused at the start with a sentence', async () => {
  const { dirs } = await erasedSinceCopies()
  await server.whileStopped((data) => {
    writeFileSync(join(data, 'standby.signal'), '')
    appendFileSync(join(data, 'postgresql.auto.conf'), "hot_standby = 'on'\n")
  })
  const { code, err, out } = await lethe(dirs, 'serve')
  assert.equal(code, 1, out)
  assert.match(err, /^lethe: The control-plane database is read-only: it is a standby, or its operator has/m)
})
