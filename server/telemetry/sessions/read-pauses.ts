// Pauses between the reads of an organisation of which more wait, while others read or send and cores are
// short. With the right to, the engine gives such reads a low priority instead, and they use what others
// leave (statement-settings.ts). Without it, a read that has begun takes its part of the cores from
// everybody's commits and erasures, so the next one begins later.

import { systemClock } from '../../core/clock.ts'
import { CoreUse, shortPausePerMs } from '../../core/turns/core-use.ts'

/** The client of the next read waits for it, milliseconds. */
const longestPauseMs = 1_000

/** Returns the pauses of a pool of sessions. */
export function readPauses() {
  const cores = CoreUse.ofProcess()
  return {
    afterMs: (costMs: number) => (cores.areShort() ? Math.min(costMs * shortPausePerMs, longestPauseMs) : 0),
    sleep: (ms: number) => systemClock.sleep(ms),
  }
}
