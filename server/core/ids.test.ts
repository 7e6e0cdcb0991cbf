// Ids sort by time and are unique; secrets have the length and alphabet that other code relies on.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newId, newSecret } from './ids.ts'

/** Beyond the year 10,000, and within the fifty bits of ten characters. */
const times = fc.integer({ min: 0, max: 2 ** 48 - 1 })

test('ids of one kind sort as text in the order of their milliseconds', () => {
  fc.assert(
    fc.property(times, times, (a, b) => {
      fc.pre(a !== b)
      assert.equal(newId('tok', a) < newId('tok', b), a < b)
    }),
  )
})

test('an id contains its kind and 26 characters of the alphabet without i, l, o and u', () => {
  fc.assert(
    fc.property(times, (ms) => {
      assert.match(newId('del', ms), /^del_[0-9a-hjkmnp-tv-z]{26}$/)
    }),
  )
})

test('ids of the same millisecond differ', () => {
  const ids = new Set(Array.from({ length: 20_000 }, () => newId('run', 5)))
  assert.equal(ids.size, 20_000)
})

test('a secret has 256 bits in characters that need no quoting, and is different each time', () => {
  const secrets = new Set(Array.from({ length: 1000 }, newSecret))
  assert.equal(secrets.size, 1000)
  for (const secret of secrets) assert.match(secret, /^[A-Za-z0-9_-]{43}$/)
})
