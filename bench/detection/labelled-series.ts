// The types of both generated corpora, lifelike.ts and varied.ts.

export interface Chance {
  readonly uniform: () => number
  readonly normal: () => number
}

export const between = (low: number, high: number, { uniform }: Chance): number =>
  low + (high - low) * uniform()

export interface LabelledIncident {
  readonly kind: string
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** Whether a person who looks at the series sees it (visible.ts). */
  readonly isVisible: boolean
}

export interface LabelledSeries {
  readonly name: string
  readonly stepMinutes: number
  /** One value per step; NaN is missing. */
  readonly values: Float64Array
  readonly incidents: readonly LabelledIncident[]
  /** Alarms count from here on; methods learn from the values before. */
  readonly judgedFrom: number
}
