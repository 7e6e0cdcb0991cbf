// Numbers as people read them: three digits on charts, no unit that is too large or too small.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisSteps, indexAt, peaksIn, spanOf } from './chart/scale.ts'
import { bytesText, countOf, countText, durationText, shareText, shortCountText } from './units.ts'

test('bytes have three digits in units of 1000, and never 1000 of a unit', () => {
  const shown = [0, 999, 1_000, 9_996, 99_960, 999_499, 999_600, 1_970_000, 812_345_678].map(bytesText)
  assert.deepEqual(shown, [
    '0 B',
    '999 B',
    '1.00 kB',
    '10.0 kB',
    '100 kB',
    '999 kB',
    '1.00 MB',
    '1.97 MB',
    '812 MB',
  ])
  assert.equal(bytesText(-2_500), '−2.50 kB')
  assert.equal(shortCountText(12_400), '12.4 k')
})

test('counts, shares and durations have the right word', () => {
  assert.deepEqual([countOf(1, 'row'), countOf(1_204_331, 'row')], ['1 row', '1,204,331 rows'])
  assert.deepEqual([0, 999, 1_000, 100_000, 12_345_678, -1_000].map(countText), [
    '0',
    '999',
    '1,000',
    '100,000',
    '12,345,678',
    '-1,000',
  ])
  assert.deepEqual([shareText(1, 1_000), shareText(41, 100), shareText(0, 0)], ['<1 %', '41 %', '0 %'])
  assert.deepEqual([317, 1_000, 216_000_000, 90_000].map(durationText), [
    '317 ms',
    '1 second',
    '2.5 days',
    '1.5 minutes',
  ])
})

test('an axis begins at zero, has round steps and reaches the largest value', () => {
  assert.deepEqual(axisSteps(0), [0, 1])
  assert.deepEqual(axisSteps(1_970), [0, 500, 1_000, 1_500, 2_000])
  for (const max of [0.3, 1, 7, 99, 100, 12_345]) {
    const steps = axisSteps(max)
    assert.equal(steps[0], 0)
    assert.ok((steps.at(-1) ?? 0) >= max && steps.length <= 6, `${max}: ${steps}`)
  }
})

test('a pointer outside the plot is over its nearest bar, and a span is in order', () => {
  assert.deepEqual([indexAt(-5, 100, 4), indexAt(30, 100, 4), indexAt(500, 100, 4)], [0, 1, 3])
  assert.deepEqual(spanOf(5, 2), { first: 2, last: 5 })
})

test('where more bars than pixels are drawn, each pixel has the greatest of its neighbours, in order', () => {
  assert.deepEqual(peaksIn([3, 1, 2], 3), [0, 1, 2])
  assert.deepEqual(peaksIn([3, 1, 2, 9, 4], 2), [0, 3])
  const values = Array.from({ length: 100_000 }, (_, i) => (i === 70_001 ? 1_000 : (i * 7) % 13))
  const peaks = peaksIn(values, 1_137)
  assert.equal(peaks.length, 1_137)
  assert.ok(peaks.includes(70_001), 'a peak of one bar is kept')
  for (const [column, peak] of peaks.entries()) {
    assert.equal(Math.floor((peak * 1_137) / values.length), column, 'it stands where the pointer finds it')
  }
  assert.deepEqual(peaksIn([], 0), [])
})
