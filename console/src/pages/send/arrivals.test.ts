// The count of rows that arrive while the page Send is open.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Arrivals, arrivalsAfter } from './arrivals.ts'

/** The arrivals after each reading of a count of a day. */
function read(...readings: readonly (readonly [day: string, rows: number])[]): number[] {
  let arrivals: Arrivals | null = null
  return readings.map(([day, rows_accepted]) => {
    arrivals = arrivalsAfter(arrivals, { day, rows_accepted })
    return arrivals.arrived
  })
}

const [monday, tuesday] = ['2026-01-05', '2026-01-06']

test('rows from before the page was opened are not counted, and every later one is', () => {
  assert.deepEqual(read([monday, 1000], [monday, 1000], [monday, 1003], [monday, 1010]), [0, 0, 3, 10])
})

test('a page that stays open over midnight keeps what it has counted, and counts the new day too', () => {
  assert.deepEqual(read([monday, 1000], [monday, 1002], [tuesday, 0], [tuesday, 5]), [0, 2, 2, 7])
  assert.deepEqual(read([monday, 1000], [tuesday, 1004], [tuesday, 1005]), [0, 1004, 1005])
})
