// Formats numbers for people: counts in full, bytes in units of 1000, shares, durations. Tables show exact
// numbers, and charts three digits.

/**
 * `1,204,331` of a whole number. Not by the browser's formatter: loading it takes as long as the drawing of a
 * chart.
 */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 row`, `2 rows`. */
export function countOf(count: number, one: string, more = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : more}`
}

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** `812 MB`: three digits, in units of 1000. */
export function bytesText(bytes: number): string {
  return inUnits(bytes, byteUnits)
}

const countUnits = ['', 'k', 'M', 'G', 'T'] as const

/** `12.4 k`: three digits, for axes. */
export function shortCountText(count: number): string {
  return inUnits(count, countUnits).trim()
}

function inUnits(amount: number, units: readonly string[]): string {
  let value = Math.abs(amount)
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
  return `${amount < 0 ? '−' : ''}${value.toFixed(digits)} ${units[unit]}`
}

/** `41 %`; the smallest share that is not zero is `<1 %`. */
export function shareText(part: number, whole: number): string {
  if (whole === 0 || part === 0) return '0 %'
  const percent = (part / whole) * 100
  return percent < 1 ? '<1 %' : `${Math.round(percent)} %`
}

const durationUnits = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** `2.5 days`, `3 hours`, `317 ms`. */
export function durationText(ms: number): string {
  const found = durationUnits.find(([, size]) => Math.abs(ms) >= size)
  if (found === undefined) return `${Math.round(ms)} ms`
  const [name, size] = found
  const value = Math.round((ms / size) * 10) / 10
  return `${value} ${name}${value === 1 ? '' : 's'}`
}
