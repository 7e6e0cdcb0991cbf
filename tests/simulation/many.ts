// Worlds of chance one after the other, for as long as it is told: `npm run simulate -- --minutes 30`. Every run prints
// its seed and what happened in it. A run that fails ends it with 1: it is printed with what led to it and kept in a file.

import { appendFileSync } from 'node:fs'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { systemClock } from '../../server/core/clock.ts'
import { InProcess } from './in-process.ts'
import { allSteps, newOrganisations, populate, simulate } from './simulation.ts'
import { startMs } from './telemetry.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    /** The first seed; each run takes the next. */
    seed: { type: 'string', default: String(systemClock.nowMs() % 2 ** 31) },
    /** Steps of one run. */
    steps: { type: 'string', default: '700' },
    /** Where failing seeds are kept. */
    out: { type: 'string', default: 'simulation-failures.txt' },
  },
})
const untilMs = systemClock.nowMs() + Number(values.minutes) * 60_000
const stepCount = Number(values.steps)
const totals: Record<string, number> = { runs: 0 }

for (let seed = Number(values.seed); systemClock.nowMs() < untilMs; seed++) {
  totals.runs = (totals.runs ?? 0) + 1
  const subject = new InProcess(startMs)
  try {
    await subject.start((app) => populate(app, subject.control, newOrganisations()))
    const { counts } = await simulate(subject, seed, allSteps, ({ counts: { steps } }) => steps >= stepCount)
    for (const [name, n] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + n
    process.stdout.write(`seed ${seed}: ${JSON.stringify(counts)}\n`)
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    process.stdout.write(`seed ${seed} FAILED: ${what}\n`)
    appendFileSync(values.out, `LETHE_SIM_SEED=${seed} LETHE_SIM_STEPS=${stepCount}\n${what}\n\n`)
    // What it left standing is not ended safely from here.
    process.stdout.write(`${JSON.stringify(totals)}\nGo on with --seed ${seed + 1}.\n`)
    process.exit(1)
  } finally {
    await subject.end()
  }
}
process.stdout.write(`${JSON.stringify(totals)}\n`)
