// The meaning of the body of a deletion, and problems across fields.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CreateDeletion } from '../../../contract/deletion/requests.ts'
import { readPart } from '../../core/input/parsed.ts'
import { readDeletion } from './draft.ts'
import { selectionText } from './selection.ts'

describe('the body of a deletion', () => {
  const tenantId = 'acme'
  const readBody = (raw: unknown) => {
    const { value: body, fields } = readPart('body', CreateDeletion, raw)
    return readDeletion({ body, fields, raw }, tenantId)
  }
  const problemsOf = (raw: unknown) => {
    const read = readBody(raw)
    return 'problems' in read ? read.problems.map(({ loc, type }) => [...loc, type]) : []
  }

  for (const confirm of ['', 'Acme', ' acme', 'acme ', 'globex', 'acmé', 'acme\n']) {
    test(`refuses the confirmation ${JSON.stringify(confirm)}`, () => {
      assert.deepEqual(problemsOf({ scope: 'all', confirm }), [['body', 'confirm', 'value_error']])
    })
  }

  test('reports every bound that is given beside `all`', () => {
    const body = { scope: 'all', confirm: 'acme', range_start: null, range_end: '2026-01-01T00:00:00Z' }
    assert.deepEqual(problemsOf(body), [
      ['body', 'range_start', 'value_error'],
      ['body', 'range_end', 'value_error'],
    ])
  })

  test('refuses a range without an end, so that a forgotten bound never widens an erasure', () => {
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

  test('ignores a body that is not an object, which the schema refuses', () => {
    for (const body of [null, [], 'all', 1, undefined]) assert.deepEqual(problemsOf(body), [])
  })

  test('means everything before the end where no start is given', () => {
    const read = readBody({ scope: 'range', confirm: 'acme', range_end: '2026-01-01T00:00:00+02:00' })
    assert.ok('value' in read)
    assert.deepEqual(read.value.range, { startNs: null, endNs: 1_767_218_400_000_000_000n })
    assert.deepEqual(read.value.signals, ['metrics', 'logs', 'traces'])
  })

  test('returns one text for one selection, whatever the order of its signals', () => {
    const textOf = (signals: string[]) => {
      const read = readBody({ scope: 'all', confirm: 'acme', signals })
      assert.ok('value' in read)
      return selectionText(read.value)
    }
    assert.equal(textOf(['traces', 'logs']), textOf(['logs', 'traces']))
    assert.notEqual(textOf(['logs']), textOf(['traces']))
  })
})
