// The status and note of a run, computed from the states of all series.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DetectorState } from '../alarms/alarm.ts'
import { summariseRun } from './run-summary.ts'

const ok: DetectorState = { status: 'ok' }
const learning: DetectorState = { status: 'learning', pointsNeeded: 20 }

test('without a series there is no data', () => {
  assert.deepEqual(summariseRun([], 0, 5), { status: 'no_data', note: null })
})

test('the status of a single series is that of its detector', () => {
  assert.deepEqual(summariseRun([ok], 0, 5), { status: 'ok', note: null })
})

test('an alarm in one series comes before every other status', () => {
  const states: DetectorState[] = [ok, learning, { status: 'anomalous' }, { status: 'recovering' }]
  assert.equal(summariseRun(states, 3, 5).status, 'anomalous')
})

test('a detector that left out series says how many, and is degraded unless a series alarms', () => {
  assert.deepEqual(summariseRun([ok, ok], 3, 5), {
    status: 'degraded',
    note: 'Only 2 of 5 series were evaluated. Series: 2 ok.',
  })
})

test('a detector whose series have too long labels says so, also where no other series is left', () => {
  assert.deepEqual(summariseRun([], 0, 5, { longGroups: 2 }), {
    status: 'degraded',
    note: 'Only 0 of 2 series were evaluated. The labels of 2 series are longer than 4096 bytes; group by others.',
  })
})

test('a series without data does not hide that others are watched', () => {
  assert.deepEqual(summariseRun([{ status: 'no_data' }, ok, learning], 0, 5), {
    status: 'ok',
    note: 'Series: 1 ok, 1 learning, 1 no_data.',
  })
})

test('the note of learning says how long it will take', () => {
  assert.deepEqual(summariseRun([learning], 0, 5), {
    status: 'learning',
    note: 'It needs 20 more buckets with data, about 1 hour 40 minutes.',
  })
})

test('the note of data too sparse for the window says what helps', () => {
  const sparse = summariseRun([{ status: 'insufficient_data', pointsNeeded: 9 }], 0, 1)
  assert.equal(sparse.status, 'insufficient_data')
  assert.match(sparse.note ?? '', /Make the window or the schedule longer/)
})

test('the note of a group too small to compare says how many series are missing', () => {
  const few = (peersNeeded: number): DetectorState => ({ status: 'insufficient_data', peersNeeded })
  assert.deepEqual(summariseRun([few(3), few(2)], 0, 5), {
    status: 'insufficient_data',
    note: 'Too few series to compare: 2 more series of the group need data at the same time. Series: 2 insufficient_data.',
  })
  assert.equal(summariseRun([few(1), ok], 0, 5).status, 'ok')
})

test('the note says how many of the oldest anomalies were left out, and the status is that of the series', () => {
  assert.deepEqual(summariseRun([ok], 0, 5, { leftOut: 53 }), {
    status: 'ok',
    note: 'It found more anomalies than are kept: the oldest 53 of its window are left out.',
  })
})
