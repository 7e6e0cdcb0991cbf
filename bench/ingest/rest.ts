// Waiting for a process to rest: what it was sent is done at once, what it put off, merges above
// all, is not. A rate that leaves ever more of that behind can't be held, so the benches count the
// time that it takes as well.

import { setTimeout } from 'node:timers/promises'

const windowMs = 250
const quietWindows = 4
/** Of one core. */
const quietShare = 0.1

/**
 * Seconds from now until the process rests for a second, without that second.
 *
 * @param cpuSeconds what the process has used so far
 */
export async function secondsUntilRest(cpuSeconds: () => number): Promise<number> {
  const startMs = performance.now()
  let [quiet, used] = [0, cpuSeconds()]
  while (quiet < quietWindows) {
    const beganMs = performance.now()
    await setTimeout(windowMs)
    const now = cpuSeconds()
    quiet = (now - used) / ((performance.now() - beganMs) / 1000) < quietShare ? quiet + 1 : 0
    used = now
  }
  return Math.max(0, (performance.now() - startMs) / 1000 - (quiet * windowMs) / 1000)
}
