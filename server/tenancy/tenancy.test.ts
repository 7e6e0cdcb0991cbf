// Rules of organisations and tokens: who shares a placement, and what is shown of a secret.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TenantId } from '../../contract/organisation/tenancy.ts'
import { roles } from '../../contract/role.ts'
import {
  choosePlacement,
  hashSecret,
  newTokenSecret,
  placementCount,
  prefixOf,
  secretLengthMax,
  secretLengthMin,
} from './tenancy.ts'

test('the first 64 organisations each get a placement of their own, the next ones share evenly', () => {
  const taken: number[] = []
  for (let i = 0; i < 3 * placementCount; i++) taken.push(choosePlacement(taken))
  assert.equal(new Set(taken.slice(0, placementCount)).size, placementCount)
  for (let placement = 0; placement < placementCount; placement++) {
    assert.equal(taken.filter((other) => other === placement).length, 3)
  }
})

test('a placement is always one of the least used, whatever the history', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: placementCount - 1 }), { maxLength: 300 }), (taken) => {
      const counts = Array.from({ length: placementCount }, (_, i) => taken.filter((p) => p === i).length)
      assert.equal(counts[choosePlacement(taken)], Math.min(...counts))
    }),
  )
})

test('a secret contains its role, is long enough, and is different each time', () => {
  for (const role of roles) {
    const [one, other] = [newTokenSecret(role), newTokenSecret(role)]
    assert.ok(one.startsWith(`lethe_${role}_`))
    assert.ok(one.length >= secretLengthMin && one.length <= secretLengthMax)
    assert.notEqual(one, other)
  }
})

test('four characters of a generated secret are shown, and none of a chosen one', () => {
  const secret = newTokenSecret('admin')
  assert.equal(prefixOf(secret), secret.slice(0, 'lethe_admin_'.length + 4))
  fc.assert(
    fc.property(fc.string({ minLength: 32 }), (chosen) => {
      fc.pre(!chosen.startsWith('lethe_'))
      assert.equal(prefixOf(chosen), '')
    }),
  )
})

test('secrets that differ in one character have hashes with nothing in common', () => {
  const [one, other] = [hashSecret('secret-a'), hashSecret('secret-b')]
  assert.match(one, /^[0-9a-f]{64}$/)
  assert.notEqual(one.slice(0, 8), other.slice(0, 8))
})

test('a tenant_id can be typed by a person: 3 to 40 of a-z, 0-9 and hyphen', () => {
  for (const good of ['abc', 'a-1', 'acme-corp', `a${'b'.repeat(39)}`]) {
    assert.ok(TenantId.safeParse(good).success, good)
  }
  for (const bad of [
    '',
    'ab',
    'Abc',
    '1bc',
    '-bc',
    'ab-',
    'a_b',
    'a b',
    'äbc',
    `a${'b'.repeat(40)}`,
    'abc\n',
  ]) {
    assert.ok(!TenantId.safeParse(bad).success, JSON.stringify(bad))
  }
})
