// Finds the scores that were not reported before. People want to be told of a thing once: while an anomaly
// lasts, and until the series is back at its usual values, every bucket scores high. So a score counts as
// unreported only where it exceeds the highest recently reported score by a clear step. The reported score
// fades with a half-life. Scores must be logarithmic (surprises): then a step of a fifth is a large one, and
// a high score fades within a few half-lives.

/** A fifth above the highest score that was reported. */
const clearStep = 1.2

/**
 * Returns each unreported score as it is, 0 for the others, and NaN where there is no score. The
 * half-life is a number of scores.
 */
export function unreportedScores(scores: Float64Array, halfLifePoints: number): Float64Array {
  const fade = 0.5 ** (1 / halfLifePoints)
  let reported = 0
  return scores.map((score) => {
    if (Number.isNaN(score)) return score
    reported *= fade
    const unreported = score > reported * clearStep ? score : 0
    reported = Math.max(reported, score)
    return unreported
  })
}
