// The size of statements with the attributes of a detector. They are written on the event loop, and a name
// with dots repeats its value for each way in which it may lead into a nested value.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CreateDetector } from '../../contract/detection/detectors.ts'
import { allOf, render } from '../telemetry/sql.ts'
import { attributeConditions } from './series-statement.ts'

/** Attributes with the longest values that a detector may have: as many as their keys leave room for. */
function longestScope(keyOf: (i: number) => string): [key: string, value: string][] {
  const scopeOf = (count: number, length: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [keyOf(i), '漢'.repeat(length)]))
  const draft = { name: 'a', metric_key: 'spans.rate', method_key: 'auto' }
  const isAccepted = (count: number, length: number) =>
    CreateDetector.safeParse({ ...draft, scope: { attributes: scopeOf(count, length) } }).success
  let count = 20
  while (!isAccepted(count, 0)) count--
  let length = 0
  while (isAccepted(count, length + 1)) length++
  return Object.entries(scopeOf(count, length))
}

test('conditions for the attributes of a detector have at most 600,000 characters', () => {
  const keys: ((i: number) => string)[] = [
    (i) => `k${i}`,
    (i) => `a.b.c.d.k${i}`,
    (i) => `${'漢'.repeat(280)}.b.c.d.k${i}`,
    (i) => `a.b.c.d.${i}${'漢'.repeat(280)}`,
  ]
  for (const column of ['AttributesPairs', 'SpanAttributesPairs']) {
    const sizes = keys.map((keyOf) => {
      const attributes = longestScope(keyOf)
      return render(allOf(attributeConditions({ ...frame, attributes }, column))).length
    })
    assert(
      sizes.every((size) => size > 50_000 && size < 600_000),
      sizes.join(', '),
    )
  }
})

const frame = {
  startNs: 0n,
  endNs: 60_000_000_000n,
  stepSeconds: 60,
  service: undefined,
  attributes: [],
  groupBy: undefined,
  maxGroups: 1,
}
