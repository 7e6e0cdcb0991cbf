// The newest values of a series, joined with those of a piece, for methods whose scorers look back over a
// bounded number of values.

/** One array after the other. */
export function joinedValues<T extends Float64Array | Int32Array>(before: T, next: T): T {
  const both = new (before.constructor as new (length: number) => T)(before.length + next.length)
  both.set(before)
  both.set(next, before.length)
  return both
}
