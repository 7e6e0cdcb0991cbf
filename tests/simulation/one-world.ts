// One random world in this process, from beginning to end: the same for a test and for `npm run simulate`, so
// that a seed that failed in one fails in the other.

import { InProcess } from './in-process.ts'
import { allSteps, newOrganisations, populate, simulate } from './simulation.ts'
import { startMs } from './telemetry.ts'

/**
 * Takes at least this many steps. Returns counts of what happened, by kind; throws where the service differs
 * from the model.
 */
export async function runWorld(seed: number, steps: number): Promise<Readonly<Record<string, number>>> {
  const subject = new InProcess(startMs)
  try {
    await subject.start((app) =>
      populate(app, subject.control, newOrganisations(), (byMs) => subject.setClock(byMs)),
    )
    const { counts } = await simulate(subject, seed, allSteps, (world) => world.counts.steps >= steps)
    return { ...counts }
  } finally {
    await subject.end()
  }
}
