// Signing keys in a real database: what one of them signed can be verified for ever and elsewhere, what was
// changed fails verification, and the private half never leaves its table.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createVerifier } from 'fast-jwt'
import { calculateJwkThumbprint, exportSPKI, importJWK } from 'jose'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { figuresOf } from '../control/dialect.ts'
import { operatorActor } from '../core/actor.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { findBreak } from './chain.ts'
import { newKeyPair, SignatureProblem, signJws, verifyJws } from './jws.ts'
import { KeySeal } from './key-seal.ts'
import { readChain } from './log.ts'
import { listSigningKeys, SigningKeys } from './signing.ts'

const testSeal = new KeySeal('a sealing key that only this test has')

async function openKeys(t: { after(fn: () => Promise<void>): void }) {
  const plane = await openSharedControlPlane()
  const { control } = plane
  t.after(plane.close)
  const clock = new ManualClock(1_763_717_400_000)
  return { control, clock, plane, keys: new SigningKeys(control, clock, testSeal) }
}

const statement = { erased: 3, at: '2025-11-21T09:30:00.000Z', about: 'Grüße' }

test('what is signed is verified with the published key, and contains exactly what was signed', async (t) => {
  const { keys } = await openKeys(t)
  const jws = await keys.sign(statement, 'test+jws')
  const jwks = await keys.jwks()
  const { payload, kid } = await verifyJws(jws, jwks, 'test+jws')
  assert.deepEqual(payload, statement)
  assert.equal(kid, jwks.keys[0]?.kid)
  const [header = '', body = ''] = jws.split('.')
  assert.equal(
    Buffer.from(body, 'base64url').toString(),
    '{"about":"Grüße","at":"2025-11-21T09:30:00.000Z","erased":3}',
  )
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), {
    alg: 'EdDSA',
    typ: 'test+jws',
    kid,
  })
})

test('a key is named by its RFC 7638 thumbprint and shows only its public half', async (t) => {
  const { keys } = await openKeys(t)
  const [key] = (await keys.jwks()).keys
  assert.ok(key)
  assert.deepEqual(Object.keys(key).toSorted(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'])
  assert.equal(key.kid, await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: key.x }))
})

test('another library verifies it with the published key', async (t) => {
  const { keys } = await openKeys(t)
  const jws = await keys.sign(statement, 'test+jws')
  const [key] = (await keys.jwks()).keys
  assert.ok(key)
  const imported = await importJWK({ ...key }, 'EdDSA', { extractable: true })
  assert.ok(!(imported instanceof Uint8Array))
  const verify = createVerifier({ key: await exportSPKI(imported), algorithms: ['EdDSA'] })
  assert.deepEqual(verify(jws), statement)
  const other = await newKeyPair()
  const foreign = await signJws(statement, 'test+jws', { kid: key.kid, privateJwk: other.privateJwk })
  assert.throws(() => verify(foreign))
})

test('twenty concurrent first uses make one key, and another handle finds it', async (t) => {
  const { keys, plane, clock } = await openKeys(t)
  const signed = await Promise.all(Array.from({ length: 20 }, (_, i) => keys.sign({ i }, 'test+jws')))
  const jwks = await new SigningKeys(plane.another(), clock, testSeal).jwks()
  assert.equal(jwks.keys.length, 1)
  for (const [i, jws] of signed.entries()) {
    assert.deepEqual((await verifyJws(jws, jwks, 'test+jws')).payload, { i })
  }
})

test('after a rotation new statements have a new key, and old ones are still verified', async (t) => {
  const { keys, clock, control } = await openKeys(t)
  const before = await keys.sign(statement, 'test+jws')
  await clock.advance(1000)
  const kid = await keys.rotate(operatorActor('test'))
  const now = await keys.sign(statement, 'test+jws')
  const jwks = await keys.jwks()
  assert.equal(jwks.keys.length, 2)
  assert.equal((await verifyJws(now, jwks, 'test+jws')).kid, kid)
  assert.notEqual((await verifyJws(before, jwks, 'test+jws')).kid, kid)
  assert.deepEqual(
    (await listSigningKeys(control)).map(({ createdAtMs, retiredAtMs }) => [createdAtMs, retiredAtMs]),
    [
      [1_763_717_400_000, 1_763_717_401_000],
      [1_763_717_401_000, null],
    ],
  )
})

test('a rotation is in the audit log of every organisation, and names both keys but no secret', async (t) => {
  const { keys, control } = await openKeys(t)
  for (const [placement, tenant_id] of ['acme', 'globex'].entries()) {
    await control
      .insertInto('organisations')
      .values({ tenant_id, name: tenant_id, placement, created_at_ms: 0 })
      .execute()
  }
  const [first] = (await keys.jwks()).keys
  const kid = await keys.rotate(operatorActor('test'))
  for (const tenantId of ['acme', 'globex']) {
    const chain = await readChain(control, 'audit_entries', tenantId)
    assert.equal(findBreak(chain), null)
    const { action, target, facts } = JSON.parse(chain[0]?.text ?? '{}')
    assert.deepEqual([action, target, facts], ['signing_key.rotated', kid, { retired: first?.kid }])
  }
})

test('concurrent rotations leave one key that signs', async (t) => {
  const { control, keys } = await openKeys(t)
  await Promise.all([
    keys.rotate(tokenNamed('a')),
    keys.rotate(tokenNamed('b')),
    keys.sign({}, 'test+jws'),
    keys.rotate(tokenNamed('c')),
  ])
  assert.equal((await listSigningKeys(control)).filter(({ retiredAtMs }) => retiredAtMs === null).length, 1)
})

test('the private key is in no file and in no response, but can be opened with the sealing key', async (t) => {
  const { keys, control, plane } = await openKeys(t)
  await keys.jwks()
  const { kid, private_jwk: sealed } = await control
    .selectFrom('signing_keys')
    .select(['kid', 'private_jwk'])
    .executeTakeFirstOrThrow()
  const { d } = await testSeal.open(kid, sealed)
  assert.ok(typeof d === 'string' && d.length === 43)
  const jws = await keys.sign(statement, 'test+jws')
  const told = JSON.stringify([
    await keys.jwks(),
    await listSigningKeys(control),
    jws,
    await keys.rotate(tokenNamed('x')),
  ])
  assert.ok(!told.includes(d))
  assert.ok(!Buffer.from(jws.split('.')[0] ?? '', 'base64url').includes(d))
  assert.notDeepEqual(plane.filesWith(kid), [], 'the searched files contain the keys')
  assert.deepEqual(plane.filesWith(d), [])
})

test('a retired key has no private half any more', async (t) => {
  const { keys, control } = await openKeys(t)
  await keys.jwks()
  await keys.rotate(operatorActor('test'))
  const rows = await control.selectFrom('signing_keys').select(['private_jwk', 'retired_at_ms']).execute()
  assert.deepEqual(
    rows.map(({ private_jwk, retired_at_ms }) => private_jwk === '' && retired_at_ms !== null).sort(),
    [false, true],
  )
})

test('every changed character of a signed statement is found', async (t) => {
  const { keys } = await openKeys(t)
  const jws = await keys.sign(statement, 'test+jws')
  const jwks = await keys.jwks()
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.='
  for (let at = 0; at < jws.length; at++) {
    // The last character has bits that decode to nothing: each of its other spellings is tried.
    const others = at === jws.length - 1 ? alphabet : alphabet.charAt((at * 7) % alphabet.length)
    for (const other of others) {
      if (other === jws[at]) continue
      const changed = `${jws.slice(0, at)}${other}${jws.slice(at + 1)}`
      await assert.rejects(verifyJws(changed, jwks, 'test+jws'), SignatureProblem, `at ${at}: ${other}`)
    }
  }
})

test('any text that is given as a signature is refused with a sentence', async (t) => {
  const { keys } = await openKeys(t)
  const jwks = await keys.jwks()
  const part = fc.base64String().map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))
  const texts = fc.oneof(
    fc.string(),
    fc.tuple(part, part, part).map((parts) => parts.join('.')),
  )
  await fc.assert(
    fc.asyncProperty(texts, (text) =>
      assert.rejects(verifyJws(text, jwks, 'test+jws'), SignatureProblem).then(() => true),
    ),
  )
})

test('a statement is valid only for its type, with a trusted key, and with the one algorithm', async (t) => {
  const { keys } = await openKeys(t)
  const jws = await keys.sign(statement, 'test+jws')
  const jwks = await keys.jwks()
  const refused = (text: string, trusted: { keys: readonly unknown[] }, reason: RegExp, typ = 'test+jws') =>
    assert.rejects(verifyJws(text, trusted, typ), reason)

  await refused(jws, jwks, /not of the type other\+jws/, 'other+jws')
  await refused(jws, { keys: [] }, /not a trusted one/)
  await refused(
    jws,
    { keys: [null, 5, 'x', {}, { kid: jwks.keys[0]?.kid, kty: 'oct' }] },
    /not a trusted one/,
  )

  const other = await newKeyPair()
  const posing = { ...other.publicKey, kid: jwks.keys[0]?.kid }
  await refused(jws, { keys: [posing] }, /not the one its kid names/)

  const [, body, signature] = jws.split('.')
  const withHeader = (header: object) =>
    `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${body}.${signature}`
  const kid = jwks.keys[0]?.kid
  await refused(withHeader({ alg: 'none', typ: 'test+jws', kid }), jwks, /algorithm/)
  await refused(withHeader({ alg: 'HS256', typ: 'test+jws', kid }), jwks, /algorithm/)
  await refused(withHeader({ alg: 'EdDSA', typ: 'test+jws' }), jwks, /does not name its key/)
  await refused(withHeader({ alg: 'EdDSA', typ: 'test+jws', kid, crit: ['x'], x: 1 }), jwks, /does not match/)
  // A key in its own header proves nothing.
  const jwk = other.publicKey
  await refused(withHeader({ alg: 'EdDSA', typ: 'test+jws', kid: jwk.kid, jwk }), jwks, /not a trusted one/)
})

test('what JSON can’t represent is not signed', async (t) => {
  const { keys } = await openKeys(t)
  await assert.rejects(keys.sign({ rows: 5n }, 'test+jws'))
})

test('many who ask for the published keys at once share their reading', async (t) => {
  const { control, keys } = await openKeys(t)
  const expected = await keys.jwks()
  const before = figuresOf(control).statements
  const answers = await Promise.all(Array.from({ length: 50 }, () => keys.jwks()))
  for (const answer of answers) assert.deepEqual(answer, expected)
  const statements = figuresOf(control).statements - before
  assert.ok(statements <= 4, `${statements} statements`)
})
