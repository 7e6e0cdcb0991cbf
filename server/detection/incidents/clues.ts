// A clue is a measurement that points to a service as the origin of an incident. Clues of one kind are
// weighed against each other: the weight of a clue is its share of what all of them explain, times the
// gravity of the change.

/** What a clue is about, strongest evidence first where two weigh the same. */
type ClueKind = 'failures' | 'unanswered' | 'time' | 'waiting' | 'traffic' | 'calls' | 'first' | 'deploy'

export interface Clue {
  readonly kind: ClueKind
  /** Null for telemetry without a service. */
  readonly service: string | null
  /** The metric key that shows it most clearly. */
  readonly metricKey: string
  /** 0 or more. */
  readonly weight: number
  /** A sentence for people. */
  readonly text: string
}

/** A clue before it is weighed: `amount` in the unit of its kind, 0 or more. */
export interface Hint extends Omit<Clue, 'weight'> {
  readonly amount: number
}

/** Each hint by its share of all amounts; `gravity` is what all of them weigh together. */
export function weighed(hints: readonly Hint[], gravity: number): Clue[] {
  const total = hints.reduce((sum, { amount }) => sum + amount, 0)
  if (total <= 0) return []
  return hints
    .filter(({ amount }) => amount > 0)
    .map(({ amount, ...clue }) => ({ ...clue, weight: (gravity * amount) / total }))
}

/** `0.42`, `12.3`, `1,240`. */
export function numberText(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-US')
  return Number(value.toPrecision(3)).toString()
}

/** `4.2 ms` or `1.31 s`. */
export function msText(ms: number): string {
  return ms >= 1000 ? `${numberText(ms / 1000)} s` : `${numberText(ms)} ms`
}
