// The rate of an operation for an organisation, and the parts of it that stay for branches of tokens.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../core/app-error.ts'
import type { CallerLine } from '../../core/caller.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { OperationRates } from './rates.ts'

const rate = { perMinute: 60, burst: 20 }
const make = () => {
  const clock = new ManualClock(1_763_717_400_000)
  const rates = new OperationRates(clock)
  /** Asks until a refusal; returns how often it was not refused. */
  const useUp = (line?: CallerLine, tenantId = 'acme') => {
    for (let taken = 0; ; taken++) {
      try {
        rates.take({ tenantId, ...(line && { line }) }, 'operation', rate)
      } catch (error) {
        assert.ok(error instanceof AppError && error.code === 'too_many_requests')
        return taken
      }
    }
  }
  return { clock, useUp }
}
const branchOf = (root: string, branch = root) => ({ root, branch })

test('one branch gets the rate, and a tenth stays for each that has not asked', () => {
  const { useUp } = make()
  assert.equal(useUp(branchOf('r', 'b')), 20)
  assert.equal(useUp(branchOf('r', 'c')), 2)
  assert.equal(useUp(branchOf('r')), 2)
  assert.equal(useUp(branchOf('s', 'b')), 2)
  assert.equal(useUp(branchOf('r', 'b'), 'neighbour'), 20)
})

test('what stays for a branch comes back at a tenth of the rate', async () => {
  const { clock, useUp } = make()
  useUp(branchOf('r', 'b'))
  assert.equal(useUp(branchOf('r')), 2)
  for (let second = 1; second <= 10; second++) {
    await clock.advance(1_000)
    assert.ok(useUp(branchOf('r', 'b')) >= 1)
    assert.equal(useUp(branchOf('r')), second === 10 ? 1 : 0)
  }
})

test('the branches of a line get half of the rate together beside it, however many its root makes', () => {
  const { useUp } = make()
  let taken = 0
  for (let branch = 0; branch < 100; branch++) taken += useUp(branchOf('r', `b${branch}`))
  assert.equal(taken, 20 + 10)
  assert.equal(useUp(branchOf('r')), 2, 'the root itself')
  assert.equal(useUp(branchOf('s', 'b')), 2, 'another line')
})

test('tokens whose root is unknown are one branch', () => {
  const { useUp } = make()
  useUp(branchOf('r', 'b'))
  assert.equal(useUp(), 2)
  assert.equal(useUp(), 0)
})
