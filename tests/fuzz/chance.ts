// Repeatable random choices for requests: a run is determined by its seed and by the responses of the
// service.

import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'

export class Chance {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = seededUniform(seed)
  }

  /** True in `share` of the cases, 0 to 1. */
  is(share: number): boolean {
    return this.#random() < share
  }

  /** An integer from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[Math.floor(this.#random() * from.length)]
    if (picked === undefined && from.length === 0) throw new Error('The list to pick from is empty.')
    return picked as T
  }
}
