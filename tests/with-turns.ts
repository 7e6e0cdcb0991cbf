// Counts turns of the event loop, for tests that long work gives way to other work.

import { LoopTurns } from '../server/core/turns/loop-turns.ts'
import { Pace } from '../server/core/turns/pace.ts'

/** Calls `work`. Returns its result, and how often other work of the event loop ran meanwhile. */
export async function withTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0
  const immediate = () => {
    turns++
    next = setImmediate(immediate)
  }
  let next = setImmediate(immediate)
  try {
    const result = await work()
    return { result, turns }
  } finally {
    clearImmediate(next)
  }
}

/**
 * Returns a pace whose time passes only where it is read: ten steps are a slice, on any machine. `turns`
 * returns how often it was waited for.
 */
export function paceOfSteps(): { pace: Pace; turns: () => number } {
  let [ms, turns] = [0, 0]
  const pace = new Pace(
    async () => void turns++,
    () => (ms += 0.1),
  )
  return { pace, turns: () => turns }
}

/** Turns with a clock that advances at each reading, so that two or three turns fill a round of the loop. */
export class CountedTurns extends LoopTurns {
  /** Whose turns were asked for with {@link turnOf}, in order. */
  readonly asked: string[] = []

  constructor() {
    let ms = 0
    super({ nowMs: () => ms++ })
  }

  override turnOf(owner: string): Promise<void> {
    this.asked.push(owner)
    return super.turnOf(owner)
  }
}
