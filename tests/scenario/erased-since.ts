// What two organisations have sent, what one of them has erased after a backup, and the check that the guard
// erases it again before anything is served: for tests in which an older copy comes back.

import assert from 'node:assert/strict'
import {
  acme,
  ask,
  type BackupDirs,
  bodiesOf,
  globex,
  type Here,
  lethe,
  type Process,
  readDeletion,
  send,
  serve,
  serveReady,
} from './backup-dirs.ts'

/** A row each hour of ten days, so that there are two partitions. */
export const rows = Array.from({ length: 240 }, (_, hour) => `row-${String(hour).padStart(3, '0')}`)
/** Inside the second week: the first week is dropped, the second rewritten. */
export const erasedHours = 200
export const kept = rows.slice(erasedHours)

export async function sendRows(service: Process): Promise<void> {
  for (const organisation of [acme, globex]) assert.equal(await send(service, organisation, rows), 200)
}

/** A service that was started once, has the rows, and runs. */
export async function populated(dirs: BackupDirs): Promise<Here> {
  const service = await serveReady(dirs, { organisations: [acme, globex] })
  await sendRows(service)
  return service
}

export interface ErasedSince {
  readonly dirs: BackupDirs
  readonly backupId: string
  readonly requestId: string
}

export async function restored(dirs: BackupDirs, ...words: string[]): Promise<string> {
  const { code, err, out } = await lethe(dirs, 'backup', 'restore', ...words)
  assert.equal(code, 0, err)
  return out
}

/** Starts the service and checks that nothing is served until the guard has erased what came back. */
export async function assertGuarded(dirs: BackupDirs, { requestId }: ErasedSince): Promise<Here> {
  const service = await serve(dirs, { standStill: 'before partition step' })
  const tooEarly = service.ready.then(() => assert.fail('It was ready before the guard had acted.'))
  await Promise.race([service.standing, tooEarly])
  for (const path of ['/telemetry/logs', '/usage/storage', `/usage/storage/deletions/${requestId}`, '/me']) {
    assert.equal((await ask(service, acme.secret, path)).status, 503, path)
    assert.equal((await ask(service, globex.secret, path)).status, 503, path)
  }
  assert.equal(await send(service, acme, ['too early']), 503)
  assert.equal((await fetch(`${service.address}/readyz`)).status, 503)
  tooEarly.catch(() => {})
  service.goOn()
  await service.ready
  assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
  assert.deepEqual(await bodiesOf(service, acme), kept)
  assert.deepEqual(await bodiesOf(service, globex), rows)
  const request = await readDeletion(service, requestId)
  assert.equal(request.status, 'completed')
  assert.ok(Number(request.detail.rows_erased) >= erasedHours)
  return service
}
