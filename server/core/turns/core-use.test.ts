// How many threads leave a core free.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coresButOne } from './core-use.ts'

test('all cores but one, a limit at most, and one at least', () => {
  assert.deepEqual(
    [1, 2, 3, 64].map((cores) => coresButOne(2, cores)),
    [1, 1, 2, 2],
  )
})
