// Decides whether wall time can be trusted. Code that erases by a date asks here for the time and gets none
// while the clock is in doubt: a machine whose clock is a year ahead would erase a year of telemetry and
// every backup. The clock is in doubt after it has moved by more than a day compared with the machine's
// uptime or, over a start of the machine, compared with the last recorded time. It stays in doubt until an
// operator confirms that it is right.

import type { FastifyBaseLogger } from 'fastify'
import { z } from 'zod'
import type { Control } from '../control/database.ts'
import { transact } from '../control/transaction.ts'
import { type Clock, instantText, type SteadyTime } from '../core/clock.ts'

const Steady = z.object({ boot: z.string(), ms: z.number() })

const Doubt = z.object({
  /** The expected time, and the time of the clock. */
  expected_ms: z.number(),
  found_ms: z.number(),
})

const Record = z.object({
  /** When the clock was last known to be right: both clocks at one moment. */
  right_ms: z.number(),
  right_steady: Steady,
  /** Both clocks at the last recorded check. */
  seen_ms: z.number(),
  seen_steady_ms: z.number(),
  doubt: Doubt.nullable(),
})

type ClockDoubt = Readonly<z.infer<typeof Doubt>>
/** What is stored about the clock between two checks. */
export type ClockRecord = Readonly<z.infer<typeof Record>>

/** Both clocks at one moment. */
export interface ClockReading {
  readonly wallMs: number
  readonly steady: SteadyTime
}

/** More than any time zone, and less than any retention. */
const jumpMs = 86_400_000

/** The most time before a start of the machine that may be unrecorded. */
const writeEveryMs = 60_000

const recordKey = 'clock'
const confirmationKey = 'clock_confirmed'

export function readingOf(clock: Clock): ClockReading {
  return { wallMs: clock.nowMs(), steady: clock.steady() }
}

/** Returns the record of a clock that is right now. */
function recordAt({ wallMs, steady }: ClockReading): ClockRecord {
  return { right_ms: wallMs, right_steady: steady, seen_ms: wallMs, seen_steady_ms: steady.ms, doubt: null }
}

/** Returns the record after this reading. A doubt is never removed. */
export function judgeClock(record: ClockRecord, reading: ClockReading): ClockRecord {
  const { wallMs, steady } = reading
  const before = record.right_steady
  // The uptime of a container may begin again without a start of the machine.
  const isSameBoot = steady.boot === before.boot && steady.ms >= record.seen_steady_ms
  const expectedMs = isSameBoot ? record.right_ms + steady.ms - before.ms : record.seen_ms
  if (record.doubt !== null) return record
  if (Math.abs(wallMs - expectedMs) > jumpMs) {
    return { ...record, doubt: { expected_ms: expectedMs, found_ms: wallMs } }
  }
  // Over a start of the machine nothing more is known; within one, small jumps add up.
  return isSameBoot ? { ...record, seen_ms: wallMs, seen_steady_ms: steady.ms } : recordAt(reading)
}

interface ClockWatchDeps {
  readonly control: Control
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info'>
}

export class ClockWatch {
  readonly #deps: ClockWatchDeps
  #record: ClockRecord | null = null
  /** Wall time of the last record that was written. */
  #writtenMs = Number.NEGATIVE_INFINITY

  constructor(deps: ClockWatchDeps) {
    this.#deps = deps
  }

  /** The doubt of the last check; null where there is none. */
  get doubt(): ClockDoubt | null {
    return this.#record?.doubt ?? null
  }

  /**
   * Checks the clock. Returns the checked time in milliseconds; null while the clock is in doubt. Code that
   * erases by date uses exactly this value: the next reading of the clock may be in another year.
   */
  async now(): Promise<number | null> {
    const { clock, control } = this.#deps
    const known = this.#record ?? (await readClockRecord(control))
    const reading = readingOf(clock)
    const judged = known === null ? recordAt(reading) : judgeClock(known, reading)
    const record = judged.doubt === null ? judged : await this.#confirmed(judged, reading)
    const isNewDoubt = record.doubt !== null && (this.#record?.doubt ?? null) === null
    const isChanged = record.doubt !== (known?.doubt ?? null) || record.right_ms !== known?.right_ms
    this.#record = record
    if (isNewDoubt) this.#report(record.doubt)
    if (isChanged || Math.abs(reading.wallMs - this.#writtenMs) >= writeEveryMs) await this.#write(record)
    return record.doubt === null ? reading.wallMs : null
  }

  /** A confirmation applies to the time it names: one of another day is not for this clock. */
  async #confirmed(doubted: ClockRecord, reading: ClockReading): Promise<ClockRecord> {
    const { control, logger } = this.#deps
    const confirmedMs = await readConfirmation(control)
    if (confirmedMs === null) return doubted
    if (Math.abs(confirmedMs - reading.wallMs) > jumpMs) {
      const confirmed = instantText(confirmedMs)
      logger.error(
        { confirmed, now: instantText(reading.wallMs) },
        'the confirmed time differs from the clock',
      )
      return doubted
    }
    logger.info({ now: instantText(reading.wallMs) }, 'the clock was confirmed; erasures by date continue')
    return recordAt(reading)
  }

  #report(doubt: ClockDoubt): void {
    this.#deps.logger.error(
      { expected: instantText(doubt.expected_ms), found: instantText(doubt.found_ms) },
      'the clock is in doubt: retention, expiry of backups and delayed deletions are paused; set it right, then run "lethe clock confirm"',
    )
  }

  /** Never throws: on a full disk erasures must continue, and what is not written is found again. */
  async #write(record: ClockRecord): Promise<void> {
    const { control, logger } = this.#deps
    try {
      await transact(control, async (trx) => {
        await putValue(trx, recordKey, JSON.stringify(record))
        // The confirmation was used, or its doubt no longer exists.
        if (record.doubt === null)
          await trx.deleteFrom('instance').where('key', '=', confirmationKey).execute()
      })
      this.#writtenMs = record.seen_ms
    } catch (err) {
      logger.error({ err }, 'the time could not be recorded')
    }
  }
}

/** Null before the first check. */
export async function readClockRecord(control: Pick<Control, 'selectFrom'>): Promise<ClockRecord | null> {
  const text = await readValue(control, recordKey)
  return text === null ? null : Record.parse(JSON.parse(text))
}

/**
 * Whether the clock is in doubt at this reading: the last check left it so, or a check would now. It writes
 * nothing, so a transaction can ask for the reading that it decides by, also between two checks.
 */
export async function isClockInDoubt(
  control: Pick<Control, 'selectFrom'>,
  reading: ClockReading,
): Promise<boolean> {
  const record = await readClockRecord(control)
  return record !== null && judgeClock(record, reading).doubt !== null
}

/** An operator confirms that the time is `nowMs`; the next check uses it. */
export async function confirmClock(control: Control, nowMs: number): Promise<void> {
  await putValue(control, confirmationKey, String(nowMs))
}

async function readConfirmation(control: Control): Promise<number | null> {
  const text = await readValue(control, confirmationKey)
  return text === null ? null : Number(text)
}

async function readValue(control: Pick<Control, 'selectFrom'>, key: string): Promise<string | null> {
  const row = await control.selectFrom('instance').select('value').where('key', '=', key).executeTakeFirst()
  return row?.value ?? null
}

async function putValue(control: Pick<Control, 'insertInto'>, key: string, value: string): Promise<void> {
  await control
    .insertInto('instance')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute()
}
