// Integers of OTLP/JSON that a double can't represent, such as nanoseconds without quotes. JSON.parse would
// round them. Its reviver, which receives the digits, is called for every value of the body: with 16 MB of
// zeros after one such integer it takes six seconds. So these integers are quoted before the body is parsed,
// with a mark before them that no UTF-8 text can begin with.

/** Half of a surrogate pair as a JSON escape. A text of a sender that begins with it has no UTF-8 either. */
const mark = Buffer.from('"\\ud800')
const markUnit = 0xd800

/** Longer integers fit no field, and reading a megabyte of digits exactly would take seconds. */
const maxDigits = 40

/**
 * Returns the body with those integers as marked texts.
 *
 * @param positions start and end of each integer, in order
 */
export function quoteLongIntegers(body: Buffer, positions: readonly number[]): Buffer {
  const quoted = Buffer.allocUnsafe(body.length + (positions.length / 2) * (mark.length + 1))
  let [from, length] = [0, 0]
  for (let i = 0; i < positions.length; i += 2) {
    const [start = 0, end = 0] = [positions[i], positions[i + 1]]
    if (end - start > maxDigits) continue
    length += body.copy(quoted, length, from, start)
    length += mark.copy(quoted, length)
    length += body.copy(quoted, length, start, end)
    quoted[length++] = 0x22
    from = end
  }
  length += body.copy(quoted, length, from)
  return quoted.subarray(0, length)
}

/** Returns the digits of such an integer; null for any other value. */
export function longIntegerOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.charCodeAt(0) !== markUnit) return null
  const digits = value.slice(1)
  return /^-?\d{1,40}$/.test(digits) ? digits : null
}
