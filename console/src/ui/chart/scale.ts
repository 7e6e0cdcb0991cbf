// The arithmetic of bar charts: round steps of the axis, positions of bars, and the bar under a pointer.

/** Returns some three to five round values from zero to at least `max`. */
export function axisSteps(max: number): number[] {
  if (max <= 0) return [0, 1]
  const rough = max / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 10 * power
  return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 }, (_, i) => i * step)
}

/** Index of the bar at `x` of a plot of this width; the nearest one outside. */
export function indexAt(x: number, width: number, count: number): number {
  return Math.min(count - 1, Math.max(0, Math.floor((x / width) * count)))
}

/**
 * The bar with the greatest value of each column of neighbouring bars; every bar where there are no more bars
 * than columns. A peak of one bar stays visible, however many bars share its column.
 */
export function peaksIn(values: readonly number[], columns: number): number[] {
  if (values.length <= columns) return values.map((_, i) => i)
  return Array.from({ length: Math.max(1, columns) }, (_, column) => {
    const end = Math.ceil(((column + 1) * values.length) / Math.max(1, columns))
    let peak = Math.ceil((column * values.length) / Math.max(1, columns))
    for (let i = peak + 1; i < end; i++) if ((values[i] ?? 0) > (values[peak] ?? 0)) peak = i
    return peak
  })
}

/** Which bars have a label, so that labels have this width at least. */
export function labelEvery(count: number, width: number, labelWidth: number): number {
  return Math.max(1, Math.ceil((count * labelWidth) / Math.max(1, width)))
}

/** Two indexes in order. */
export interface Span {
  readonly first: number
  readonly last: number
}

export function spanOf(one: number, other: number): Span {
  return { first: Math.min(one, other), last: Math.max(one, other) }
}
