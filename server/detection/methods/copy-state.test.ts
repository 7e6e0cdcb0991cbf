// Copies of state are independent of the original, and complete.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copyState, stateBytes } from './copy-state.ts'

class Counter {
  private readonly counts = new Float64Array(2)
  add(): number {
    this.counts[1] = (this.counts[1] ?? 0) + 1
    return this.counts[1]
  }
}

test('a copy keeps classes, numbers and bigints, and changes of it do not reach the original', () => {
  const counter = new Counter()
  counter.add()
  const original = { counter, list: [{ at: 1n }], byName: new Map([['a', new Set([1])]]), none: null }
  const copy = copyState(original)
  assert.deepEqual(copy, original)
  assert.equal(copy.counter.add(), 2)
  copy.list.push({ at: 2n })
  copy.byName.get('a')?.add(2)
  assert.equal(counter.add(), 2)
  assert.equal(original.list.length, 1)
  assert.deepEqual([...(original.byName.get('a') ?? [])], [1])
})

test('what is referred to twice is copied once, also in a circle', () => {
  const shared = { values: Float64Array.of(1, 2) }
  const original: { one: object; two: object; self?: object } = { one: shared, two: shared }
  original.self = original
  const copy = copyState(original)
  assert.equal(copy.one, copy.two)
  assert.notEqual(copy.one, shared)
  assert.equal(copy.self, copy)
})

test('the size counts each array once', () => {
  const shared = new Float64Array(1000)
  const bytes = stateBytes({ one: shared, two: [shared] })
  assert(bytes >= 8000 && bytes < 8200, String(bytes))
})
