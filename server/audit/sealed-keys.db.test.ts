// Stored signing keys, in real files: what an older version left in clear text is removed from every byte of
// them, another key or none stops the start with instructions, and no key is made in place of one that can't
// be opened.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import type { Control } from '../control/database.ts'
import { operatorActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { newKeyPair, verifyJws } from './jws.ts'
import { KeySeal, KeySealProblem } from './key-seal.ts'
import { prepareSeal, reseal, sealForNewKey } from './sealed-keys.ts'
import { SigningKeys } from './signing.ts'

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const secret = 'a secret that is long enough for this'

async function openFolder(t: TestContext) {
  const folder = temporaryFolder()
  folders.push(folder)
  const { control, close, filesWith } = await openSharedControlPlane()
  t.after(close)
  const source = { secret: null, file: join(folder, 'signing.key') }
  const sign = async (seal: KeySeal) => {
    const keys = new SigningKeys(control, new ManualClock(1000), seal)
    const jws = await keys.sign({ said: 1 }, 'test+jws')
    await verifyJws(jws, await keys.jwks(), 'test+jws')
    return jws
  }
  return { folder, control, filesWith, source, sign }
}

/** Stores a key as older versions did. */
async function insertClear(control: Control, retiredAtMs: number | null): Promise<string> {
  const { privateJwk, publicKey } = await newKeyPair()
  await control
    .insertInto('signing_keys')
    .values({
      kid: publicKey.kid,
      public_jwk: JSON.stringify(publicKey),
      private_jwk: JSON.stringify(privateJwk),
      created_at_ms: 1,
      retired_at_ms: retiredAtMs,
    })
    .execute()
  return String(privateJwk.d)
}

test('the first start makes a key file for its owner only, and later starts use it', async (t) => {
  const { source, sign, control } = await openFolder(t)
  const seal = await prepareSeal(control, source)
  assert.equal(statSync(source.file).mode & 0o777, 0o600)
  const jws = await sign(seal)
  const again = await prepareSeal(control, source)
  assert.equal(again.id, seal.id)
  assert.equal(await sign(again), jws)
})

test('keys of an older version are sealed, and no byte of them is left in clear text in any file', async (t) => {
  const { control, filesWith, sign, source } = await openFolder(t)
  // Rows around them and many rewrites, so that pages are split, freed and used again.
  for (let i = 0; i < 300; i++) {
    await control
      .insertInto('instance')
      .values({ key: `filler ${i}`, value: 'x'.repeat(300) })
      .execute()
  }
  const secrets = [
    await insertClear(control, 2),
    await insertClear(control, 3),
    await insertClear(control, null),
  ]
  await control.updateTable('signing_keys').set({ retired_at_ms: 4 }).where('retired_at_ms', '=', 3).execute()
  await control.deleteFrom('instance').where('key', 'like', 'filler 1%').execute()
  for (const d of secrets) assert.notDeepEqual(filesWith(d), [], 'they were there')
  await sign(await prepareSeal(control, source))
  for (const d of secrets) assert.deepEqual(filesWith(d), [])
  const key = readFileSync(source.file, 'utf8').trim()
  assert.deepEqual(filesWith(key), [], 'nor what opens them')
})

test('where the rewriting of the file was interrupted, the next start rewrites it', async (t) => {
  const { control, source, sign } = await openFolder(t)
  await insertClear(control, null)
  await sign(await prepareSeal(control, source))
  await control.insertInto('instance').values({ key: 'signing_keys_in_clear_text', value: '1' }).execute()
  await prepareSeal(control, source)
  const marks = await control.selectFrom('instance').select('key').where('key', 'like', 'signing%').execute()
  assert.deepEqual(marks, [])
})

test('without the key, with another or with half of it nothing starts, and the error says what to do', async (t) => {
  const { control, source, sign } = await openFolder(t)
  const jws = await sign(await prepareSeal(control, source))
  const whole = readFileSync(source.file, 'utf8')
  const refuses = (given: Parameters<typeof prepareSeal>[1]) =>
    assert.rejects(prepareSeal(control, given), (error) => {
      assert.ok(error instanceof KeySealProblem, String(error))
      assert.match(error.message, /LETHE_KEY_FILE/)
      assert.ok(!error.message.includes(whole.trim()) && !error.message.includes(secret))
      return true
    })
  await refuses({ secret, file: source.file })
  writeFileSync(source.file, whole.slice(0, 20))
  await refuses(source)
  writeFileSync(source.file, `${'0'.repeat(64)}\n`)
  await refuses(source)
  rmSync(source.file)
  await refuses(source)
  assert.ok(!existsSync(source.file), 'no other key was made in its place')
  writeFileSync(source.file, whole)
  assert.equal(await sign(await prepareSeal(control, source)), jws)
})

test('a sealed key that was changed, or exchanged for another, does not open', async (t) => {
  const { control, source, sign } = await openFolder(t)
  const seal = await prepareSeal(control, source)
  await sign(seal)
  const row = await control.selectFrom('signing_keys').selectAll().executeTakeFirstOrThrow()
  await assert.rejects(seal.open('another', row.private_jwk), /was changed/)
  const parts = row.private_jwk.split('.')
  for (const at of [2, 3, 4]) {
    const part = parts[at] ?? ''
    const changed = parts.with(at, `${part.startsWith('A') ? 'B' : 'A'}${part.slice(1)}`).join('.')
    await assert.rejects(seal.open(row.kid, changed), /was changed/)
  }
})

test('keys are sealed again for a new file or secret, and the old one no longer opens any', async (t) => {
  const { control, folder, source, sign } = await openFolder(t)
  const jws = await sign(await prepareSeal(control, source))
  const next = { secret: null, file: join(folder, 'elsewhere', 'next.key') }
  assert.equal(await reseal(control, source, next), 1)
  await assert.rejects(prepareSeal(control, source), KeySealProblem)
  assert.equal(await sign(await prepareSeal(control, next)), jws)
  assert.equal(await reseal(control, next, { secret, file: '' }), 1)
  assert.equal(await sign(await prepareSeal(control, { secret, file: '' })), jws)
  await assert.rejects(reseal(control, next, source), KeySealProblem)
})

test('where the key is lost a new signing key is made on request, and old signatures stay valid', async (t) => {
  const { control, source, sign } = await openFolder(t)
  const jws = await sign(await prepareSeal(control, source))
  rmSync(source.file)
  const keys = new SigningKeys(control, new ManualClock(2000), sealForNewKey(source))
  await keys.rotate(operatorActor('command-line'))
  await verifyJws(jws, await keys.jwks(), 'test+jws')
  await sign(await prepareSeal(control, source))
})

test('a key file that its owner made readable for a group is accepted: a mounted secret often is', async (t) => {
  const { control, source, sign } = await openFolder(t)
  writeFileSync(source.file, `${secret}\n`)
  chmodSync(source.file, 0o444)
  await sign(await prepareSeal(control, source))
  assert.equal((await prepareSeal(control, source)).id, new KeySeal(secret).id)
})
