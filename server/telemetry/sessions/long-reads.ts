// Long reads of organisations beside the short ones of others. An interactive read may take 20 s, so without
// these rules a few organisations could occupy every session for that time.

import { AppError } from '../../core/app-error.ts'
import { systemClock } from '../../core/clock.ts'
import type { GivingWay, LongWorkRule } from '../../core/turns/long-work.ts'

const ranMs = 5_000

/** The client's next try waits behind the reads of others. */
const retrySeconds = 5

/**
 * A chart takes some tens of milliseconds, and on cores that others use some hundreds. A read that is
 * refused is lost work, so one gives way only where a client of an organisation with short reads waits for a
 * second, which needs three other organisations or more that began long reads for the first time in a minute.
 */
export const longReads: LongWorkRule & { readonly givingWay: GivingWay } = {
  longMs: 1_000,
  rememberedMs: 60_000,
  givingWay: {
    ranMs,
    waitedMs: 1_000,
    refusal: () =>
      new AppError('too_many_requests', {
        sentence: `The read took over ${ranMs / 1000} s while others waited, and was ended; repeat it after Retry-After, or ask for less.`,
        retryAfterSeconds: retrySeconds,
      }),
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
  },
}
