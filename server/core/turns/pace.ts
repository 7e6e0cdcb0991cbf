// Divides a long computation on the event loop: after each slice of time it waits for its next turn, and
// others use the loop.

import { setImmediate as nextRound } from 'node:timers/promises'
import { elapsedMs } from '../clock.ts'

/** How long a computation usually works at once, milliseconds; one step may take longer. */
const usualSliceMs = 1

export class Pace {
  readonly #turn: () => Promise<unknown>
  readonly #nowMs: () => number
  readonly #sliceMs: number
  #startedMs: number

  /**
   * @param turn resolves when the computation may continue; absent: in the next round of the loop
   * @param nowMs a steady clock, milliseconds; absent: that of the machine
   * @param sliceMs how long it works at once, milliseconds
   */
  constructor(
    turn: () => Promise<unknown> = nextRound,
    nowMs: () => number = elapsedMs,
    sliceMs = usualSliceMs,
  ) {
    this.#turn = turn
    this.#nowMs = nowMs
    this.#sliceMs = sliceMs
    this.#startedMs = nowMs()
  }

  /** Whether the slice is over, so that {@link turn} must be awaited before the next step. */
  isOver(): boolean {
    return this.#nowMs() - this.#startedMs >= this.#sliceMs
  }

  /** Begins the next slice. */
  async turn(): Promise<void> {
    await this.#turn()
    this.#startedMs = this.#nowMs()
  }
}

/** Returns what `map` makes of each element. Waits for turns of the pace between two elements. */
export async function mapInTurns<Element, To>(
  elements: readonly Element[],
  pace: Pace,
  map: (element: Element, index: number) => To | Promise<To>,
): Promise<To[]> {
  const mapped: To[] = []
  for (const [i, element] of elements.entries()) {
    if (pace.isOver()) await pace.turn()
    mapped.push(await map(element, i))
  }
  return mapped
}
