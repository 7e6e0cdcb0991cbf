// The states of a deletion request, compared with the specification.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { deletionStatuses, finalDeletionStatuses } from '../../../contract/deletion/requests.ts'
import { deletionEvents, hidingStatuses, transitions, workingStatuses } from './states.ts'

describe('the state table', () => {
  const spec = readFileSync(new URL('../SPEC.md', import.meta.url), 'utf8')
  const rows = spec
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  const header = rows.find(([first]) => first === 'from \\ event')

  test('has the events of the code in the order of the specification', () => {
    assert.deepEqual(header?.slice(1), [...deletionEvents])
  })

  for (const status of deletionStatuses) {
    test(`is the same in code and specification from ${status}`, () => {
      const written = rows.find((row) => row[0] === status && row.length === deletionEvents.length + 1)
      assert.ok(written, `SPEC.md has no row for ${status}`)
      const coded = deletionEvents.map((event) => transitions[status][event] ?? '')
      assert.deepEqual(written.slice(1), coded)
    })
  }

  test('allows only a restore to leave completion, or a state in which the telemetry is visible again', () => {
    for (const status of ['completed', 'cancelled', 'rejected', 'expired'] as const) {
      const leaving = deletionEvents.filter((event) => transitions[status][event] !== null)
      assert.deepEqual(leaving, ['reapply'])
    }
  })

  test('hides in every state except where the telemetry is erased, visible again, or waits for a second person', () => {
    const shown = deletionStatuses.filter((status) => !hidingStatuses.some((hiding) => hiding === status))
    assert.deepEqual(shown.toSorted(), ['awaiting_approval', 'cancelled', 'completed', 'expired', 'rejected'])
  })

  test('reaches completion only from a read-back', () => {
    for (const status of deletionStatuses) {
      for (const event of deletionEvents) {
        if (transitions[status][event] === 'completed') assert.equal(event, 'verified')
      }
    }
  })

  test('has an event that leaves each working state', () => {
    for (const status of workingStatuses)
      assert.ok(Object.values(transitions[status]).some((to) => to !== null))
    const working: readonly string[] = workingStatuses
    assert.ok(finalDeletionStatuses.every((status) => !working.includes(status)))
  })
})
