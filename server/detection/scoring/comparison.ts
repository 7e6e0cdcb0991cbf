// The figures that a value was compared with: which part of the past, what is usual there, and what was
// measured. The looks of `auto` give them for values outside the edge, for the reason of an anomaly
// (anomalies/comparison-text.ts). All figures are in units of the series, and depend only on earlier values.

/** Each with the words of `count`. */
export type Comparison =
  /** This time of the day: days. */
  | (Level & { readonly with: 'days' })
  /** This time of this weekday: weeks. */
  | (Level & { readonly with: 'weeks' })
  /** This time of the day, moved to the level of the last hour: days. */
  | (Level & { readonly with: 'daysAtThisLevel' })
  /** The last values: how many. */
  | (Level & { readonly with: 'lastValues' })
  /** A forecast from the last values and earlier days: values. */
  | (Level & { readonly with: 'forecast' })
  /** The nearest of `count` values: `low` and `high` are the third nearest. */
  | (Compared & { readonly with: 'nearest' })
  /** The range of the `count` values before. */
  | (Compared & { readonly with: 'range'; readonly of: MeasuredOfRange })
  /** `count` standard deviations, each of `over` values. */
  | (Compared & { readonly with: 'spreads'; readonly over: number })
  /** The mean distance from this time of the day, over `over` values: days. */
  | (Compared & { readonly with: 'distances'; readonly over: number })
  /** The mean change from one value to the next, or from one mean of `means` values, over `over`: days. */
  | (Compared & { readonly with: 'changes'; readonly over: number; readonly means?: number })

/** A value, a mean over `over` values, a step between two such means, or a standard deviation. */
export interface MeasuredOfRange {
  readonly kind: 'value' | 'mean' | 'step' | 'spread'
  readonly over: number
}

interface Compared {
  /** How much of the past: the unit depends on `with`. */
  readonly count: number
  /** What was compared; the value itself where nothing else is said. */
  readonly measured: number
  /** What is usual: 98 of 100 are within, of a range all. */
  readonly low: number
  readonly high: number
  /** How many values before this one were judged together with it; absent where it was judged alone. */
  readonly together?: number
}

interface Level extends Compared {
  readonly expected: number
}

/** The index of the look with the most digits, of some or of all; null where all are NaN. */
export function leadingLook(digits: Float64Array, among: Iterable<number> = digits.keys()): number | null {
  let leading: number | null = null
  for (const i of among) {
    const each = digits[i] ?? Number.NaN
    if (!Number.isNaN(each) && (leading === null || each > (digits[leading] ?? 0))) leading = i
  }
  return leading
}
