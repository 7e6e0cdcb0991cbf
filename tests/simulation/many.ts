// Runs random worlds one after the other for a given time: `npm run simulate -- --minutes 30`. Every run
// prints its seed and counts. A failed run ends it with 1: it is printed with the steps that led to it and
// saved in a file.

import { appendFileSync } from 'node:fs'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { systemClock } from '../../server/core/clock.ts'
import { runWorld } from './one-world.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    /** The first seed; each run takes the next. */
    seed: { type: 'string', default: String(systemClock.nowMs() % 2 ** 31) },
    /** Steps of one run. */
    steps: { type: 'string', default: '700' },
    /** File in which failing seeds are saved. */
    out: { type: 'string', default: 'simulation-failures.txt' },
  },
})
const [minutes, firstSeed, steps] = [Number(values.minutes), Number(values.seed), Number(values.steps)]
if (!(minutes > 0) || !Number.isSafeInteger(firstSeed) || !Number.isSafeInteger(steps) || steps < 1) {
  process.stderr.write('--minutes is above 0; --seed and --steps are integers, --steps from 1.\n')
  process.exit(2)
}
const untilMs = systemClock.nowMs() + minutes * 60_000
const totals: Record<string, number> = { runs: 0 }

for (let seed = firstSeed; systemClock.nowMs() < untilMs; seed++) {
  totals.runs = (totals.runs ?? 0) + 1
  try {
    const counts = await runWorld(seed, steps)
    for (const [name, n] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + n
    process.stdout.write(`seed ${seed}: ${JSON.stringify(counts)}\n`)
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    process.stdout.write(`seed ${seed} FAILED: ${what}\n`)
    appendFileSync(values.out, `LETHE_SIM_SEED=${seed} LETHE_SIM_STEPS=${steps}\n${what}\n\n`)
    process.stdout.write(`${JSON.stringify(totals)}\nContinue with --seed ${seed + 1}.\n`)
    // A paused erasure in the failed world would keep this process alive.
    process.exit(1)
  }
}
process.stdout.write(`${JSON.stringify(totals)}\n`)
