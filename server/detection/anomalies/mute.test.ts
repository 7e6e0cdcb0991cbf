// When a mute is active: in local time, across midnight and the change to summer time, and exact at both
// ends.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CreateMute, type Weekly } from '../../../contract/detection/feedback.ts'
import { readPart } from '../../core/input/parsed.ts'
import { isInWeekly, muteAt, mutesFor, readMute } from './mute.ts'
import { muteOf } from './mute-fixture.ts'

const ns = (text: string) => BigInt(Date.parse(text)) * 1_000_000n

test('a mute is active from its first instant to just before its last', () => {
  const isMuted = (text: string, rule = muteOf()) => muteAt([rule], ns(text)) !== null
  assert.deepEqual(
    [
      '2026-09-11T11:59:59.999Z',
      '2026-09-11T12:00:00Z',
      '2026-09-11T12:59:59.999Z',
      '2026-09-11T13:00:00Z',
    ].map((text) => isMuted(text)),
    [false, true, true, false],
  )
  assert(isMuted('2100-01-01T00:00:00Z', muteOf({ untilNs: null })))
})

test('a mute applies to series that have all its labels', () => {
  const rule = muteOf({ group: { service: 'checkout' } })
  assert.equal(mutesFor([rule], { service: 'checkout', host: 'a' }).length, 1)
  assert.equal(mutesFor([rule], { service: 'search' }).length, 0)
  assert.equal(mutesFor([rule], {}).length, 0)
  assert.equal(mutesFor([muteOf({ group: { constructor: 'x' } })], {}).length, 0)
  assert.equal(mutesFor([muteOf()], {}).length, 1)
})

const nightly: Weekly = { days: ['fri'], from: '22:00', until: '06:00', time_zone: 'Europe/Berlin' }

test('a weekly night begins on its day and ends on the next morning, in local time', () => {
  const isIn = (text: string) => isInWeekly(nightly, ns(text))
  // Friday 11 September 2026; Berlin is two hours ahead of UTC in summer.
  assert.deepEqual(
    ['11T19:59Z', '11T20:00Z', '12T03:59Z', '12T04:00Z', '10T21:00Z', '12T20:30Z'].map((text) =>
      isIn(`2026-09-${text}`),
    ),
    [false, true, true, false, false, false],
  )
  // In winter Berlin is one hour ahead.
  assert.deepEqual(
    ['2026-12-04T20:59Z', '2026-12-04T21:00Z', '2026-12-05T04:59Z', '2026-12-05T05:00Z'].map(isIn),
    [false, true, true, false],
  )
})

test('equal times are the whole day, and Monday follows Sunday', () => {
  const sundays: Weekly = { days: ['sun'], from: '00:00', until: '00:00', time_zone: 'UTC' }
  assert(isInWeekly(sundays, ns('2026-09-13T23:59:00Z')))
  assert(!isInWeekly(sundays, ns('2026-09-14T00:00:00Z')))
  const night: Weekly = { ...sundays, from: '23:00', until: '01:00' }
  assert(isInWeekly(night, ns('2026-09-14T00:30:00Z')))
})

test('a mute that could never be active, or in an unknown time zone, is refused', () => {
  const weekly = { ...nightly }
  const isAccepted = (body: unknown) => CreateMute.safeParse(body).success
  assert(isAccepted({ weekly }))
  assert(!isAccepted({ weekly: { ...weekly, time_zone: 'Mars/Olympus' } }))
  assert(!isAccepted({ weekly: { ...weekly, from: '24:00' } }))
  assert(!isAccepted({ weekly: { ...weekly, days: [] } }))
  assert(!isAccepted({ range_end: '2026-09-11 13:00' }))
  assert(!isAccepted({ detector: 'det_1' }))
})

test('a new mute says what it mutes and until when, or says explicitly that it is everything or has no end', () => {
  const range_end = '2026-09-11T13:00:00Z'
  const problems = (raw: unknown) => {
    const { fields, value } = readPart('body', CreateMute, raw)
    const read = readMute({ body: value, fields, raw })
    return 'value' in read ? [] : read.problems.map(({ loc, type }) => `${loc.join('.')} ${type}`)
  }
  for (const whom of [
    { detector_id: 'det_1' },
    { group: { service: 'checkout' } },
    { all_detectors: true },
  ]) {
    assert.deepEqual(problems({ ...whom, range_end }), [])
    assert.deepEqual(problems({ ...whom, open_ended: true }), [])
    assert.deepEqual(problems(whom), ['body.range_end missing'])
    assert.deepEqual(problems({ ...whom, open_ended: false }), ['body.range_end missing'])
    assert.deepEqual(problems({ ...whom, range_end, open_ended: true }), ['body.open_ended value_error'])
    assert.deepEqual(problems({ ...whom, range_end, range_start: range_end }), [
      'body.range_end greater_than',
    ])
  }
  for (const nobody of [{}, { group: {} }, { all_detectors: false }, { weekly: nightly, note: 'x' }]) {
    assert.deepEqual(problems(nobody), ['body.detector_id missing', 'body.range_end missing'])
  }
  assert.deepEqual(problems({ all_detectors: true, group: { service: 'a' }, range_end }), [])
  assert.deepEqual(problems({ all_detectors: true, detector_id: 'det_1', range_end }), [
    'body.all_detectors value_error',
  ])
  assert.deepEqual(
    problems({ group: 'checkout', range_end: 5, range_start: 'x' }),
    [],
    'the schema refuses these',
  )
  assert.deepEqual(problems('x'), [])
})
