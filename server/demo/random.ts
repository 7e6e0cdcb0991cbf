// Seeded random numbers for the demo shop. Every draw comes from a generator with the key (seed, minute,
// stream), never from one long sequence, so any minute can be generated alone, in any order, and is always
// the same. The generator is SFC32 from PractRand (Chris Doty-Humphrey), the key mixing is the finaliser of
// MurmurHash3 (Austin Appleby); both are in the public domain. Not for secrets.

/** A random number generator: each call returns the next number, uniform in [0, 1). */
export interface Random {
  (): number
  /** Returns the next 32 bits, 0 to 2^32 - 1. */
  bits(): number
}

/**
 * Mixes integers into 32 bits, 0 to 2^32 - 1. The order matters; of larger numbers only the low 32 bits are
 * used.
 */
export function mix(...parts: readonly number[]): number {
  let state = 0x9e3779b9
  for (const part of parts) {
    state = Math.imul(state ^ part, 0x85ebca6b)
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
    state ^= state >>> 16
  }
  return state >>> 0
}

/** Returns the generator of the given key; equal keys give equal sequences. */
export function openRandom(...key: readonly number[]): Random {
  let a = mix(...key, 1)
  let b = mix(...key, 2)
  let c = mix(...key, 3)
  let counter = 1
  const bits = (): number => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  // The first outputs are still similar for similar keys; SFC32 needs about a dozen rounds to mix the key.
  for (let round = 0; round < 12; round++) bits()
  return Object.assign(() => bits() / 4294967296, { bits })
}

/** A standard normal draw (Box-Muller, one of the pair). */
export function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

/**
 * A Poisson count with the given mean (0 or less gives 0): exact by Knuth's product below 30; above that the
 * rounded normal approximation, whose error is far smaller than the noise of one minute.
 */
export function poisson(random: Random, mean: number): number {
  if (mean <= 0) return 0
  if (mean > 30) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)))
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random(); product > limit; product *= random()) count++
  return count
}

/** A log-normal draw around `median` (same unit), `sigma` the standard deviation of its logarithm. */
export function logNormal(random: Random, median: number, sigma: number): number {
  return median * Math.exp(sigma * normal(random))
}

/**
 * Smooth noise over time in about [-1, 1]: random knots every `spacing` minutes, joined by cosine arcs. It
 * has no jump at a knot, so it looks like drift rather than steps.
 */
export function smoothNoise(minute: number, spacing: number, ...key: readonly number[]): number {
  const knot = Math.floor(minute / spacing)
  const share = (1 - Math.cos((Math.PI * (minute - knot * spacing)) / spacing)) / 2
  const left = mix(...key, knot) / 2147483648 - 1
  const right = mix(...key, knot + 1) / 2147483648 - 1
  return left + (right - left) * share
}

/**
 * Share of a log-normal distribution below `value` (same unit as `median`), absolute error less than 2e-7.
 */
export function logNormalShareBelow(value: number, median: number, sigma: number): number {
  if (value <= 0) return 0
  return normalShareBelow(Math.log(value / median) / sigma)
}

/** Abramowitz and Stegun, Handbook of Mathematical Functions, formula 26.2.17. */
function normalShareBelow(z: number): number {
  if (z > 6) return 1
  if (z < -6) return 0
  const t = 1 / (1 + 0.2316419 * Math.abs(z))
  const series =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  const tail = 0.3989422804014327 * Math.exp((-z * z) / 2) * series
  return z > 0 ? 1 - tail : tail
}
