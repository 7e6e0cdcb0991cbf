// The limit of bodies in memory, by organisation; core/turns/fair-shares.test.ts tests what is fair.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../core/app-error.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { BodyBudget, type BodyReservation, emptyBodyBytes } from './body-budget.ts'

const megabyte = 1024 * 1024

function refusalOf(work: () => void): string | null {
  try {
    work()
    return null
  } catch (error) {
    assert.ok(error instanceof AppError && error.retryAfterSeconds === 1)
    return error.code
  }
}

/** Bodies of organisations, with the reasons of those that the budget ended. */
class Bodies {
  readonly budget = new BodyBudget(megabyte, new ManualClock(0))
  readonly ended: string[] = []

  open(tenantId: string, bytes: number): BodyReservation {
    const reservation = this.budget.open(tenantId, ({ code }) => this.ended.push(`${tenantId} ${code}`))
    reservation.grow(bytes - emptyBodyBytes)
    return reservation
  }
}

test('bodies of one organisation fit up to the limit, and a release makes room', () => {
  const bodies = new Bodies()
  const a = bodies.open('acme', 600_000)
  const b = bodies.open('acme', 400_000)
  assert.equal(
    refusalOf(() => b.grow(100_000)),
    'overloaded',
  )
  a.release()
  a.release()
  assert.equal(bodies.budget.reservedBytes, 400_000)
  b.grow(600_000)
  assert.deepEqual(bodies.ended, [])
})

test('a single body is admitted whatever its size, so that a small limit never refuses an organisation permanently', () => {
  const bodies = new Bodies()
  const a = bodies.open('acme', 10 * megabyte)
  a.grow(megabyte)
  assert.equal(
    refusalOf(() => bodies.open('acme', emptyBodyBytes)),
    'overloaded',
  )
  a.release()
  assert.equal(bodies.budget.reservedBytes, 0)
})

test('a body of a neighbour is admitted, and the youngest one of the organisation with the most ends for it', () => {
  const bodies = new Bodies()
  for (let i = 0; i < 10; i++) bodies.open('flood', 100_000)
  bodies.open('calm', 200_000)
  assert.deepEqual(bodies.ended, ['flood overloaded', 'flood overloaded'])
  assert.deepEqual([bodies.budget.reservedBy('flood'), bodies.budget.reservedBy('calm')], [800_000, 200_000])
})

test('a body counts before its first byte, and no organisation has more than 512 of them', () => {
  const budget = new BodyBudget(1024 * megabyte, new ManualClock(0))
  const open = (tenantId: string) => budget.open(tenantId, () => {})
  const first = open('acme')
  for (let i = 1; i < 512; i++) open('acme')
  assert.equal(budget.reservedBytes, 512 * emptyBodyBytes)
  assert.equal(
    refusalOf(() => open('acme')),
    'too_many_requests',
  )
  open('globex')
  first.release()
  open('acme')
})

test('a released body reserves nothing more', () => {
  const bodies = new Bodies()
  const a = bodies.open('acme', emptyBodyBytes)
  a.release()
  a.grow(50)
  assert.equal(bodies.budget.reservedBytes, 0)
})
