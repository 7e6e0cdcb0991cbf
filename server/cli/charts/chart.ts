// A judged series for drawing: values, band, anomalies and, where they are labelled, the events that should
// be found, reduced to the available number of columns. A column has the extremes of its buckets, so no peak
// is lost. Pure.

/** A half-open range of buckets. */
export type BucketSpan = readonly [from: number, until: number]

export interface Marker {
  readonly atMs: number
  readonly text: string
}

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
  readonly anomalies: readonly BucketSpan[]
  /** One per bucket; 1 is the edge of alarm. Drawn only where there is no band. */
  readonly score?: Float64Array
  /** The events to find; absent where nothing is labelled. */
  readonly labels?: readonly BucketSpan[]
  /** Labels and anomalies that begin before this bucket do not count; 0 where absent. */
  readonly judgedFrom?: number
  /**
   * Buckets after its end in which an event may still be found; by default chosen by the width of buckets.
   */
  readonly tolerance?: number
  /** In order of time. */
  readonly deploys?: readonly Marker[]
  /**
   * For a part of a chart: the results of the whole chart, because the part may have only one of an event and
   * its alarm.
   */
  readonly labelResults?: LabelResults
}

/** The events that were found or missed, and the anomalies that are about an event or about none. */
interface LabelResults {
  readonly found: readonly BucketSpan[]
  readonly missed: readonly BucketSpan[]
  readonly right: readonly BucketSpan[]
  readonly wrong: readonly BucketSpan[]
}

const usualTolerance = { minutes: 7, longer: 2 }

/** Null where nothing is labelled. */
export function labelResultsOf(chart: Chart): LabelResults | null {
  const { anomalies, judgedFrom = 0, labels, stepMs, labelResults } = chart
  if (labelResults !== undefined || labels === undefined) return labelResults ?? null
  const { tolerance = stepMs <= 60_000 ? usualTolerance.minutes : usualTolerance.longer } = chart
  const counts = ([from]: BucketSpan) => from >= judgedFrom
  const [events, alarms] = [labels.filter(counts), anomalies.filter(counts)]
  const meets = (event: BucketSpan, alarm: BucketSpan) =>
    alarm[0] < event[1] + tolerance && alarm[1] > event[0]
  const isFound = (event: BucketSpan) => alarms.some((alarm) => meets(event, alarm))
  const isRight = (alarm: BucketSpan) => events.some((event) => meets(event, alarm))
  return {
    found: events.filter(isFound),
    missed: events.filter((event) => !isFound(event)),
    right: alarms.filter(isRight),
    wrong: alarms.filter((alarm) => !isRight(alarm)),
  }
}

/** The chart of some of the buckets, with the results of the whole. */
export function partOfChart(chart: Chart, title: string, [from, until]: BucketSpan): Chart {
  const [first, last] = [Math.max(0, from), Math.min(chart.values.length, until)]
  const cut = (column: Float64Array) => column.subarray(first, last)
  const within = (spans: readonly BucketSpan[]): BucketSpan[] =>
    spans
      .filter(([start, end]) => start < last && end > first)
      .map(([start, end]) => [Math.max(start, first) - first, Math.min(end, last) - first])
  const labelResults = labelResultsOf(chart)
  return {
    ...chart,
    ...(labelResults && {
      labelResults: {
        found: within(labelResults.found),
        missed: within(labelResults.missed),
        right: within(labelResults.right),
        wrong: within(labelResults.wrong),
      },
    }),
    title,
    startMs: chart.startMs + first * chart.stepMs,
    deploys: (chart.deploys ?? []).filter(({ atMs }) => {
      const bucket = (atMs - chart.startMs) / chart.stepMs
      return bucket >= first && bucket < last
    }),
    ...{ values: cut(chart.values), lower: cut(chart.lower), upper: cut(chart.upper) },
    anomalies: within(chart.anomalies),
    judgedFrom: Math.max(0, (chart.judgedFrom ?? 0) - first),
    ...(chart.score && { score: cut(chart.score) }),
    ...(chart.labels && { labels: within(chart.labels) }),
  }
}

export interface Scale {
  readonly low: number
  readonly high: number
}

export interface Column {
  /** Least and greatest value; NaN without values. */
  readonly least: number
  readonly greatest: number
  /** The widest band among the buckets; NaN where it has no such edge. */
  readonly lower: number
  readonly upper: number
  /** The highest score; NaN without scores. */
  readonly score: number
  readonly isAnomalous: boolean
  readonly isLabelled: boolean
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

function columnOf(chart: Chart, from: number, until: number): Column {
  const { anomalies, labels = [], lower, score, upper, values } = chart
  const touches = ([first, end]: BucketSpan) => first < until && end > from
  return {
    least: extreme(values, from, until, Math.min),
    greatest: extreme(values, from, until, Math.max),
    lower: extreme(lower, from, until, Math.min),
    upper: extreme(upper, from, until, Math.max),
    score: score === undefined ? Number.NaN : extreme(score, from, until, Math.max),
    isAnomalous: anomalies.some(touches),
    isLabelled: labels.some(touches),
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
export function scaleOf(columns: readonly Column[]): Scale | null {
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

/** Values outside the usual ones by more than this many times their range are cut. */
const cutFactor = 4
const usualShare = 0.02

/**
 * The same without extremes that few columns have and that would flatten all others: a column whose value is
 * beyond the scale ends at its edge.
 */
export function usualScaleOf(columns: readonly Column[]): Scale | null {
  const whole = scaleOf(columns)
  if (whole === null) return null
  const quantile = (values: readonly number[], share: number) => {
    const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)
    return sorted[Math.round(share * (sorted.length - 1))] ?? 0
  }
  const low = quantile(
    columns.map(({ least }) => least),
    usualShare,
  )
  const high = quantile(
    columns.map(({ greatest }) => greatest),
    1 - usualShare,
  )
  const room = cutFactor * (high - low)
  if (room === 0) return whole
  return { low: Math.max(whole.low, low - room), high: Math.min(whole.high, high + room) }
}

/** Round values within a scale, lowest first; about four. */
export function ticksOf({ high, low }: Scale): number[] {
  const rough = (high - low) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.75) ?? rough
  const first = Math.ceil(low / step)
  const count = Math.floor(high / step) - first + 1
  return Array.from({ length: Math.max(0, Math.min(20, count)) }, (_, i) => (first + i) * step)
}

/** At most four digits and a unit, such as `1.5G`, without trailing zeros. */
export function valueText(value: number): string {
  const [unit, size] = units.find(([, least]) => Math.abs(value) >= least) ?? ['', 1]
  return `${Number((value / size).toPrecision(4))}${unit}`
}

const units = [
  ['T', 1e12],
  ['G', 1e9],
  ['M', 1e6],
] as const

/** `2026-09-12 08:50`, in UTC. */
export function minuteText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}
