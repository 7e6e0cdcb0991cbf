// The path of bars: rectangles where there is a gap, and one outline of each run of bars where there is none.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barsPath } from './bars-path.ts'

test('wide bars are rectangles with a gap between them', () => {
  assert.equal(barsPath([10, 20], [50, 50], 100, 10), 'M101 10h8V50h-8zM111 20h8V50h-8z')
})

test('narrow bars have a common outline, which ends where there is no bar', () => {
  const [tops, bottoms] = [
    [10, 20, 50, 30],
    [50, 40, 50, 50],
  ]
  assert.equal(barsPath(tops, bottoms, 0, 1), 'M0 50V10H1V20H2V40H1V50H0zM3 50V30H4V50H3z')
})

test('without bars the path is empty', () => {
  assert.equal(barsPath([50, 50], [50, 50], 0, 1), '')
  assert.equal(barsPath([], [], 0, 1), '')
})
