// Reading and writing instants, exact to the nanosecond. The first test is the contract. The others cover the
// ways in which date parsers are usually too lenient; each of them would move the bound of a deletion without
// notice.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  earliestNs,
  formatInstant,
  InstantInput,
  instantOf,
  latestNs,
  MomentInput,
  nsPerMs,
  parseInstant,
} from './instant.ts'

const instants = fc.bigInt({ min: earliestNs, max: latestNs })

function read(text: string): bigint {
  const result = parseInstant(text)
  if ('problem' in result) assert.fail(`${text} is refused as ${result.problem}`)
  return result.ns
}

function refusalOf(text: string): string {
  const result = parseInstant(text)
  return 'problem' in result ? result.problem : `read as ${formatInstant(result.ns)}`
}

const ns = (iso: string) => BigInt(Date.parse(iso)) * nsPerMs

test('every instant that can be stored is written and read back to the nanosecond', () => {
  fc.assert(
    fc.property(instants, (instant) => {
      assert.equal(read(formatInstant(instant)), instant)
    }),
  )
})

test('an instant is written with no more of 0, 3, 6 or 9 fractional digits than it needs', () => {
  fc.assert(
    fc.property(instants, (instant) => {
      const text = formatInstant(instant)
      const digits = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.(\d+))?Z$/.exec(text)?.[1] ?? ''
      assert.ok([0, 3, 6, 9].includes(digits.length), text)
      assert.ok(digits === '' || !digits.endsWith('000'), text)
    }),
  )
})

test('an instant is the same with every offset that it can be written with', () => {
  const offsets = fc.tuple(fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 }), instants)
  fc.assert(
    fc.property(offsets, ([minutes, instant]) => {
      const localNs = instant + BigInt(minutes) * 60_000_000_000n
      fc.pre(localNs >= 0n)
      const size = Math.abs(minutes)
      const two = (value: number) => String(value).padStart(2, '0')
      const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
      assert.equal(read(formatInstant(localNs).replace('Z', offset)), instant)
    }),
  )
})

test('offsets shift across midnight, month and year, and -00:00 is UTC', () => {
  assert.equal(read('2026-03-01T00:30:00+01:00'), ns('2026-02-28T23:30:00Z'))
  assert.equal(read('2025-12-31T23:30:00-00:45'), ns('2026-01-01T00:15:00Z'))
  assert.equal(read('2026-01-01T00:00:00-00:00'), ns('2026-01-01T00:00:00Z'))
})

test('small letters are read as RFC 3339 allows', () => {
  assert.equal(read('2026-11-21t09:30:00z'), ns('2026-11-21T09:30:00Z'))
})

test('one to nine fractional digits are read exactly', () => {
  const second = ns('2026-11-21T09:30:00Z')
  assert.equal(read('2026-11-21T09:30:00.1Z'), second + 100_000_000n)
  assert.equal(read('2026-11-21T09:30:00.000000001Z'), second + 1n)
  assert.equal(read('2026-11-21T09:30:00.123456789Z'), second + 123_456_789n)
})

test('29 February is read in leap years only', () => {
  assert.equal(read('2028-02-29T12:00:00Z'), ns('2028-02-29T12:00:00Z'))
  assert.equal(read('2000-02-29T12:00:00Z'), ns('2000-02-29T12:00:00Z'))
  for (const text of ['2026-02-29T12:00:00Z', '2100-02-29T12:00:00Z', '2026-02-30T12:00:00Z']) {
    assert.equal(refusalOf(text), 'syntax', text)
  }
})

test('the first and last instant that can be stored are read, and their neighbours refused as out of bounds', () => {
  assert.equal(read('1970-01-01T00:00:00Z'), earliestNs)
  assert.equal(read('2149-06-01T00:00:00Z'), latestNs)
  assert.equal(read('1970-01-01T01:00:00+01:00'), earliestNs)
  for (const text of [
    '1969-12-31T23:59:59.999999999Z',
    '2149-06-01T00:00:00.000000001Z',
    '1970-01-01T00:59:59+01:00',
    '0100-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
  ]) {
    assert.equal(refusalOf(text), 'bounds', text)
  }
})

test('an instant without an offset is refused as naive, because it is ambiguous', () => {
  assert.equal(refusalOf('2026-11-21T09:30:00'), 'naive')
  assert.equal(refusalOf('2026-11-21T09:30:00.5'), 'naive')
})

test('text that is not an RFC 3339 date-time, or not a day of the calendar, is refused as syntax', () => {
  for (const text of [
    '',
    'now',
    '2026-11-21',
    '1763717400',
    '2026-11-21 09:30:00Z',
    '2026-11-21T09:30Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T09:60:00Z',
    '2026-12-31T23:59:60Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-11-00T00:00:00Z',
    '2026-11-21T09:30:00+24:00',
    '2026-11-21T09:30:00+01:60',
    '2026-11-21T09:30:00+0100',
    '2026-11-21T09:30:00.Z',
    '2026-11-21T09:30:00.1234567890Z',
    '+02026-11-21T09:30:00Z',
    '0000-01-01T00:00:00Z',
    '0099-01-01T00:00:00Z',
    '٢٠٢٦-11-21T09:30:00Z',
    ' 2026-11-21T09:30:00Z',
    '2026-11-21T09:30:00Z\n',
  ]) {
    assert.equal(refusalOf(text), 'syntax', JSON.stringify(text))
  }
})

test('the parser throws for no text, and what it accepts is in bounds', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9TZ:.+-]{10,40}$/)), (text) => {
      const result = parseInstant(text)
      if ('ns' in result) assert.ok(result.ns >= earliestNs && result.ns <= latestNs)
    }),
  )
})

test('in a request, each refusal has its type, its correction and its context', () => {
  const issueOf = (input: unknown) => InstantInput.safeParse(input).error?.issues[0]
  assert.equal(InstantInput.parse('2026-11-21T09:30:00Z'), ns('2026-11-21T09:30:00Z'))
  for (const [text, type, error] of [
    ['soon', 'datetime_parsing', 'syntax'],
    ['2026-11-21T09:30:00', 'timezone_aware', 'naive'],
    ['2200-01-01T00:00:00Z', 'value_error', 'bounds'],
  ] as const) {
    const issue = issueOf(text)
    assert.ok(issue?.code === 'custom')
    assert.deepEqual(issue.params, { type, ctx: { error } })
    assert.match(issue.message, /^Input (?:should|is)/)
  }
  assert.equal(issueOf(5)?.code, 'invalid_type')
})

test('a moment is an instant, now, or a time before now', () => {
  const now = ns('2026-11-22T12:00:00Z')
  const momentOf = (text: string) => formatInstant(instantOf(MomentInput.parse(text), now))
  assert.equal(momentOf('2026-11-21T09:30:00.5Z'), '2026-11-21T09:30:00.500Z')
  assert.equal(momentOf('now'), '2026-11-22T12:00:00Z')
  assert.equal(momentOf('-1h'), '2026-11-22T11:00:00Z')
  assert.equal(momentOf('now-15m'), '2026-11-22T11:45:00Z')
  assert.equal(momentOf('-1d12h30s250ms'), '2026-11-20T23:59:29.750Z')
  assert.equal(momentOf('-2w'), '2026-11-08T12:00:00Z')
  assert.equal(momentOf('-0s'), '2026-11-22T12:00:00Z')
  assert.equal(momentOf('-999999999w'), '1970-01-01T00:00:00Z', 'no earlier than what can be stored')
  for (const text of [
    '',
    'now-',
    '-',
    '1h',
    '-1',
    '-1y',
    '-h',
    '+1h',
    'now+1h',
    'now -1h',
    '-1h-1m',
    '-1.5h',
    'NOW',
    '- 1h',
  ]) {
    const issue = MomentInput.safeParse(text).error?.issues[0]
    assert.ok(issue?.code === 'custom', text)
    assert.deepEqual(issue.params, { type: 'datetime_parsing', ctx: { error: 'syntax' } }, text)
    assert.match(issue.message, /or a time before now such as -1h/)
  }
  assert.equal(InstantInput.safeParse('-1h').success, false, 'refused where an instant is required')
})
