// Long reads of organisations beside the short ones of others. An interactive read may take 20 s, so without
// these rules a few organisations could occupy every session for that time.

import { availableParallelism } from 'node:os'
import { AppError } from '../../core/app-error.ts'
import { systemClock } from '../../core/clock.ts'
import { CoreUse } from '../../core/turns/core-use.ts'
import type { LongWorkRule } from '../../core/turns/long-work.ts'
import { EndedForOthers } from '../engine.ts'
import { halfOfCores } from './numbers.ts'

const cores = CoreUse.ofProcess()

/** Beside others a statement has half of the cores; so many leave one of them to everybody's short work. */
const leavingACore = Math.max(1, Math.floor((availableParallelism() - 1) / halfOfCores))

/**
 * A chart takes some tens of milliseconds. Reads of some hundreds, of several organisations, already take
 * every session: whoever asks for something short then waits for each of its reads. A read is ended only
 * where all sessions have long reads, which takes several organisations that had none in the last minute.
 * Then it counts as too expensive, so whoever can ask for less does that.
 */
export const longReads: LongWorkRule = {
  longMs: 250,
  rememberedMs: 60_000,
  heavyMs: 2_000,
  heavyAtOnce: () => (cores.areShort() ? leavingACore : Number.POSITIVE_INFINITY),
  ranMs: 5_000,
  waitedMs: 1_000,
  refusal: () =>
    new AppError('query_too_expensive', {
      sentence:
        'The query took long while other organisations waited; repeat it later, shorten the range, name a service, or group by fewer keys.',
      cause: new EndedForOthers('A read of another organisation waited'),
    }),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
}
