// The same random world, with the service in its own process that is killed during erasures, at named
// points in turn, and started again on the same folder.

import { test } from 'node:test'
import { Killed } from './killed.ts'
import { endSoonAfterAll, killingSteps, firstSeed as seed, simulate } from './simulation.ts'
import { startMs } from './telemetry.ts'

/**
 * `LETHE_SIM_KILLS` says how often to kill. With 7, every second point has its turn; of the others,
 * tests/scenario/crash.test.ts kills at those after which files of the engine have changed.
 */
const kills = Number(process.env.LETHE_SIM_KILLS ?? 7)
/** A run that failed while an erasure is paused would wait for it forever. */
const timeoutMs = 600_000
/** Enough for every kill; with more, something prevents erasures from reaching the points. */
const stepsMax = 200 * kills

endSoonAfterAll()

test(`kill -9 during erasures, with seed ${seed}, leaves exactly the state of the model`, {
  timeout: timeoutMs,
}, async (t) => {
  t.diagnostic(`LETHE_SIM_SEED=${seed} LETHE_SIM_KILLS=${kills}`)
  const subject = new Killed(startMs)
  try {
    await subject.start(true)
    const isEnough = ({ counts }: { counts: { crashes: number; steps: number } }) =>
      counts.crashes >= kills || counts.steps >= stepsMax
    const { counts } = await simulate(subject, seed, killingSteps, isEnough)
    t.diagnostic(JSON.stringify(counts))
  } finally {
    await subject.end()
  }
})
