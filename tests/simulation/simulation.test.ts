// Erasures in a random world: hundreds of steps in one process, each compared with the model.

import { test } from 'node:test'
import { runWorld } from './one-world.ts'
import { endSoonAfterAll, firstSeed as seed } from './simulation.ts'

/**
 * Number of steps; a replayed run needs at least as many as when it failed. `npm run simulate` is for
 * thousands of steps.
 */
const stepCount = Number(process.env.LETHE_SIM_STEPS ?? 160)

/** A run that failed while an erasure is paused would wait for it forever. */
const timeoutMs = 600_000

endSoonAfterAll()

test(`random steps with seed ${seed} leave exactly the state of the model`, {
  timeout: timeoutMs,
}, async (t) => {
  t.diagnostic(`LETHE_SIM_SEED=${seed} LETHE_SIM_STEPS=${stepCount}`)
  const begunMs = performance.now()
  const counts = await runWorld(seed, stepCount)
  const perSecond = (1000 * stepCount) / (performance.now() - begunMs)
  t.diagnostic(`${perSecond.toFixed(1)} steps/s: ${JSON.stringify(counts)}`)
})
