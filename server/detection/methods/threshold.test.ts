// The score of a fixed limit: 1 exactly at the limit, growing beyond it, on either side.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { threshold } from './threshold.ts'

function scoresOf(limits: { lower?: number; upper?: number }, values: number[]): number[] {
  const series: Series = {
    startNs: 0n,
    stepMinutes: 1,
    values: Float64Array.from(values),
    unknown: new Uint8Array(values.length),
    volumes: null,
  }
  return [...threshold.score(series, methodParams.threshold.parse(limits)).score]
}

test('between two limits the score grows from the middle to 1 at either limit, and further beyond it', () => {
  assert.deepEqual(scoresOf({ lower: 10, upper: 20 }, [15, 10, 20, 25, 5, 12.5]), [0, 1, 1, 2, 2, 0.5])
})

test('with one limit the limit itself is the unit', () => {
  assert.deepEqual(scoresOf({ upper: 100 }, [100, 150, 50, -100]), [1, 1.5, 0.5, 0])
  assert.deepEqual(scoresOf({ lower: -4 }, [-4, -8, 0]), [1, 2, 0])
})

test('the limit 0, and two equal limits, have a unit as well', () => {
  assert.deepEqual(scoresOf({ upper: 0 }, [0, 2, -1]), [1, 3, 0])
  assert.deepEqual(scoresOf({ lower: 5, upper: 5 }, [5, 10, 0]), [1, 2, 2])
})
