// Compares values that hold computed numbers. Two sums of the same numbers in a different order differ in
// their last bits, so numbers are compared with a tolerance and everything else exactly. Rounding both is not
// enough: two almost equal numbers can lie on both sides of a rounding edge.

import assert from 'node:assert/strict'

const tolerance = 1e-9

/** Throws as `assert.deepEqual` does, except that numbers may differ by 1e-9 of their size, or of 1. */
export function assertClose(actual: unknown, expected: unknown, message?: string): void {
  assert.deepEqual(withClose(actual, expected), expected, message)
}

/** Returns `actual` with the numbers of `expected` where both are close. */
function withClose(actual: unknown, expected: unknown): unknown {
  if (typeof actual === 'number' && typeof expected === 'number')
    return Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected)) ? expected : actual
  if (Array.isArray(actual) && Array.isArray(expected))
    return actual.map((value, i) => withClose(value, expected[i]))
  if (actual instanceof Float64Array && expected instanceof Float64Array)
    return actual.map((value, i) => withClose(value, expected[i]) as number)
  if (isRecord(actual) && isRecord(expected))
    return Object.fromEntries(
      Object.entries(actual).map(([name, value]) => [name, withClose(value, expected[name])]),
    )
  return actual
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
