// What the address of the page Erase selects: nothing that the person did not choose is ever sent.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemOf, requestBody, selectionBody, selectionOf } from './selection.ts'

const [from, to] = ['2026-11-03T00:00:00Z', '2026-11-05T00:00:00Z']

test('a range has its bounds, and everything has none', () => {
  assert.deepEqual(selectionBody(selectionOf({ from, to, signals: 'logs' })), {
    scope: 'range',
    signals: ['logs'],
    range_start: from,
    range_end: to,
  })
  assert.deepEqual(selectionBody(selectionOf({ scope: 'all', from, to })), {
    scope: 'all',
    signals: ['metrics', 'logs', 'traces'],
  })
})

test('a relative range, as links of other pages carry it, selects nothing', () => {
  const selection = selectionOf({ from: 'now-30d', to: 'now' })
  assert.equal(problemOf(selection), 'Choose where the range ends.')
  assert.equal(problemOf(selectionOf({})), 'Choose where the range ends.')
})

test('a range that ends before it starts is refused before it is sent', () => {
  assert.equal(problemOf(selectionOf({ from: to, to: from })), 'The start must be before the end.')
  assert.equal(problemOf(selectionOf({ to })), null, 'everything before the end')
})

test('an unknown scope, signal, delay or reason of an address is as if it was absent', () => {
  const selection = selectionOf({
    scope: 'matching',
    to,
    signals: 'spans',
    delay: '-5',
    reason: 'x',
    late: 'x',
  })
  assert.deepEqual(requestBody(selection, { confirm: 'acme', note: ' ', previewId: 'prv_1' }), {
    scope: 'range',
    signals: ['metrics', 'logs', 'traces'],
    range_end: to,
    confirm: 'acme',
    preview_id: 'prv_1',
  })
})

test('a request has what was chosen, and the count that it confirms', () => {
  const selection = selectionOf({ from, to, delay: '1440', late: 'refuse', reason: 'leaked_secret' })
  const body = requestBody(selection, { confirm: 'acme', note: 'Ticket 118', previewId: 'prv_1' })
  assert.deepEqual(
    [body.delay_minutes, body.refuse_late, body.reason, body.note, body.preview_id],
    [1_440, true, 'leaked_secret', 'Ticket 118', 'prv_1'],
  )
})
