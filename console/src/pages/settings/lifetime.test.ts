// How long a new token works, as it is chosen, and as it is proposed for a replacement.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenExample } from '../../../../contract/examples/organisation.ts'
import { inherited, lifetimeDays, lifetimeOf, otherDays } from './lifetime.ts'

test('a choice is a number of days, or the lifetime of the maker, which sends none', () => {
  assert.equal(lifetimeDays({ choice: '30', typed: '' }), 30)
  assert.equal(lifetimeDays({ choice: otherDays, typed: '3650' }), 3650)
  assert.equal(lifetimeDays({ choice: inherited, typed: '12' }), undefined)
})

test('a text that is no number of days within the limits differs from no choice', () => {
  for (const typed of ['', '0', '-1', '1.5', '3651', 'ten']) {
    assert.equal(lifetimeDays({ choice: otherDays, typed }), null, typed)
  }
})

test('a replacement lasts as long as the token did from its creation', () => {
  const created_at = '2026-11-02T14:10:00.000Z'
  const of = (expires_at: string | null) => lifetimeOf({ ...tokenExample, created_at, expires_at })
  assert.deepEqual(of(null), { choice: inherited, typed: '' })
  assert.deepEqual(of('2026-12-02T14:10:00.000Z'), { choice: '30', typed: '' })
  assert.deepEqual(of('2026-11-14T14:10:00.000Z'), { choice: otherDays, typed: '12' })
  assert.equal(lifetimeDays(of('2026-11-02T15:10:00.000Z')), 1, 'less than a day')
})
