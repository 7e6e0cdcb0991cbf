// Decides whether a person who looks at the chart of a generated series sees a planted incident. The
// generators know the series without it. The daily rhythm is subtracted first. An incident is visible where,
// over some minutes, hours or half a day, it moves the mean by 1.5 times the largest such movement in the
// calm series, or makes the changes from value to value 1.5 times as large as ever, or half as large as
// usual; and where the line of the chart moves enough to be seen. It uses no detection method.

interface Planted {
  /** The series without any incident, with all others, and with all. */
  readonly clean: Float64Array
  readonly without: Float64Array
  readonly values: Float64Array
  readonly perDay: number
}

/** Values over which means and changes from value to value are compared. */
const widths = [1, 3, 12, 48, 144]
const fewestForSpread = 12
/**
 * The share of the movements of a calm series that are ordinary; the rest are outliers that a person expects.
 */
const ordinaryShare = 0.995
const plainly = 1.5
/** The number of values around an incident that a chart shows, from the lowest to the highest. */
const chartValues = 2000
/** A movement of the line by less than this share of the height, 2 of 200 pixels, is not seen. */
const leastMove = 0.01

export function isVisible(planted: Planted, from: number, to: number): boolean {
  const { clean, perDay, values, without } = planted
  const leastSeen = leastMove * heightOf(values, (from + to) / 2)
  const usual = usualByTime(clean, perDay)
  const rest = (all: Float64Array) => all.map((value, i) => value - (usual[i % perDay] ?? 0))
  const calm = rest(clean)
  // Without its rhythm subtracted, a constant reading does not change, so changes are compared in both.
  const restless: readonly (readonly [Float64Array, Float64Array])[] = [
    [calm, rest(values)],
    [clean, values],
  ]
  return widths.some((width) => {
    if (width > Math.max(1, to - from)) return false
    const calmMeans = windowsOf(calm, width, 0, calm.length, meanOf).map(Math.abs)
    const moved = windowsOf(
      values.map((value, i) => value - (without[i] ?? 0)),
      ...([width, from, to, meanOf] as const),
    )
    const ordinary = plainly * quantile(calmMeans, ordinaryShare)
    if (Math.max(...moved.map(Math.abs)) > Math.max(leastSeen, ordinary)) return true
    if (width < fewestForSpread) return false
    return restless.some(([before, after]) => {
      const usually = windowsOf(before, width, 0, before.length, restlessnessOf)
      const now = windowsOf(after, width, from, to, restlessnessOf)
      const median = quantile(usually, 0.5)
      const calmest = Math.min(median / 2, quantile(usually, 1 - ordinaryShare) / plainly)
      const wildest = plainly * quantile(usually, ordinaryShare)
      return (
        Math.max(...now) > Math.max(wildest, median + leastSeen) ||
        Math.min(...now) < Math.min(calmest, median - leastSeen)
      )
    })
  })
}

/** Height of the chart around a value. */
function heightOf(values: Float64Array, middle: number): number {
  const from = Math.max(0, Math.min(values.length - chartValues, Math.round(middle - chartValues / 2)))
  const drawn = values.subarray(from, from + chartValues)
  return Math.max(...drawn) - Math.min(...drawn)
}

function usualByTime(clean: Float64Array, perDay: number): number[] {
  return Array.from({ length: perDay }, (_, time) => {
    const same: number[] = []
    for (let i = time; i < clean.length; i += perDay) same.push(clean[i] ?? 0)
    return quantile(same, 0.5)
  })
}

type Measure = (window: Float64Array) => number

/** Of windows that overlap by half. */
function windowsOf(all: Float64Array, width: number, from: number, to: number, measure: Measure): number[] {
  const found: number[] = []
  const step = Math.max(1, width >> 1)
  for (let i = from; i + width <= Math.max(to, from + width); i += step)
    found.push(measure(all.subarray(i, i + width)))
  return found
}

function meanOf(window: Float64Array): number {
  return window.reduce((sum, value) => sum + value, 0) / window.length
}

/** Mean step from value to value. */
function restlessnessOf(window: Float64Array): number {
  let sum = 0
  for (let i = 1; i < window.length; i++) sum += Math.abs((window[i] ?? 0) - (window[i - 1] ?? 0))
  return sum / (window.length - 1)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0
}
