// Polling in tests: repeats a call until background work of the service is done. No test depends on its
// duration, only on a limit that is far longer, also on a busy machine.

import assert from 'node:assert/strict'
import { systemClock } from '../server/core/clock.ts'

const triesMax = 1500
/** The pause doubles up to the second value: on a busy machine, repeated calls delay what they wait for. */
const [firstPauseMs, longestPauseMs] = [5, 80]

/**
 * Repeats a call until its result is the wanted one, for at least two minutes; then fails with the last
 * result. An error of the call ends it.
 */
export async function waitFor<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> {
  let pauseMs = firstPauseMs
  for (let tries = 1; ; tries++) {
    const answer = await ask()
    if (isWanted(answer)) return answer
    assert.ok(
      tries < triesMax,
      `The expected result did not occur; the last one was ${JSON.stringify(answer)}`,
    )
    await systemClock.sleep(pauseMs)
    pauseMs = Math.min(2 * pauseMs, longestPauseMs)
  }
}
