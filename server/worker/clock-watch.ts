// Whether wall time can be believed. What erases by a date alone asks here what time it is and gets no answer
// while the clock is in doubt: a machine that believes to be in next year would erase a year of telemetry and
// every backup. The clock is in doubt once it has moved by more than a day against the time that the machine
// has been on, or, over a start of the machine, against the last time that was written down; then it stays so
// until an operator says that it is right.

import type { FastifyBaseLogger } from 'fastify'
import { z } from 'zod'
import type { Control } from '../control/database.ts'
import { type Clock, instantText, type SteadyTime } from '../core/clock.ts'

const Steady = z.object({ boot: z.string(), ms: z.number() })

const Doubt = z.object({
  /** What time it should have been, and what time the clock said. */
  expected_ms: z.number(),
  found_ms: z.number(),
})

const Record = z.object({
  /** When the clock was last known to be right: both clocks at one moment. */
  right_ms: z.number(),
  right_steady: Steady,
  /** Both at the last look that was written down. */
  seen_ms: z.number(),
  seen_steady_ms: z.number(),
  doubt: Doubt.nullable(),
})

type ClockDoubt = Readonly<z.infer<typeof Doubt>>
/** What is kept of the clock between two looks. */
export type ClockRecord = Readonly<z.infer<typeof Record>>

/** Both clocks at one moment. */
interface ClockReading {
  readonly wallMs: number
  readonly steady: SteadyTime
}

/** More than any time zone, and less than any retention. */
const jumpMs = 86_400_000

/** How much a start of the machine may make of the time before it. */
const writeEveryMs = 60_000

const recordKey = 'clock'
const confirmationKey = 'clock_confirmed'

export function readingOf(clock: Clock): ClockReading {
  return { wallMs: clock.nowMs(), steady: clock.steady() }
}

/** The record of a clock that is right now. */
function recordAt({ wallMs, steady }: ClockReading): ClockRecord {
  return { right_ms: wallMs, right_steady: steady, seen_ms: wallMs, seen_steady_ms: steady.ms, doubt: null }
}

/** What the record becomes with this reading. A doubt is never taken back. */
export function judgeClock(record: ClockRecord, reading: ClockReading): ClockRecord {
  const { wallMs, steady } = reading
  const before = record.right_steady
  // A container's time may begin anew without a start of the machine.
  const isSameBoot = steady.boot === before.boot && steady.ms >= record.seen_steady_ms
  const expectedMs = isSameBoot ? record.right_ms + steady.ms - before.ms : record.seen_ms
  if (record.doubt !== null) return record
  if (Math.abs(wallMs - expectedMs) > jumpMs) {
    return { ...record, doubt: { expected_ms: expectedMs, found_ms: wallMs } }
  }
  // Over a start of the machine nobody knows more than that; within one, small jumps add up.
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
  /** Wall time in the last record that was written. */
  #writtenMs = Number.NEGATIVE_INFINITY

  constructor(deps: ClockWatchDeps) {
    this.#deps = deps
  }

  /** As of the last look; null where there is none. */
  get doubt(): ClockDoubt | null {
    return this.#record?.doubt ?? null
  }

  /**
   * Looks at the clock. Answers the time that was looked at, in milliseconds, and null while the clock is in
   * doubt. Whoever erases by date uses this very answer: the next look at the clock may find another year.
   */
  async now(): Promise<number | null> {
    const { clock, control } = this.#deps
    const known = this.#record ?? (await readClockRecord(control))
    const reading = readingOf(clock)
    const judged = known === null ? recordAt(reading) : judgeClock(known, reading)
    const record = judged.doubt === null ? judged : await this.#confirmed(judged, reading)
    const isNews = record.doubt !== null && (this.#record?.doubt ?? null) === null
    const isChanged = record.doubt !== (known?.doubt ?? null) || record.right_ms !== known?.right_ms
    this.#record = record
    if (isNews) this.#tell(record.doubt)
    if (isChanged || Math.abs(reading.wallMs - this.#writtenMs) >= writeEveryMs) await this.#write(record)
    return record.doubt === null ? reading.wallMs : null
  }

  /** A confirmation is of the time it names: one of another day is not of this clock. */
  async #confirmed(doubted: ClockRecord, reading: ClockReading): Promise<ClockRecord> {
    const { control, logger } = this.#deps
    const confirmedMs = await readConfirmation(control)
    if (confirmedMs === null) return doubted
    if (Math.abs(confirmedMs - reading.wallMs) > jumpMs) {
      const confirmed = instantText(confirmedMs)
      logger.error(
        { confirmed, now: instantText(reading.wallMs) },
        'another time was confirmed than the clock has',
      )
      return doubted
    }
    logger.info({ now: instantText(reading.wallMs) }, 'the clock was confirmed; what erases by date goes on')
    return recordAt(reading)
  }

  #tell(doubt: ClockDoubt): void {
    this.#deps.logger.error(
      { expected: instantText(doubt.expected_ms), found: instantText(doubt.found_ms) },
      'the clock is in doubt: retention, expiry of backups and delayed deletions are paused; set it right, then run "lethe clock confirm"',
    )
  }

  /** Never throws: on a full disk erasures must go on, and what is not written is found out again. */
  async #write(record: ClockRecord): Promise<void> {
    const { control, logger } = this.#deps
    try {
      await control.transaction().execute(async (trx) => {
        await putValue(trx, recordKey, JSON.stringify(record))
        // What was confirmed is used up, or is of a doubt that is over.
        if (record.doubt === null)
          await trx.deleteFrom('instance').where('key', '=', confirmationKey).execute()
      })
      this.#writtenMs = record.seen_ms
    } catch (err) {
      logger.error({ err }, 'the time could not be written down')
    }
  }
}

/** Null before the first look. */
export async function readClockRecord(control: Pick<Control, 'selectFrom'>): Promise<ClockRecord | null> {
  const text = await readValue(control, recordKey)
  return text === null ? null : Record.parse(JSON.parse(text))
}

/** Whether the last look left the clock in doubt. */
export async function isClockInDoubt(control: Pick<Control, 'selectFrom'>): Promise<boolean> {
  return ((await readClockRecord(control))?.doubt ?? null) !== null
}

/** An operator says that it is `nowMs`; the next look takes that into account. */
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
