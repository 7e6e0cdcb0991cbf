// Backup and restore of the whole service: a backup during ingest loses nothing that was acknowledged before
// it; a restore replaces all or nothing; and what was erased after a backup is erased again before anything
// can be read, with either control plane. What is killed has its own process, and so has a command that waits
// for it. Two organisations send the same rows.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { restoreBackup, settleRestore } from '../../server/backup/restore.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import {
  acme,
  ask,
  type BackupDirs,
  backupDirsOf,
  bodiesOf,
  type Child,
  cleanUp,
  completed,
  eraseBefore,
  eventsOf,
  globex,
  killRestoreAt,
  lethe,
  madeOnce,
  newBackupDirs,
  type Process,
  readDeletion,
  requestErasure,
  restoreHere,
  send,
  serveInChild,
  serveReady,
  startLethe,
  takeBackup,
  takeBackupHere,
  untilRequested,
} from './backup-dirs.ts'
import { configOf } from './backup-service.ts'
import {
  assertGuarded,
  type ErasedSince,
  erasedHours,
  kept,
  populated,
  restored,
  rows,
  sendRows,
} from './erased-since.ts'

after(cleanUp)

/** A stopped service with a backup from before an erasure of acme's, which was completed. */
const erasedSinceBackup = madeOnce(async (): Promise<ErasedSince> => {
  const dirs = newBackupDirs()
  const service = await populated(dirs)
  const backupId = await takeBackup(dirs)
  const { request_id } = await eraseBefore(service, erasedHours)
  assert.deepEqual(await bodiesOf(service, acme), kept)
  assert.deepEqual(await bodiesOf(service, globex), rows)
  await service.terminate()
  return { dirs, backupId, requestId: request_id }
})

describe('telemetry erased after a backup', () => {
  test('is erased again before anything can be read, because the kept control plane has its request, and is listed with the backups that have it', async () => {
    const since = await erasedSinceBackup()
    const { dirs, backupId, requestId } = since
    const out = await restored(dirs, backupId)
    assert.match(out, /The control plane was not changed\./)
    const service = await assertGuarded(dirs, since)
    const events = await eventsOf(service, requestId)
    assert.ok(
      events.some((event) => event.startsWith('system:restore-guard ')),
      events.join(),
    )
    assert.equal(events.at(-1), 'system:deletion completed')
    assert.equal((await readDeletion(service, requestId)).status, 'completed')
    await service.terminate()
    const again = await serveReady(dirs)
    assert.deepEqual(await eventsOf(again, requestId), events, 'a later start has nothing to do')

    const waiting = await readDeletion(again, requestId)
    const [line = ''] = (await lethe(dirs, 'backup', 'list')).out.split('\n')
    const expires = /expires (\S+)/.exec(line)?.[1]
    assert.equal(waiting.backups_clear_by, expires)
    const removed = await lethe(dirs, 'backup', 'remove', backupId)
    assert.equal(removed.code, 0, removed.err)
    assert.notEqual((await readDeletion(again, requestId)).backups_clear_by, expires)
    await again.terminate()
  })

  test('is erased again because of the journal, where the control plane is that of the backup', async () => {
    const since = await erasedSinceBackup()
    const out = await restored(since.dirs, since.backupId, '--control-plane', 'from-backup')
    assert.match(out, /It has 2 organisations and 2 valid access tokens/)
    assert.match(out, /The journal has 1 erasure/)
    const service = await assertGuarded(since.dirs, since)
    const events = await eventsOf(service, since.requestId)
    assert.match(events[0] ?? '', /^system:restore-guard /)
    assert.equal(events.at(-1), 'system:deletion completed')
    await service.terminate()
  })

  test('is erased again as the act of two people, also where the control plane knows neither', async () => {
    const dirs = newBackupDirs()
    const service = await populated(dirs)
    const secret = newTokenSecret('admin')
    const actor = operatorActor('test')
    const second = { tenantId: acme.tenantId, name: 'second', role: 'admin', secret } as const
    await service.app.tenancy.createToken({ ...second, expiresAtMs: null, actor })
    const rule = JSON.stringify({ approval: 'every_deletion' })
    await ask(service, acme.secret, '/usage/storage/deletion-policy', { method: 'PUT', body: rule })
    const backupId = await takeBackupHere(dirs)
    const requestId = await requestErasure(service, erasedHours)
    const path = `/usage/storage/deletions/${requestId}`
    assert.equal((await ask(service, secret, `${path}/approve`, { method: 'POST' })).status, 200)
    await completed(service, requestId)
    const namesIn = async (known: Process) => {
      const { approved_by, requested_by } = await readDeletion(known, requestId)
      const { certificate } = (await (await ask(known, secret, `${path}/certificate`)).json()) as {
        certificate: { request: Record<string, unknown>; times: Record<string, unknown> }
      }
      const { request, times } = certificate
      return [requested_by, approved_by, request.requested_by, request.approved_by, times.approved_at]
    }
    const names = await namesIn(service)
    assert.match(String(names[3]), /^token:second /)
    await service.terminate()
    await restoreHere(dirs, backupId, true)
    const again = await assertGuarded(dirs, { dirs, backupId, requestId })
    assert.deepEqual(await namesIn(again), names)
    await again.terminate()
  })

  test('is erased again in a new data folder that has nothing but the backups', async () => {
    const since = await erasedSinceBackup()
    rmSync(since.dirs.dataDir, { recursive: true })
    const dirs = backupDirsOf(join(since.dirs.dataDir, 'new'), since.dirs.backupDir)
    const list = await lethe(dirs, 'backup', 'list')
    assert.match(list.out, new RegExp(`^${since.backupId}  found `))
    await restored(since.dirs, since.backupId, '--into', dirs.dataDir)
    await (await assertGuarded(dirs, since)).terminate()
  })

  test('is erased again where the new folder has its own folder for backups, because the journal is copied', async () => {
    const since = await erasedSinceBackup()
    const base = newBackupDirs()
    const target = backupDirsOf(base.dataDir, base.backupDir)
    const folder = join(since.dirs.backupDir, since.backupId)
    await restored(target, folder)
    await (await assertGuarded(target, since)).terminate()
  })

  test('stays erased when the guard is killed', async () => {
    const since = await erasedSinceBackup()
    await restoreHere(since.dirs, since.backupId)
    const killed = await serveInChild(since.dirs, { standStill: 'partition dropped' })
    await killed.standing
    assert.equal((await fetch(`${killed.address}/readyz`)).status, 503)
    await killed.kill()
    const service = await serveReady(since.dirs)
    assert.deepEqual(await bodiesOf(service, acme), kept)
    assert.deepEqual(await bodiesOf(service, globex), rows)
    assert.equal((await readDeletion(service, since.requestId)).status, 'completed', 'before it was ready')
    await service.terminate()
  })

  test('is erased again where the backup’s control plane still waits for its approval', async () => {
    const dirs = newBackupDirs()
    const service = await populated(dirs)
    const call = (secret: string, method: string, path: string, body: object) =>
      ask(service, secret, path, { method, body: JSON.stringify(body) })
    // A token of the operator, because a token that the requester could have created cannot approve.
    const token = newTokenSecret('owner')
    await service.app.tenancy.createToken({
      ...{ tenantId: 'acme', name: 'second owner', role: 'owner', secret: token },
      ...{ expiresAtMs: null, actor: operatorActor('test') },
    })
    const policy = await call(acme.secret, 'PUT', '/usage/storage/deletion-policy', { approval: 'always' })
    assert.equal(policy.status, 200, await policy.text())
    const requestId = await requestErasure(service, erasedHours)
    assert.equal((await readDeletion(service, requestId)).status, 'awaiting_approval')
    const backupId = await takeBackupHere(dirs)
    const approved = await call(token, 'POST', `/usage/storage/deletions/${requestId}/approve`, {})
    assert.equal(approved.status, 200, await approved.text())
    await completed(service, requestId)
    await service.terminate()

    await restoreHere(dirs, backupId, true)
    await (await assertGuarded(dirs, { dirs, backupId, requestId })).terminate()
  })
})

/** A hash of every file in the folder, by its path. */
function filesBelow(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const paths = files.map(({ name, parentPath }) => join(parentPath, name)).sort()
  return new Map(paths.map((path) => [path, hash('sha256', readFileSync(path))]))
}

describe('a journal that can’t be trusted', () => {
  test('stops a restore with the backup’s control plane where it is lost, unless that is accepted', async () => {
    const { dirs, backupId } = await erasedSinceBackup()
    rmSync(join(dirs.backupDir, 'erasures.ndjson'))
    const before = filesBelow(dirs.dataDir)
    const refused = await lethe(dirs, 'backup', 'restore', backupId, '--control-plane', 'from-backup')
    assert.equal(refused.code, 1)
    assert.match(refused.err, /^lethe: There is no .*erasures\.ndjson: .* --without-journal\.$/)
    assert.deepEqual(filesBelow(dirs.dataDir), before)
    await restored(dirs, backupId, '--control-plane', 'from-backup', '--without-journal')
    const service = await serveReady(dirs)
    assert.deepEqual(await bodiesOf(service, acme), rows, 'as was accepted')
    await service.terminate()
  })

  test('stops the service, and the error names the changed line', async () => {
    const { dirs } = await erasedSinceBackup()
    const path = join(dirs.backupDir, 'erasures.ndjson')
    writeFileSync(path, readFileSync(path, 'utf8').replace('"acme"', '"globex"'))
    const { code, err } = await lethe(dirs, 'serve')
    assert.equal(code, 1)
    assert.match(err, /Line 1 of the erasure journal .* does not match its seal/)
  })
})

describe('a backup', () => {
  test('beside ingest has every row that was acknowledged before it, each once, and is not restored beside a service', async () => {
    const dirs = newBackupDirs()
    const service = await populated(dirs)
    const acknowledged: string[] = []
    let isSending = true
    const sender = async (name: string) => {
      for (let batch = 0; isSending; batch++) {
        const bodies = Array.from({ length: 20 }, (_, i) => `${name}-${batch}-${i}`)
        assert.equal(await send(service, acme, bodies, 50), 200)
        acknowledged.push(...bodies)
      }
    }
    const senders = ['a', 'b'].map(sender)
    while (acknowledged.length < 200) await new Promise((resolve) => setImmediate(resolve))
    const before = [...acknowledged]
    const backupId = await takeBackupHere(dirs)
    const atTheEnd = acknowledged.length
    isSending = false
    await Promise.all(senders)
    await service.terminate()
    assert.ok(atTheEnd > before.length, 'ingest continued meanwhile')

    await restoreHere(dirs, backupId)
    const again = await serveReady(dirs)
    const found = await bodiesOf(again, acme)
    const counted = new Set(found)
    assert.equal(counted.size, found.length, 'no row exists twice')
    assert.deepEqual(
      [...before, ...rows].filter((body) => !counted.has(body)),
      [],
    )
    const sent = new Set([...acknowledged, ...rows])
    assert.deepEqual(
      found.filter((body) => !sent.has(body)),
      [],
    )
    assert.deepEqual(await bodiesOf(again, globex), rows)

    assert.equal(await send(again, acme, ['later'], 300), 200)
    const refused = await lethe(dirs, 'backup', 'restore', backupId)
    assert.match(refused.err, /Another process uses the data folder/)
    assert.equal(refused.code, 1)
    assert.deepEqual(await bodiesOf(again, acme), [...found, 'later'].sort())
    assert.deepEqual(await bodiesOf(again, globex), rows)
    await again.terminate()
  })

  /** One service after the other on the same folder: what was started again after a kill is killed next. */
  let running: { readonly dirs: BackupDirs; readonly service: Child } | null = null
  const startedAnew = async (standStill: string) => {
    const dirs = newBackupDirs()
    const service = await serveInChild(dirs, { organisations: [acme, globex], standStill })
    await service.ready
    await sendRows(service)
    return { dirs, service }
  }
  const duringErasure = 'before partition step'
  /** The test of what it does after any crash has the other points (server/backup/backups.db.test.ts). */
  for (const [point, status, next] of [
    ['backup engine copied', 'failed', 'backup in place'],
    ['backup in place', 'ready', duringErasure],
  ] as const) {
    test(`that kill -9 ends at "${point}" is ${status} after the next start`, async () => {
      const { dirs, service } = running ?? (await startedAnew(point))
      running = null
      const command = startLethe(dirs, /^The service has stopped/, 'backup', 'create')
      await service.standing
      await service.kill()
      const left = join(dirs.dataDir, 'control-copy.db')
      writeFileSync(left, 'a copy of the control plane that was not complete')
      // The command leaves the folder to the restarted service.
      await command.saying
      const again = await serveInChild(dirs, { standStill: next })
      await again.ready
      assert.equal(existsSync(left), false)
      const { code, err } = await command.ended
      assert.equal(code, status === 'ready' ? 0 : 1, err)
      if (status === 'failed') assert.match(err, /The process ended while the backup was taken\.$/m)
      const names = readdirSync(dirs.backupDir).filter((name) => name !== 'erasures.ndjson')
      assert.equal(names.length, status === 'ready' ? 1 : 0, names.join())
      assert.deepEqual(await bodiesOf(again, acme), rows)
      running = { dirs, service: again }
    })
  }

  test('that was requested before the service was killed is taken by the restarted service', async () => {
    const { dirs, service } = running ?? (await startedAnew(duringErasure))
    const body = JSON.stringify({ scope: 'all', confirm: 'globex' })
    assert.equal(
      (await ask(service, globex.secret, '/usage/storage/deletions', { method: 'POST', body })).status,
      202,
    )
    await service.standing
    const command = startLethe(dirs, /^The service has stopped/, 'backup', 'create')
    await untilRequested(dirs)
    await service.kill()
    await command.saying
    const again = await serveReady(dirs)
    const { code, err } = await command.ended
    assert.equal(code, 0, err)
    assert.deepEqual(await bodiesOf(again, acme), rows)
    await again.terminate()
  })
})

describe('a restore', () => {
  /** A stopped service that got a row and a token after its backup, which was taken without a service. */
  const grownSinceBackup = madeOnce(async () => {
    const dirs = newBackupDirs()
    await (await populated(dirs)).terminate()
    const backupId = await takeBackup(dirs)
    const service = await serveReady(dirs)
    assert.equal(await send(service, acme, ['later'], 300), 200)
    const created = await ask(service, acme.secret, '/tokens', {
      method: 'POST',
      body: JSON.stringify({ name: 'later', role: 'viewer' }),
    })
    assert.equal(created.status, 201, await created.clone().text())
    const { token } = (await created.json()) as { token: string }
    assert.equal((await ask(service, token, '/me')).status, 200)
    await service.terminate()
    return { dirs, backupId, token }
  })

  for (const [point, isDone, laterPoints] of [
    ['restore built', false, []],
    ['restore promised', true, ['restore old engine removed', 'restore old log removed', 'restore in place']],
  ] as const) {
    const interrupted = isDone ? ', also where its completion is interrupted at each later point' : ''
    test(`that kill -9 ends at "${point}" leaves ${isDone ? 'the backup' : 'what was there'}${interrupted}`, async () => {
      const { backupId, dirs, token } = await grownSinceBackup()
      const backup = join(dirs.backupDir, backupId)
      await killRestoreAt(dirs, point, { backup, isControlReplaced: true })
      for (const later of laterPoints) {
        const endAt = async (name: string) => {
          if (name === later) throw new Error(later)
        }
        await assert.rejects(settleRestore(configOf(dirs.settings), endAt), { message: later })
      }
      const again = await serveReady(dirs)
      assert.deepEqual(await bodiesOf(again, acme), isDone ? rows : ['later', ...rows])
      assert.deepEqual(await bodiesOf(again, globex), rows)
      assert.equal((await ask(again, token, '/me')).status, isDone ? 401 : 200)
      assert.deepEqual(
        readdirSync(join(dirs.dataDir, 'telemetry')).filter((name) => name.startsWith('restore.')),
        [],
      )
      await again.terminate()
    })
  }

  test('is refused before anything is changed', async () => {
    const { backupId, dirs } = await grownSinceBackup()
    const backup = join(dirs.backupDir, backupId)
    const refused = async (reason: RegExp, ...words: string[]) => {
      const { code, err } = await lethe(dirs, 'backup', 'restore', ...words)
      assert.match(err, reason)
      assert.equal(code, 1)
    }
    const before = filesBelow(dirs.dataDir)
    const copied = filesBelow(backup)
    await refused(/There is no backup bak_00000000000000000000000000/, 'bak_00000000000000000000000000')

    // In this process from here on, because a refusal comes before the engine is opened.
    const refusedHere = (reason: RegExp, folder: string, dataDir = dirs.dataDir) =>
      assert.rejects(
        restoreBackup({
          backup: folder,
          dataDir,
          control: { kind: 'sqlite', path: join(dataDir, 'control.db') },
          backupDir: dirs.backupDir,
          isControlReplaced: false,
          isJournalLost: false,
          engineMemoryBytes: 2 ** 30,
          failpoint: async () => {},
        }),
        { name: 'BackupError', message: reason },
      )
    await refusedHere(/is not a backup: it has no manifest\.json/, dirs.backupDir)
    const broken = (name: string, change: (folder: string) => void) => {
      const folder = join(dirs.backupDir, '..', name)
      cpSync(backup, folder, { recursive: true })
      change(folder)
      return folder
    }
    const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))
    const rewrite = (changes: object) => (folder: string) =>
      writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...manifestOf(folder), ...changes }))
    const part = Object.keys(manifestOf(backup).files).find((name) => name.endsWith('data.bin')) ?? ''
    const flip = (folder: string) => {
      const bytes = readFileSync(join(folder, part))
      bytes.writeUInt8(bytes.readUInt8(9) ^ 1, 9)
      writeFileSync(join(folder, part), bytes)
    }
    await refusedHere(/has other bytes in engine\/.*data\.bin/, broken('flipped', flip))
    await refusedHere(
      /has another length of control\.db/,
      broken('longer', (folder) => appendFileSync(join(folder, 'control.db'), 'x')),
    )
    await refusedHere(
      /lacks engine\/.*data\.bin/,
      broken('lost', (folder) => rmSync(join(folder, part))),
    )
    await refusedHere(
      /has a file engine\/more that was not in it/,
      broken('more', (folder) => writeFileSync(join(folder, 'engine/more'), '')),
    )
    await refusedHere(
      /was taken by Lethe .* restore it with that version/,
      broken('newer', rewrite({ migration: '9999-future' })),
    )
    await refusedHere(
      /was taken by Lethe .* restore it with that version/,
      broken('tables', rewrite({ telemetry_schema: 'other' })),
    )
    await refusedHere(
      /is not a manifest that this version can read/,
      broken('format', rewrite({ format: 2 })),
    )
    await refusedHere(
      /has another instance-id than it had/,
      broken('foreign', (folder) => writeFileSync(join(folder, 'instance-id'), 'x')),
    )

    const other = await erasedSinceBackup()
    await refusedHere(
      /contains the telemetry of another data folder/,
      join(other.dirs.backupDir, other.backupId),
    )
    const noFolder = join(dirs.dataDir, '..', 'with-engine-only')
    mkdirSync(join(noFolder, 'telemetry', 'engine'), { recursive: true })
    await refusedHere(/contains the telemetry of another data folder/, backup, noFolder)

    assert.ok(before.size > 100)
    assert.deepEqual(filesBelow(dirs.dataDir), before)
    assert.deepEqual(filesBelow(backup), copied)
  })
})
