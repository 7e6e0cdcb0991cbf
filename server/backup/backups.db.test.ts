// Takes backups with real stores: what is in one, what makes one fail so that nothing of it is left, which
// expire, and what a crash leaves. Restoring is in tests/scenario/backup.test.ts.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { sql as rawSql } from 'kysely'
import type { SharedTestControl } from '../../tests/control-plane.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { batchOf, delegate, insertRows, silent, temporaryFolder } from '../../tests/fixtures.ts'
import type { Control } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { copyToFile } from '../control/file-copy.ts'
import { operatorActor } from '../core/actor.ts'
import { systemClock } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { DiskCalls, DiskNotAnswering } from '../disk/disk-calls.ts'
import { openChdb } from '../telemetry/chdb.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import { EngineFolder, type LocalEngine } from '../telemetry/engine-files.ts'
import { MemoryPlacementLocks } from '../telemetry/placement-locks.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { LeaseLost } from '../worker/lease.ts'
import { Backups, type BackupsDeps } from './backups.ts'
import { sealFolder } from './files.ts'
import { ErasureJournal } from './journal.ts'
import { manifestFile, readManifest } from './manifest.ts'
import { BackupRegister, type BackupRow } from './register.ts'

const dayMs = 86_400_000
const folderSecret = 'secret of this folder'
const folder = temporaryFolder()
// A name with characters that a path in a statement or in the engine's settings must escape.
const backupDir = join(folder, "back'ups & <more>")
const acme = { tenantId: 'acme', placement: 0 }

let engine: LocalEngine
let plane: SharedTestControl | undefined
let control: Control
/** Set by a test; otherwise the machine's own time. */
let laterMs = 0
const clock = {
  ...systemClock,
  nowMs: () => systemClock.nowMs() + laterMs,
  steady: () => ({ boot: 'of this test', ms: systemClock.steady().ms + laterMs }),
  elapsedMs: () => systemClock.elapsedMs() + laterMs,
}
const register = () => new BackupRegister(control, clock)

before(async () => {
  engine = await openChdb({
    folder: join(folder, 'telemetry'),
    maxMemoryBytes: 2 ** 30,
    backupFolder: backupDir,
  })
  await insertRows(engine, acme, batchOf('otel_logs', [10n ** 18n, 2n * 10n ** 18n]))
})

beforeEach(async () => {
  await plane?.close()
  for (const path of [backupDir, away]) rmSync(path, { recursive: true, force: true })
  plane = await openSharedControlPlane()
  control = plane.control
  laterMs = 0
})

after(async () => {
  await engine.close()
  await plane?.close()
  rmSync(folder, { recursive: true, force: true })
})

function newBackups(changes: Partial<BackupsDeps> = {}): Backups {
  const disk = changes.disk ?? new DiskCalls(backupDir)
  return new Backups({
    register: register(),
    disk,
    journal: new ErasureJournal(backupDir, folderSecret, disk),
    engine,
    files: engine.files,
    clock,
    trustedNowMs: async () => clock.nowMs(),
    logger: silent,
    backupDir,
    folderSecret,
    serviceVersion: '1.2.3',
    migration: '0004-quiet',
    controlBytes: () => dialectOf(control).sizeBytes(control),
    copyControl: (path) => copyToFile(control, path),
    sideTables: async () => [],
    whileNothingErases: (_signal, work) => work(),
    failpoint: async () => {},
    ...changes,
  })
}

/** The files of an engine in which a test has replaced a call. */
const filesOf = (changed: TelemetryEngine) =>
  new EngineFolder(
    changed,
    () => engine.files.sync(),
    () => engine.files.syncsAtOnce,
  )
const round = (backups: Backups) => backups.takeAll(new AbortController().signal)
const namesThere = () => readdirSync(backupDir).sort()

/** Requests a backup, runs it, and returns its row. */
async function taken(changes: Partial<BackupsDeps> = {}, keepDays = 30): Promise<BackupRow> {
  const backupId = await register().request(backupDir, keepDays, operatorActor('command-line'))
  await round(newBackups(changes))
  return (await register().find(backupId)) ?? assert.fail('It is not registered.')
}

async function assertFailed(row: BackupRow, reason: RegExp): Promise<void> {
  assert.equal(row.status, 'failed')
  assert.match(row.error ?? '', reason)
  assert.deepEqual(
    (existsSync(backupDir) ? namesThere() : []).filter((name) => name !== 'erasures.ndjson'),
    [],
    'nothing of it is left',
  )
  assert.deepEqual((await register().containing()).all, [])
}

test('a backup is complete, private and sealed', async () => {
  const beforeMs = clock.nowMs()
  const row = await taken()
  assert.equal(row.status, 'ready')
  assert.deepEqual(namesThere(), [row.backup_id, 'erasures.ndjson'])
  assert.ok((row.taken_at_ms ?? 0) >= beforeMs && (row.taken_at_ms ?? 0) <= clock.nowMs())
  assert.equal(row.expires_at_ms, row.requested_at_ms + 30 * dayMs)

  const manifest = await readManifest(row.folder)
  assert.equal(manifest?.backup_id, row.backup_id)
  assert.equal(manifest.migration, '0004-quiet')
  assert.ok(!readFileSync(join(row.folder, manifestFile), 'utf8').includes(folderSecret))
  let bytes = 0
  const files = readdirSync(row.folder, { recursive: true, withFileTypes: true })
  for (const file of files) {
    const path = join(file.parentPath, file.name)
    assert.equal(statSync(path).mode & 0o077, 0, path)
    if (file.isDirectory() || file.name === manifestFile) continue
    const content = readFileSync(path)
    const seal = { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
    assert.deepEqual(manifest.files[path.slice(row.folder.length + 1)], seal, path)
    bytes += content.length
  }
  assert.equal(row.bytes, bytes)
  assert.ok(Object.keys(manifest.files).some((name) => name.startsWith('engine/data/default/otel_logs/')))
})

test('all requested backups are taken, oldest first', async () => {
  const ids = [await register().request(backupDir, 1, operatorActor('command-line'))]
  laterMs = 1
  ids.push(await register().request(backupDir, 1, operatorActor('command-line')))
  await round(newBackups())
  const rows = await Promise.all(ids.map((id) => register().find(id)))
  assert.deepEqual(
    rows.map((row) => row?.status),
    ['ready', 'ready'],
  )
  assert.ok((rows[0]?.taken_at_ms ?? 0) < (rows[1]?.taken_at_ms ?? 0))
})

test('ingest continues while the engine is copied', async () => {
  let inserted = 0
  const taking = taken({
    copyControl: async (path) => {
      await insertRows(engine, acme, batchOf('otel_logs', [3n * 10n ** 18n]))
      inserted++
      await copyToFile(control, path)
    },
  })
  await insertRows(engine, acme, batchOf('otel_logs', [4n * 10n ** 18n]))
  assert.equal((await taking).status, 'ready')
  assert.equal(inserted, 1)
})

test('nothing is copied while an erasure is unfinished', async () => {
  const row = await taken({ sideTables: async () => [{ name: 'erasure_swap_otel_logs' }] })
  await assertFailed(row, /^An erasure was interrupted/)
})

test('a backup is copied when no attempt of an erasure is in progress', async () => {
  const locks = new MemoryPlacementLocks()
  const ended = Promise.withResolvers<void>()
  const attempt = locks.exclusively([0], () => ended.promise)
  const points: string[] = []
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const taking = round(
    newBackups({
      whileNothingErases: (signal, work) => locks.exclusively([0, 1], work, signal),
      failpoint: async (name) => void points.push(name),
    }),
  )
  // More statements than the copy has before its first failpoint.
  for (let i = 0; i < 30; i++) await engine.select(sql`SELECT 1 AS one`)
  assert.deepEqual(points, ['backup begun'])
  ended.resolve()
  await Promise.all([attempt, taking])
  assert.equal((await register().find(backupId))?.status, 'ready')
})

test('a backup that was requested in another folder than the service’s is refused', async () => {
  const backupId = await register().request(join(folder, 'elsewhere'), 30, operatorActor('command-line'))
  await round(newBackups())
  const row = await register().find(backupId)
  await assertFailed(row ?? assert.fail(), /elsewhere.*LETHE_BACKUP_DIR/)
  assert.ok(!existsSync(join(folder, 'elsewhere')))
})

test('a backup that fails leaves nothing and records the reason', async () => {
  const failure = async () => {
    throw new Error('The disk is gone.')
  }
  await assertFailed(await taken({ copyControl: failure }), /^The disk is gone\.$/)
  for (const point of ['backup engine copied', 'backup sealed']) {
    const failpoint = async (name: string) => (name === point ? failure() : undefined)
    await assertFailed(await taken({ failpoint }), /^The disk is gone\.$/)
  }
  assert.equal((await taken()).status, 'ready', 'and the next one is taken')
})

test('an error of the engine is recorded in one line', async () => {
  const command = async () => {
    const id = (await register().inStatus('running'))[0]?.backup_id
    await engine.command(
      raw(`BACKUP TABLE nowhere TO File('${id}.taking/engine') SETTINGS id = '${id}' ASYNC`),
    )
  }
  const row = await taken({ files: filesOf({ ...delegate(engine), command }) })
  await assertFailed(row, /nowhere[^\n]*$/)
  assert.ok(!row.error?.includes('Stack trace'))
})

test('a stop of the service ends the backup, also in the engine', async () => {
  const stop = new AbortController()
  // Slow enough to be running when it is stopped, quick enough to notice it between two files.
  await engine.command(raw('SET max_backup_bandwidth = 10000'))
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const command = async (statement: Parameters<TelemetryEngine['command']>[0]) => {
    await engine.command(statement)
    stop.abort()
  }
  await newBackups({ files: filesOf({ ...delegate(engine), command }) }).takeAll(stop.signal)
  await assertFailed(
    (await register().find(backupId)) ?? assert.fail(),
    /^The service was stopped while the backup was taken\.$/,
  )
  const [copy] = await engine.select<{ status: string }>(
    sql`SELECT status FROM system.backups WHERE id = ${backupId}`,
  )
  assert.equal(copy?.status, 'BACKUP_CANCELLED')
  await engine.command(raw('SET max_backup_bandwidth = 0'))
})

test('a copy that is being sealed delays neither the loop nor an expiry, and the next backup waits for it', async () => {
  const expired = await taken({}, 1)
  laterMs = 2 * dayMs
  const ids = [await register().request(backupDir, 30, operatorActor('command-line'))]
  laterMs++
  ids.push(await register().request(backupDir, 30, operatorActor('command-line')))
  const copyGate = Promise.withResolvers<void>()
  const failpoint = (name: string) => (name === 'backup copied' ? copyGate.promise : Promise.resolve())
  const backups = newBackups({ failpoint })
  const { signal } = new AbortController()
  const statuses = async () =>
    Promise.all(ids.map(async (id) => (await register().find(id))?.status ?? assert.fail()))
  await backups.round(signal)
  await backups.round(signal)
  assert.deepEqual(await statuses(), ['running', 'requested'])
  assert.equal((await register().containing()).all.length, 2, 'both count while they are under way')
  assert.equal((await register().find(expired.backup_id))?.status, 'removed')
  // What is erased from here on is in the copy, and what is added is not: its moment is the time of the copy.
  await insertRows(engine, acme, batchOf('otel_logs', [5n * 10n ** 18n]))
  copyGate.resolve()
  await backups.sealed()
  assert.deepEqual(await statuses(), ['ready', 'requested'])
  await backups.takeAll(signal)
  assert.deepEqual(await statuses(), ['ready', 'ready'])
  const [first, second] = await Promise.all(ids.map((id) => readManifest(join(backupDir, id))))
  assert.ok((first?.taken_at_ms ?? 0) <= (second?.taken_at_ms ?? 0))
})

test('a stop of the service while a copy is sealed leaves nothing of it', async () => {
  const stop = new AbortController()
  const failpoint = async (name: string) => {
    if (name === 'backup copied') stop.abort()
  }
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const backups = newBackups({ failpoint })
  await backups.round(stop.signal)
  await backups.sealed()
  const row = (await register().find(backupId)) ?? assert.fail()
  await assertFailed(row, /^The service was stopped while the backup was taken\.$/)
})

test('a lost lease ends a backup with that reason', async () => {
  const work = new AbortController()
  const failpoint = async (name: string) => {
    if (name === 'backup copied') work.abort(new LeaseLost('deletion'))
  }
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const backups = newBackups({ failpoint })
  await backups.round(work.signal)
  await backups.sealed()
  const row = (await register().find(backupId)) ?? assert.fail()
  await assertFailed(row, /^The process lost its lease while the backup was taken\.$/)
})

test('where the system can’t sync a file system each file is synced, with the same seals', async () => {
  const sealedFolder = join(folder, 'to-seal')
  mkdirSync(join(sealedFolder, 'deep'), { recursive: true })
  writeFileSync(join(sealedFolder, 'deep', 'file'), 'bytes')
  const { signal } = new AbortController()
  const asked: string[] = []
  const sealed = await sealFolder(sealedFolder, signal, async (path) => {
    asked.push(path)
    return false
  })
  assert.deepEqual(asked, [sealedFolder], 'it is asked once for all')
  assert.deepEqual(sealed, await sealFolder(sealedFolder, signal))
  assert.deepEqual(Object.keys(sealed), ['deep/file'])
})

test('an expired backup is removed, and no other', async () => {
  const short = await taken({}, 1)
  const long = await taken({}, 2)
  laterMs = dayMs + 60_000
  await round(newBackups())
  assert.deepEqual(namesThere(), [long.backup_id, 'erasures.ndjson'].sort())
  assert.equal((await register().find(short.backup_id))?.status, 'removed')
  assert.deepEqual(
    (await register().containing()).all.map(({ backup_id }) => backup_id),
    [long.backup_id],
  )
})

test('after a crash at any point a backup is ready and complete, or failed and removed', async () => {
  for (const [point, status] of [
    ['backup engine copied', 'failed'],
    ['backup control plane copied', 'failed'],
    ['backup sealed', 'failed'],
    ['backup in place', 'ready'],
  ] as const) {
    const row = await crashedAt(point)
    assert.equal(row.status, 'running', point)
    assert.equal((await register().containing()).all.length, 1, 'it counts while it is under way')
    await newBackups().settle()
    const settled = await rowOf(row.backup_id)
    assert.equal(settled.status, status, point)
    if (status === 'ready') assert.deepEqual(namesThere(), [row.backup_id, 'erasures.ndjson'])
    else await assertFailed(settled, /^The process ended/)
  }
})

/** Requests a backup and takes it until this point, where nobody continues. Returns its row. */
async function crashedAt(point: string): Promise<BackupRow> {
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const standing = Promise.withResolvers<void>()
  const failpoint = async (name: string) => {
    if (name !== point) return
    standing.resolve()
    await new Promise(() => {})
  }
  // Nobody ends its work, and no timer of it may keep this process.
  const disk = new DiskCalls(backupDir, new ManualClock(0))
  void round(newBackups({ failpoint, disk }))
  await standing.promise
  return rowOf(backupId)
}

async function rowOf(backupId: string): Promise<BackupRow> {
  return (await register().find(backupId)) ?? assert.fail('It is not registered.')
}

const away = `${backupDir}-away`

/** Unmounts the disk. A start and the first erasure write a journal where it was. */
async function unmount(): Promise<void> {
  renameSync(backupDir, away)
  await new ErasureJournal(backupDir, folderSecret, new DiskCalls(backupDir)).ensure()
}

function mountAgain(): void {
  rmSync(backupDir, { recursive: true })
  renameSync(away, backupDir)
}

for (const { point, what, status } of [
  { point: 'backup engine copied', what: 'an incomplete', status: 'failed' },
  { point: 'backup in place', what: 'a complete', status: 'ready' },
] as const) {
  test(`after a start without its disk ${what} backup counts as one with telemetry until the disk is back`, async () => {
    const neighbour = await taken()
    laterMs = 1
    const { backup_id: backupId } = await crashedAt(point)
    const counted = [backupId, neighbour.backup_id]
    const known = async () => (await register().containing()).all.map(({ backup_id }) => backup_id)
    assert.deepEqual(await known(), counted)
    await unmount()
    const restarted = newBackups()
    await restarted.settle()
    await round(restarted)
    const unknown = await rowOf(backupId)
    assert.equal(unknown.status, 'running')
    assert.match(unknown.error ?? '', /Mount its disk; .* lethe backup remove bak_\w+ --gone$/)
    assert.deepEqual(await known(), counted)
    await completeErasure('del_meanwhile')

    mountAgain()
    laterMs = 120_000
    await round(restarted)
    const row = await rowOf(backupId)
    assert.equal(row.status, status)
    assert.equal((await rowOf(neighbour.backup_id)).status, 'ready')
    const left = status === 'ready' ? counted : [neighbour.backup_id]
    assert.deepEqual(await known(), left)
    assert.deepEqual(namesThere(), [...left, 'erasures.ndjson'].sort())
    const fromBefore = (await register().containing(['del_meanwhile'])).fromBefore('del_meanwhile')
    assert.deepEqual(
      fromBefore.map(({ backup_id }) => backup_id),
      left,
      'it does not name the erasure',
    )
  })
}

async function completeErasure(requestId: string): Promise<void> {
  await rawSql`insert into deletion_requests (request_id, tenant_id, scope, signals, created_at_ms, selection_hash, status, attempts, crashes, progress)
    values (${requestId}, 'acme', 'all', '[]', 0, '', 'completed', 1, 0, '{}')`.execute(control)
  await rawSql`insert into erasure_backups select ${requestId}, backup_id from backups
    where status in ('requested', 'running', 'ready')`.execute(control)
}

test('a backup whose disk has another path after a restart is ended there', async () => {
  const { backup_id: backupId } = await crashedAt('backup in place')
  const elsewhere = join(folder, 'other path', 'backups')
  mkdirSync(join(folder, 'other path'))
  renameSync(backupDir, elsewhere)
  await newBackups({ backupDir: elsewhere }).settle()
  const row = await rowOf(backupId)
  assert.deepEqual([row.status, row.folder], ['ready', join(elsewhere, backupId)])
})

test('a first backup that was interrupted before it began is taken after the restart', async () => {
  const { backup_id: backupId, status } = await crashedAt('backup begun')
  assert.equal(status, 'requested')
  assert.deepEqual(namesThere(), [`${backupId}.taking`])
  const restarted = newBackups()
  await restarted.settle()
  assert.deepEqual(namesThere(), [])
  await round(restarted)
  assert.equal((await rowOf(backupId)).status, 'ready')
})

test('a removal that is interrupted before it is recorded is recorded after the restart', async () => {
  const ready = await taken()
  renameSync(ready.folder, `${ready.folder}.removing`)
  laterMs = 1
  const running = await crashedAt('backup engine copied')
  renameSync(`${running.folder}.taking`, `${running.folder}.taking.removing`)
  await newBackups().settle()
  assert.equal((await rowOf(ready.backup_id)).status, 'removed')
  assert.equal((await rowOf(running.backup_id)).status, 'failed')
  assert.deepEqual(namesThere(), ['erasures.ndjson'])
})

test('a backup that can’t be ended keeps no other from being taken, ended or removed', async () => {
  const lost = await crashedAt('backup engine copied')
  rmSync(`${lost.folder}.taking`, { recursive: true })
  laterMs = 1
  const expired = await taken({}, 1)
  laterMs = 2 * dayMs
  const restarted = newBackups()
  await restarted.settle()
  const next = await register().request(backupDir, 30, operatorActor('command-line'))
  await round(restarted)
  const statuses = [lost.backup_id, expired.backup_id, next].map(async (id) => (await rowOf(id)).status)
  assert.deepEqual(await Promise.all(statuses), ['running', 'removed', 'ready'])
})

test('what can’t be ended is logged once', async () => {
  const lost = await crashedAt('backup engine copied')
  rmSync(`${lost.folder}.taking`, { recursive: true })
  let errors = 0
  const backups = newBackups({ logger: { ...silent, error: () => void errors++ } })
  for (let day = 1; day < 4; day++) {
    laterMs = day * dayMs
    await round(backups)
  }
  assert.equal(errors, 1)
})

test('an expired backup on a disk that is unmounted stays known, also where a journal was written meanwhile', async () => {
  const row = await taken({}, 1)
  await unmount()
  laterMs = 2 * dayMs
  const backups = newBackups()
  await backups.settle()
  await round(backups)
  assert.equal((await rowOf(row.backup_id)).status, 'ready')
  mountAgain()
  laterMs += 120_000
  await round(backups)
  assert.equal((await rowOf(row.backup_id)).status, 'removed')
  assert.deepEqual(namesThere(), ['erasures.ndjson'])
})

/** A disk with a call that hangs until `release`, and time that passes until work on it is given up. */
function silentDisk() {
  const time = new ManualClock(0)
  const disk = new DiskCalls(backupDir, time)
  const stuck = Promise.withResolvers<void>()
  return {
    disk,
    stuck: stuck.promise,
    release: () => stuck.resolve(),
    async silentUntil(work: Promise<unknown>) {
      let isOver = false
      const over = work.finally(() => {
        isOver = true
      })
      const call = assert.rejects(
        disk.run(() => stuck.promise),
        DiskNotAnswering,
      )
      while (!isOver) {
        await new Promise(setImmediate)
        await time.advance(5_000)
      }
      await Promise.all([call, over])
      assert.ok(time.nowMs() > 300_000, 'not before the disk was silent for minutes')
    },
  }
}

test('a copy on a disk that stops answering is given up, keeps the locks until it ends, and is then removed', async () => {
  const { disk, release, silentUntil, stuck } = silentDisk()
  const copying = Promise.withResolvers<void>()
  let holders = 0
  const hanging = newBackups({
    disk,
    whileNothingErases: async (_signal, work) => {
      holders++
      return work().finally(() => holders--)
    },
    copyControl: async () => {
      copying.resolve()
      await stuck
    },
  })
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const rounds = round(hanging)
  await copying.promise
  await silentUntil(rounds)
  assert.equal(holders, 1)
  const statusOf = async (id: string) => (await register().find(id))?.status
  assert.equal(await statusOf(backupId), 'running')
  assert.equal((await register().containing()).all.length, 1, 'it may contain telemetry')

  const nextId = await register().request(backupDir, 30, operatorActor('command-line'))
  await round(hanging)
  const next = (await register().find(nextId)) ?? assert.fail()
  assert.deepEqual([next.status, next.error], ['failed', `The file system of ${backupDir} does not answer.`])
  assert.equal(await statusOf(backupId), 'running')

  release()
  while (holders > 0) await new Promise(setImmediate)
  assert.ok(namesThere().includes(`${backupId}.taking`))
  laterMs = 60_000
  await round(hanging)
  await assertFailed((await register().find(backupId)) ?? assert.fail(), /^The backup was given up/)
})

test('a copy that is given up is ended in the engine', async () => {
  const { disk, release, silentUntil } = silentDisk()
  const copying = Promise.withResolvers<void>()
  let holders = 0
  const files = Object.assign(filesOf(engine), {
    copyTo: (_path: string, _id: string, _clock: unknown, signal: AbortSignal) =>
      new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('Cancelled.')))
        copying.resolve()
      }),
  })
  await register().request(backupDir, 30, operatorActor('command-line'))
  const rounds = round(
    newBackups({
      disk,
      files,
      whileNothingErases: async (_signal, work) => {
        holders++
        return work().finally(() => holders--)
      },
    }),
  )
  await copying.promise
  await silentUntil(rounds)
  while (holders > 0) await new Promise(setImmediate)
  release()
})

test('a copy whose sealing was given up and ends later is recorded', async () => {
  const { disk, release, silentUntil, stuck } = silentDisk()
  const sealing = Promise.withResolvers<void>()
  const inPlace = Promise.withResolvers<void>()
  const failpoint = async (name: string) => {
    if (name === 'backup in place') inPlace.resolve()
    if (name !== 'backup sealed') return
    sealing.resolve()
    await stuck
  }
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const backups = newBackups({ disk, failpoint })
  const rounds = round(backups)
  await sealing.promise
  await silentUntil(rounds)
  assert.equal((await register().find(backupId))?.status, 'running')
  release()
  await inPlace.promise
  await new Promise(setImmediate)
  await round(backups)
  assert.equal((await register().find(backupId))?.status, 'ready')
  assert.deepEqual(namesThere(), [backupId, 'erasures.ndjson'])
})

test('a copy is sealed when the disk answers again', async () => {
  const time = new ManualClock(0)
  const disk = new DiskCalls(backupDir, time)
  const stuck = Promise.withResolvers<void>()
  const failpoint = async (name: string) => {
    if (name !== 'backup control plane copied') return
    void disk.run(() => stuck.promise).catch(() => {})
    while (time.waiting < 2) await new Promise(setImmediate)
    await time.advance(30_000)
  }
  const backupId = await register().request(backupDir, 30, operatorActor('command-line'))
  const backups = newBackups({ disk, failpoint })
  await backups.round(new AbortController().signal)
  while (time.waiting === 0) await new Promise(setImmediate)
  stuck.resolve()
  await new Promise(setImmediate)
  await time.advance(5_000)
  await backups.sealed()
  assert.equal((await register().find(backupId))?.status, 'ready')
})

test('a partly removed folder is removed at the start', async () => {
  const row = await taken()
  mkdirSync(`${row.folder}.removing`)
  await newBackups().settle()
  assert.deepEqual(namesThere(), [row.backup_id, 'erasures.ndjson'])
})

test('a control plane from before a backup records it again', async () => {
  const row = await taken()
  await control.deleteFrom('backups').execute()
  await newBackups().settle()
  const found = await register().find(row.backup_id)
  assert.deepEqual(
    [found?.status, found?.taken_at_ms, found?.expires_at_ms, found?.bytes, found?.folder],
    ['ready', row.taken_at_ms, row.expires_at_ms, row.bytes, row.folder],
  )
})

test('a backup of another data folder, or of none, is left unchanged', async () => {
  const row = await taken()
  const { files, ...manifest } = (await readManifest(row.folder)) ?? assert.fail()
  await control.deleteFrom('backups').execute()
  writeFileSync(
    join(row.folder, manifestFile),
    JSON.stringify({ ...manifest, instance_hash: 'another', files }),
  )
  const foreign = `bak_${'0'.repeat(26)}.taking`
  for (const name of [foreign, 'photos', `bak_${'1'.repeat(26)}`]) mkdirSync(join(backupDir, name))
  writeFileSync(join(backupDir, foreign, 'instance-id'), 'another')
  writeFileSync(join(backupDir, `bak_${'1'.repeat(26)}`, manifestFile), 'not a manifest')
  const before = namesThere()
  await newBackups().settle()
  assert.deepEqual(namesThere(), before)
  assert.deepEqual(await register().list(), [])
})
