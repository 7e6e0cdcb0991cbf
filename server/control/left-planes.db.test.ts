// Which control planes count as left: files that a move recorded and that are there, never the one in use.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openControlPlane } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { type ControlAddress, controlFilesAt } from './control-address.ts'
import { LeftControlPlane } from './erased-flush.ts'
import { assertNoneLeft, forgetLeft, leftNotReached, recordLeft } from './left-planes.ts'

const folder = temporaryFolder()
const plane = await openControlPlane()
const { control } = plane
after(async () => {
  await plane.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A data folder whose control plane in use is a file elsewhere, with a link to it. */
function scene(name: string) {
  const dataDir = join(folder, name)
  mkdirSync(dataDir)
  const [used, link] = [join(dataDir, 'used.db'), join(dataDir, 'link.db')]
  writeFileSync(used, '')
  symlinkSync(used, link)
  const address: ControlAddress = { kind: 'sqlite', path: used }
  const check = () => assertNoneLeft({ control, address, dataDir })
  return { dataDir, used, link, check }
}

const names = (path: string) => (error: unknown) =>
  error instanceof LeftControlPlane && error.message.endsWith(`, delete ${path}`)

test('a control plane that a move has left counts until its file and its logs are gone', async () => {
  const { check, dataDir } = scene('recorded')
  const path = join(dataDir, 'old.db')
  const [, wal = ''] = controlFilesAt(path)
  await recordLeft(control, { name: 'old', file: path })
  await check()
  for (const file of [path, wal]) writeFileSync(file, '')
  assert.ok(existsSync(path))
  await assert.rejects(check(), names(`${path}, ${wal}`))
  rmSync(path)
  await assert.rejects(check(), names(wal))
  rmSync(wal)
  await check()
  writeFileSync(path, '')
  await assert.rejects(check(), names(path))
  await forgetLeft(control, { name: 'old', file: path })
  await check()
})

test('a control.db in the data folder counts, also where no move recorded it', async () => {
  const { check, dataDir } = scene('unrecorded')
  const path = join(dataDir, 'control.db')
  writeFileSync(path, '')
  await assert.rejects(check(), names(path))
  rmSync(path)
  await check()
})

test('the file in use does not count, whatever its path', async () => {
  const { check, link, used } = scene('used')
  const places = [used, link].map((file) => ({ name: file, file }))
  for (const place of places) await recordLeft(control, place)
  await check()
  for (const place of places) await forgetLeft(control, place)
})

test('a database of a server stops no erasure, and certificates name it', async () => {
  const { check } = scene('server')
  assert.deepEqual(await leftNotReached(control), [])
  const database = { name: 'the database lethe on db.example', file: null }
  await recordLeft(control, database)
  await recordLeft(control, database)
  await check()
  const sentences = await leftNotReached(control)
  assert.match(sentences.join(), /had the control plane before it was moved/)
  assert.doesNotMatch(sentences.join(), /db\.example/)
  await forgetLeft(control, database)
  assert.deepEqual(await leftNotReached(control), [])
})
