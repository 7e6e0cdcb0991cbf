// The remembered kinds of metrics: only for their organisation, only for some reads, and only until something
// is hidden.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TelemetryGate } from '../telemetry/gate.ts'
import { KindMemory, kindMemoryOf } from './kind-memory.ts'

test('a kind is remembered for its organisation alone, and for some reads', () => {
  const kinds = new KindMemory()
  assert.equal(kinds.recall('acme', 'm'), undefined)
  kinds.remember('acme', 'm', 'sum')
  assert.equal(kinds.recall('other', 'm'), undefined)
  assert.equal(kinds.recall('acme', 'n'), undefined)
  let uses = 0
  while (kinds.recall('acme', 'm') === 'sum') uses++
  assert.ok(uses >= 10 && uses <= 100, `${uses} uses`)
})

test('hiding something removes all stored kinds of the organisation, and none of a neighbour', () => {
  const gate = new TelemetryGate()
  const kinds = kindMemoryOf(gate)
  kinds.remember('acme', 'm', 'sum')
  kinds.remember('other', 'm', 'histogram')
  gate.hide('acme', { id: 'd', signals: ['logs'], range: { startNs: 0n, endNs: 1n } })
  assert.equal(kinds.recall('acme', 'm'), undefined)
  assert.equal(kinds.recall('other', 'm'), 'histogram')
})

test('the memory is bounded, however many names and organisations there are', () => {
  const kinds = new KindMemory()
  const remembered = (tenants: number, names: number) => {
    for (let i = 0; i < tenants; i++)
      for (let n = 0; n < names; n++) kinds.remember(`org-${i}`, `m${n}`, 'gauge')
    let found = 0
    for (let i = 0; i < tenants; i++)
      for (let n = 0; n < names; n++) if (kinds.recall(`org-${i}`, `m${n}`) !== undefined) found++
    return found
  }
  assert.ok(remembered(1, 5000) <= 1000)
  assert.ok(remembered(5000, 1) <= 1000)
})
