// Repeatable noise for tests, benchmarks and demonstrations: the same seed gives the same numbers on every
// machine, because a false-alarm rate must be measurable a second time.

import { seededUniform } from './seeded-random.ts'

/** Standard normal (Box and Muller 1958). */
export function seededNormal(seed: number): () => number {
  const uniform = seededUniform(seed)
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}

/**
 * Families of noise, from well-behaved ones to those that break simple detectors. Scale
 * is about 1, mean about 0.
 */
export const noises = {
  normal: seededNormal,
  /** Laplace: exponential tails, as latencies have. */
  laplace(seed: number) {
    const uniform = seededUniform(seed)
    return () => {
      const p = uniform() - 0.5
      return -Math.sign(p) * Math.log(1 - 2 * Math.abs(p))
    }
  },
  /** Student's t with 3 degrees of freedom: heavy tails. */
  heavy(seed: number) {
    const normal = seededNormal(seed)
    return () => normal() / Math.sqrt((normal() ** 2 + normal() ** 2 + normal() ** 2) / 3)
  },
  /** First-order autoregressive: high scores come in bursts. */
  sluggish(seed: number) {
    const normal = seededNormal(seed)
    let level = 0
    return () => {
      level = 0.9 * level + normal()
      return level
    }
  },
} as const satisfies Record<string, (seed: number) => () => number>
