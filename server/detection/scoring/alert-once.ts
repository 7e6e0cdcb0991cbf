// What of a score is news. People want to hear of a thing once: while an anomaly lasts, and for as long as it takes to
// come back to its usual self, it scores high bucket after bucket. So a score is news only where it exceeds, by a
// clear step, the highest score lately told, and what was told fades with a half-life. Scores must be logarithmic
// (surprises): then a step of a fifth is a real one, and nothing stays unforgettable for long.

/** A fifth above what was already said. */
const clearStep = 1.2

/** The score where it is news, 0 where it isn't, NaN where there is none. The half-life counts scores. */
export function newsOf(scores: Float64Array, halfLifePoints: number): Float64Array {
  const fade = 0.5 ** (1 / halfLifePoints)
  let told = 0
  return scores.map((score) => {
    if (Number.isNaN(score)) return score
    told *= fade
    const news = score > told * clearStep ? score : 0
    told = Math.max(told, score)
    return news
  })
}
