// A clue points from something that was measured to the service where an incident may have begun. Clues of
// one kind are weighed against each other: each has the share of what all of them explain, times how grave
// that is.

/** What a clue is about, strongest evidence first where two weigh the same. */
type ClueKind = 'failures' | 'unanswered' | 'time' | 'waiting' | 'traffic' | 'calls' | 'first' | 'deploy'

export interface Clue {
  readonly kind: ClueKind
  /** Null for telemetry without a service. */
  readonly service: string | null
  /** What shows it best. */
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
