// The secret of a data folder and the control plane that belongs to it.

import assert from 'node:assert/strict'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openControlPlane } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { ConfigError } from '../config.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { instanceOf } from '../core/process/instance.ts'
import { Leases } from '../worker/lease.ts'
import { assertSameFolder, endLeasesOfOlderVersion, readFolderSecret } from './instance.ts'

const folder = temporaryFolder()
const { control, close } = await openControlPlane()
after(async () => {
  await close()
  rmSync(folder, { recursive: true, force: true })
})

test('a folder gets its secret once, readable by its owner only', () => {
  const secret = readFolderSecret(folder)
  assert.ok(secret.length >= 32)
  assert.equal(readFolderSecret(folder), secret)
  assert.deepEqual(readdirSync(folder), ['instance-id'])
  assert.equal(statSync(join(folder, 'instance-id')).mode & 0o777, 0o600)
})

test('a control plane belongs to the folder with which it was started first', async () => {
  await assertSameFolder(control, 'ours')
  await assertSameFolder(control, 'ours')
  await assert.rejects(assertSameFolder(control, 'another'), ConfigError)
})

test('a lease that an older version took under the secret is free at once, and no other is', async () => {
  const clock = new ManualClock(0)
  const leases = new Leases(control, clock, instanceOf('ours').leaseHolder)
  await new Leases(control, clock, 'ours').take('deletion', 60_000)
  await new Leases(control, clock, 'another process').take('detection', 60_000)
  assert.equal(await leases.take('deletion', 60_000), false)
  await endLeasesOfOlderVersion(control, 'ours')
  assert.equal(await leases.take('deletion', 60_000), true)
  assert.equal(await leases.take('detection', 60_000), false)
})
