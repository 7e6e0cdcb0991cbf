// The fences of one process, with the rules of every implementation.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProcessFences } from './fences.ts'
import { keepsFences } from './fences-contract.ts'
import { TelemetryGate } from './gate.ts'

keepsFences('one process', async () => {
  const gate = new TelemetryGate()
  return {
    fences: new ProcessFences(gate),
    nodes: [{ gate, serves: () => true }],
    close: async () => {},
  }
})

test('a process is its only node, so a change is in force as soon as it is published', () => {
  const gate = new TelemetryGate()
  const selection = { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: null } } as const
  void new ProcessFences(gate).publish([{ kind: 'hidden', tenantId: 'own', set: selection }])
  assert.equal(gate.hidden('own').length, 1)
})

test('a node refuses changes that are older than what it has acknowledged', () => {
  const gate = new TelemetryGate()
  gate.apply(2, [{ kind: 'closed', placement: 3, isClosed: true }])
  for (const epoch of [1, 2]) {
    assert.throws(() => gate.apply(epoch, [{ kind: 'closed', placement: 3, isClosed: false }]), /epoch 2/)
  }
  assert.deepEqual([gate.isClosed(3), gate.epoch], [true, 2])
})
