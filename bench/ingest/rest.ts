// Waits until a process rests. After the last response, deferred work is left, above all merges. A rate that
// leaves more and more of it cannot be sustained, so the benches include the time for it.

import { setTimeout } from 'node:timers/promises'

const windowMs = 250
const quietWindows = 4
/** Share of one core. */
const quietShare = 0.1

/**
 * Returns the seconds from now until the process rests for a second, without that second.
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
