// The rules of a deletion request against the specification, and the meaning of its body. Pure: no store is
// opened here.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { CreateDeletion, deletionStatuses, finalDeletionStatuses } from '../../contract/deletion.ts'
import {
  crossFieldProblems,
  deletionEvents,
  draftOf,
  erasedTime,
  hidingStatuses,
  retryDelayMs,
  selectionText,
  transitions,
  workingStatuses,
} from './deletion.ts'

describe('the state table', () => {
  const spec = readFileSync(new URL('SPEC.md', import.meta.url), 'utf8')
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

  test('lets only a restore leave completion, or a state in which the telemetry was given back', () => {
    for (const status of ['completed', 'cancelled', 'rejected', 'expired'] as const) {
      const leaving = deletionEvents.filter((event) => transitions[status][event] !== null)
      assert.deepEqual(leaving, ['reapply'])
    }
  })

  test('hides in every state except where the telemetry is gone, given back, or waits for a second person', () => {
    const shown = deletionStatuses.filter((status) => !hidingStatuses.some((hiding) => hiding === status))
    assert.deepEqual(shown.toSorted(), ['awaiting_approval', 'cancelled', 'completed', 'expired', 'rejected'])
  })

  test('can reach completion only from a read-back', () => {
    for (const status of deletionStatuses) {
      for (const event of deletionEvents) {
        if (transitions[status][event] === 'completed') assert.equal(event, 'verified')
      }
    }
  })

  test('leaves no working state without a way on', () => {
    for (const status of workingStatuses)
      assert.ok(Object.values(transitions[status]).some((to) => to !== null))
    const working: readonly string[] = workingStatuses
    assert.ok(finalDeletionStatuses.every((status) => !working.includes(status)))
  })
})

describe('the body of a deletion', () => {
  const tenantId = 'acme'
  const problemsOf = (body: unknown) =>
    crossFieldProblems(body, tenantId).map(({ loc, type }) => [...loc, type])

  for (const confirm of ['', 'Acme', ' acme', 'acme ', 'globex', 'acmé', 'acme\n']) {
    test(`refuses the confirmation ${JSON.stringify(confirm)}`, () => {
      assert.deepEqual(problemsOf({ scope: 'all', confirm }), [['body', 'confirm', 'value_error']])
    })
  }

  test('names every bound that stands beside all', () => {
    const body = { scope: 'all', confirm: 'acme', range_start: null, range_end: '2026-01-01T00:00:00Z' }
    assert.deepEqual(problemsOf(body), [
      ['body', 'range_start', 'value_error'],
      ['body', 'range_end', 'value_error'],
    ])
  })

  test('refuses a range without an end, so that a forgotten bound never widens it', () => {
    assert.deepEqual(problemsOf({ scope: 'range', confirm: 'acme' }), [['body', 'range_end', 'missing']])
  })

  test('refuses equal and reversed bounds, across offsets and at the last nanosecond', () => {
    const pairs = [
      ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
      ['2026-01-01T00:00:00.000000001Z', '2026-01-01T00:00:00Z'],
      ['2026-01-01T00:00:00-01:00', '2026-01-01T00:30:00Z'],
    ]
    for (const [range_start, range_end] of pairs) {
      assert.deepEqual(problemsOf({ scope: 'range', confirm: 'acme', range_start, range_end }), [
        ['body', 'range_end', 'value_error'],
      ])
    }
  })

  test('accepts bounds one nanosecond apart', () => {
    const body = {
      scope: 'range',
      confirm: 'acme',
      range_start: '2026-01-01T00:00:00Z',
      range_end: '2026-01-01T00:00:00.000000001Z',
    }
    assert.deepEqual(problemsOf(body), [])
  })

  test('passes over a body that is no object, which the schema refuses', () => {
    for (const body of [null, [], 'all', 1, undefined]) assert.deepEqual(problemsOf(body), [])
  })

  test('means everything before the end where no start is given', () => {
    const body = CreateDeletion.parse({
      scope: 'range',
      confirm: 'acme',
      range_end: '2026-01-01T00:00:00+02:00',
    })
    assert.deepEqual(draftOf(body).range, { startNs: null, endNs: 1_767_218_400_000_000_000n })
    assert.deepEqual(draftOf(body).signals, ['metrics', 'logs', 'traces'])
  })

  test('has one text for one selection, whatever the order of its signals', () => {
    const draft = (signals: string[]) =>
      draftOf(CreateDeletion.parse({ scope: 'all', confirm: 'acme', signals }))
    assert.equal(selectionText(draft(['traces', 'logs'])), selectionText(draft(['logs', 'traces'])))
    assert.notEqual(selectionText(draft(['logs'])), selectionText(draft(['traces'])))
  })
})

test('a full erasure makes time unknown up to the moment it was done, and no further', () => {
  const all = { scope: 'all', signals: ['logs'], range: { startNs: null, endNs: null } } as const
  assert.deepEqual(erasedTime(all, 5), { startNs: null, endNs: 5_000_000n })
  const between = (startNs: bigint | null, endNs: bigint) => ({
    ...all,
    scope: 'range' as const,
    range: { startNs, endNs },
  })
  assert.deepEqual(erasedTime(between(1n, 4_999_999n), 5), { startNs: 1n, endNs: 4_999_999n })
  assert.deepEqual(erasedTime(between(1n, 9_000_000n), 5), { startNs: 1n, endNs: 5_000_000n })
  assert.equal(erasedTime(between(5_000_000n, 9_000_000n), 5), null)
})

test('the pause between attempts grows from a second to five minutes and no further', () => {
  assert.deepEqual([1, 2, 3, 20].map(retryDelayMs), [1000, 2000, 4000, 300_000])
})
