// A judged series for drawing: values, band and anomalies, reduced to the available number of columns. A
// column has the extremes of its buckets, so no peak is lost. Pure.

export interface Chart {
  /** Identifies the series among others; empty where it is the only one. */
  readonly title: string
  /** Milliseconds since 1970 at the start of bucket 0. */
  readonly startMs: number
  readonly stepMs: number
  /** One value per bucket; NaN where there is none. */
  readonly values: Float64Array
  readonly lower: Float64Array
  readonly upper: Float64Array
  /** Buckets of each anomaly, half-open. */
  readonly anomalies: readonly (readonly [from: number, until: number])[]
}

export interface Column {
  /** Least and greatest value; NaN without values. */
  readonly least: number
  readonly greatest: number
  /** The widest band among the buckets; NaN where it has no such edge. */
  readonly lower: number
  readonly upper: number
  readonly isAnomalous: boolean
}

/**
 * Returns one column per bucket, but at most `most`; then all columns cover the same number of buckets, plus
 * or minus one.
 */
export function columnsOf(chart: Chart, most: number): Column[] {
  const buckets = chart.values.length
  const count = Math.min(buckets, most)
  return Array.from({ length: count }, (_, i) => {
    const from = Math.floor((i * buckets) / count)
    const until = Math.floor(((i + 1) * buckets) / count)
    return columnOf(chart, from, until)
  })
}

function columnOf({ anomalies, lower, upper, values }: Chart, from: number, until: number): Column {
  return {
    least: extreme(values, from, until, Math.min),
    greatest: extreme(values, from, until, Math.max),
    lower: extreme(lower, from, until, Math.min),
    upper: extreme(upper, from, until, Math.max),
    isAnomalous: anomalies.some(([first, end]) => first < until && end > from),
  }
}

function extreme(
  values: Float64Array,
  from: number,
  until: number,
  choose: (a: number, b: number) => number,
): number {
  let found = Number.NaN
  for (let i = from; i < until; i++) {
    const value = values[i] ?? Number.NaN
    if (Number.isFinite(value)) found = Number.isNaN(found) ? value : choose(found, value)
  }
  return found
}

/**
 * Returns the range to draw: all values, and of the band what lies within one such range above and below
 * them, because the band of a method that is still learning may be thousands of times as wide. Null without
 * values.
 */
export function scaleOf(columns: readonly Column[]): { readonly low: number; readonly high: number } | null {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { greatest, least } of columns) {
    if (least < low) low = least
    if (greatest > high) high = greatest
  }
  if (low > high) return null
  const room = high - low || Math.abs(high) * 0.1 || 1
  const [lowest, highest] = [low - room, high + room]
  for (const { lower, upper } of columns) {
    if (lower < low) low = Math.max(lower, lowest)
    if (upper > high) high = Math.min(upper, highest)
  }
  return low === high ? { low: low - room / 2, high: high + room / 2 } : { low, high }
}

/** At most six digits, without trailing zeros. */
export function valueText(value: number): string {
  return String(Number(value.toPrecision(4)))
}

/** `2026-09-12 08:50`, in UTC. */
export function minuteText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}
