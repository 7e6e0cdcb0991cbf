// Finds the scores that were not reported before. People want one report per anomaly, but every bucket scores
// high while it lasts, and until the series is back at its usual values. So a score counts as unreported only
// where it exceeds the highest recently reported score by a clear step. The reported score fades with a
// half-life. Scores must be logarithmic (surprises): then a step of a fifth is a large one, and a high score
// fades within a few half-lives.

/** A fifth above the highest score that was reported. */
const clearStep = 1.2

/** The reported score of a sequence of scores, which are given one by one. */
export class Reported {
  private readonly fade: number
  private highest = 0

  /** The half-life is a number of scores. */
  constructor(halfLifePoints: number) {
    this.fade = 0.5 ** (1 / halfLifePoints)
  }

  /**
   * Returns the next score (not NaN) where it was not reported before, else 0. A score up to `edge` is not
   * reported, so a slow rise is reported when it reaches the edge.
   */
  unreportedOf(score: number, edge = 0): number {
    this.highest *= this.fade
    const unreported = score > this.highest * clearStep ? score : 0
    if (score > edge) this.highest = Math.max(this.highest, score)
    return unreported
  }
}

/**
 * Returns each unreported score as it is, 0 for the others, and NaN where there is no score. The
 * half-life is a number of scores.
 */
export function unreportedScores(scores: Float64Array, halfLifePoints: number): Float64Array {
  const reported = new Reported(halfLifePoints)
  return scores.map((score) => (Number.isNaN(score) ? score : reported.unreportedOf(score)))
}
