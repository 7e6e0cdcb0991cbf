// Files in the forms in which people and benchmarks write them, and input that is
// rejected instead of guessed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseGroupedPoints, parseLabels, parseMarkers, parsePoints, stepOfPoints } from './points-file.ts'

const ns = (text: string) => BigInt(Date.parse(text)) * 1_000_000n

test('timestamps come in four forms, with or without a header line', () => {
  const expected = [{ timeNs: ns('2026-09-11T12:00:00Z'), value: 1.5 }]
  for (const text of [
    'timestamp,value\n2026-09-11 12:00:00,1.5\n',
    '2026-09-11T14:00:00+02:00,1.5',
    '\uFEFF"timestamp","value"\r\n"1789128000","1.5"\r\n',
    '1789128000000, 1.5',
  ]) {
    assert.deepEqual(parsePoints(text), expected, text)
  }
})

test('an empty value is no data, and a line that cannot be read is rejected by its number', () => {
  assert.deepEqual(
    parsePoints('1789128000,\n1789128060,NaN').map(({ value }) => value),
    [Number.NaN, Number.NaN],
  )
  assert.throws(() => parsePoints('t,v\n1789128000,1\nyesterday,2'), /Line 3.*yesterday/)
  assert.throws(() => parsePoints('1789128000,1,2'), /Line 1/)
  assert.throws(() => parsePoints('1789128000,high'), /Line 1/)
  assert.throws(() => parsePoints('t,v\n'), /no points/)
})

test('a file of groups has the group between timestamp and value', () => {
  const groups = parseGroupedPoints('time,host,ms\n1789128000,a,1\n1789128000,b,2\n1789128060,a,\n')
  assert.deepEqual(
    [...groups].map(([group, points]) => [group, points.map(({ value }) => value)]),
    [
      ['a', [1, Number.NaN]],
      ['b', [2]],
    ],
  )
  assert.throws(() => parseGroupedPoints('1789128000,1'), /Line 1: write it as timestamp,group,value/)
  assert.throws(() => parseGroupedPoints('1789128000,a,1,2'), /Line 1/)
  assert.throws(() => parsePoints('1789128000,a,1'), /Line 1: write it as timestamp,value/)
})

test('a last column that the header names label says which points are of an event', () => {
  const plain = 'timestamp,value,label\n1789128000,1,0\n1789128060,9,1\n1789128120,,True\n1789128180,1,\n'
  assert.deepEqual(
    parsePoints(plain).map(({ value }) => value),
    [1, 9, Number.NaN, 1],
  )
  assert.deepEqual(parseLabels(plain, false)?.get(''), [
    1_789_128_060_000_000_000n,
    1_789_128_120_000_000_000n,
  ])
  const grouped = 'time,host,ms,Label\n1789128000,a,1,1\n1789128000,b,2,0\n'
  assert.deepEqual(
    [...(parseLabels(grouped, true) ?? [])].map(([group, times]) => [group, times.length]),
    [
      ['a', 1],
      ['b', 0],
    ],
  )
  assert.equal(parseLabels('t,v\n1789128000,1', false), null)
  assert.throws(() => parsePoints('t,v,label\n1789128000,1,2'), /Line 2: write it as timestamp,value,label/)
  assert.throws(() => parsePoints('t,v,label\n1789128000,1'), /Line 2/)
  assert.throws(() => parsePoints('t,group,v\n1789128000,1,0'), /Line 2: write it as timestamp,value\./)
})

test('markers are times with a text, in order of time', () => {
  assert.deepEqual(
    parseMarkers('deployed,version\n2026-09-11T14:00:00Z,2.3.1\n2026-09-11T12:00:00Z,2.3.0\n').map(
      ({ text }) => text,
    ),
    ['2.3.0', '2.3.1'],
  )
  assert.throws(() => parseMarkers('at\nnoon,2.3.1'), /Line 2: write it as timestamp,text/)
})

test('the step is the most frequent distance, whatever the order and the gaps', () => {
  const at = (minute: number) => ({ timeNs: BigInt(minute) * 60_000_000_000n, value: 1 })
  assert.equal(stepOfPoints([10, 0, 5, 15, 60, 65].map(at)), 5)
  assert.equal(stepOfPoints([at(3)]), 1)
})
