// What the body of a deletion means, and the problems that one field alone doesn't show.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CreateDeletion } from '../../../contract/deletion.ts'
import { crossFieldProblems, draftOf } from './draft.ts'
import { selectionText } from './selection.ts'

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
