// The purpose of a chain: any later change, removal, insertion or reordering of entries is found, with its
// position. The property tests change a random part of a chain in a random way.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { chainStart, findBreak, hashOf, type SealedEntry, seal } from './chain.ts'

/** A chain as it is appended: each entry is sealed over the hash of the one before. */
function chainOf(facts: readonly unknown[]): SealedEntry[] {
  const entries: SealedEntry[] = []
  for (const [i, fact] of facts.entries()) {
    entries.push(seal({ seq: i + 1, prev_hash: entries.at(-1)?.hash ?? chainStart, fact }))
  }
  return entries
}

const facts = fc.array(fc.jsonValue(), { minLength: 1, maxLength: 12 })
const pick = fc.nat({ max: 1000 })

test('a chain as it was appended is consistent, and so is an empty one', () => {
  assert.equal(findBreak([]), null)
  fc.assert(
    fc.property(facts, (given) => {
      assert.equal(findBreak(chainOf(given)), null)
    }),
  )
})

test('a changed text is found at its entry', () => {
  fc.assert(
    fc.property(facts, pick, pick, (given, where, which) => {
      const chain = chainOf(given)
      const at = where % chain.length
      const { text, hash } = chain[at] as SealedEntry
      const place = which % text.length
      chain[at] = { text: `${text.slice(0, place)}#${text.slice(place + 1)}`, hash }
      fc.pre(chain[at].text !== text)
      assert.deepEqual(findBreak(chain), { seq: at + 1, problem: 'the entry does not match its hash' })
    }),
  )
})

test('an entry that was changed and sealed again is found at the next entry', () => {
  fc.assert(
    fc.property(facts, pick, (given, where) => {
      const chain = chainOf(given)
      fc.pre(chain.length > 1)
      const at = where % (chain.length - 1)
      chain[at] = seal({ ...JSON.parse((chain[at] as SealedEntry).text), fact: 'another' })
      fc.pre(chain[at].hash !== chainOf(given)[at]?.hash)
      assert.deepEqual(findBreak(chain), {
        seq: at + 2,
        problem: 'the entry does not follow the one before',
      })
    }),
  )
})

test('a removed entry is found where it is missing, unless it was the last', () => {
  fc.assert(
    fc.property(facts, pick, (given, where) => {
      const chain = chainOf(given)
      fc.pre(chain.length > 1)
      const at = where % (chain.length - 1)
      chain.splice(at, 1)
      assert.deepEqual(findBreak(chain), { seq: at + 1, problem: `the entry is numbered ${at + 2}` })
    }),
  )
})

test('two exchanged entries are found at the first of them', () => {
  fc.assert(
    fc.property(facts, pick, pick, (given, a, b) => {
      const chain = chainOf(given)
      const [first, second] = [a % chain.length, b % chain.length].toSorted((x, y) => x - y) as [
        number,
        number,
      ]
      fc.pre(first !== second)
      const kept = chain[first] as SealedEntry
      chain[first] = chain[second] as SealedEntry
      chain[second] = kept
      assert.deepEqual(findBreak(chain), { seq: first + 1, problem: `the entry is numbered ${second + 1}` })
    }),
  )
})

test('an inserted entry is found at its position, however it is sealed', () => {
  fc.assert(
    fc.property(facts, pick, (given, where) => {
      const chain = chainOf(given)
      const at = where % chain.length
      const before = chain[at - 1]?.hash ?? chainStart
      chain.splice(at, 0, seal({ seq: at + 1, prev_hash: before, fact: 'smuggled in' }))
      assert.equal(findBreak(chain)?.seq, at + 2)
    }),
  )
})

test('a chain that does not begin at the start is not valid', () => {
  const [, ...rest] = chainOf(['a', 'b', 'c'])
  assert.equal(findBreak(rest)?.seq, 1)
  assert.equal(
    findBreak([seal({ seq: 1, prev_hash: hashOf('elsewhere') })])?.problem,
    'the entry does not follow the one before',
  )
})

test('the text is the canonical form: fields are sorted, so that their order has no meaning', () => {
  const one = seal({ seq: 1, prev_hash: chainStart, b: 1, a: { d: 'é', c: 1.0 } })
  const other = seal({ a: { c: 1, d: 'é' }, b: 1, prev_hash: chainStart, seq: 1 })
  assert.deepEqual(one, other)
  assert.equal(one.text, `{"a":{"c":1,"d":"é"},"b":1,"prev_hash":"${chainStart}","seq":1}`)
})

test('the hash is the plain SHA-256 of the text in UTF-8, as anyone can compute it', () => {
  const { text, hash } = seal({ seq: 1, prev_hash: chainStart, note: 'Grüße 👋' })
  assert.equal(hash, createHash('sha256').update(Buffer.from(text, 'utf8')).digest('hex'))
})

test('what JSON can’t represent is refused', () => {
  for (const fact of [5n, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => seal({ seq: 1, prev_hash: chainStart, fact }))
  }
})
