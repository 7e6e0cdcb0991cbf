// Repeatable random numbers: the same seed gives the same numbers on every machine. A method that uses chance
// must draw the same numbers at each run; otherwise the same telemetry would alarm today and not tomorrow.

/** Uniform in [0, 1): mulberry32 with 32 bits of state. Good enough for cuts and noise, not for secrets. */
export function seededUniform(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
