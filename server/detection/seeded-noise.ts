// Repeatable noise for tests, benchmarks and demonstrations: the same seed gives the same numbers on every machine,
// because a false-alarm rate that can't be measured twice is not a measurement.

/** Uniform in [0, 1): mulberry32, 32 bits of state; good enough for noise, not for secrets. */
export function seededUniform(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Standard normal (Box and Muller 1958). */
export function seededNormal(seed: number): () => number {
  const uniform = seededUniform(seed)
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}

/** Noise families, from tame to those that break naive detectors. Scale is about 1, mean about 0. */
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
  /** First-order autoregressive: scores come in bursts. */
  sluggish(seed: number) {
    const normal = seededNormal(seed)
    let level = 0
    return () => {
      level = 0.9 * level + normal()
      return level
    }
  },
} as const satisfies Record<string, (seed: number) => () => number>
