// Commands by which an operator confirms the clock. They work beside a running service, which reads the
// record every second, and before the next start of a stopped one.

import type { Config } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import {
  type ClockRecord,
  confirmClock,
  judgeClock,
  readClockRecord,
  readingOf,
} from '../worker/clock-watch.ts'
import { withControl } from './open-control.ts'
import { type JsonOption, print, printJson } from './print.ts'

export async function showClock(config: Config, { json = false }: JsonOption): Promise<void> {
  await withControl(config, async (control) => {
    const record = await judged(control)
    if (json) return printJson(wireForm(record))
    for (const line of describe(record)) print(line)
  })
}

export async function confirmClockNow(config: Config, { json = false }: JsonOption): Promise<void> {
  await withControl(config, async (control) => {
    const record = await judged(control)
    const nowMs = systemClock.nowMs()
    const isInDoubt = (record?.doubt ?? null) !== null
    if (isInDoubt) await confirmClock(control, nowMs)
    if (json) return printJson({ ...wireForm(null), was_in_doubt: isInDoubt })
    if (!isInDoubt) return print('The clock is not in doubt; nothing is paused.')
    print(`Confirmed: the time is ${instantText(nowMs)}.`)
    print('A running service continues within seconds, a stopped one at its next start.')
  })
}

/** Returns the record as a service would judge it now. */
async function judged(control: Parameters<typeof readClockRecord>[0]): Promise<ClockRecord | null> {
  const record = await readClockRecord(control)
  return record === null ? null : judgeClock(record, readingOf(systemClock))
}

function describe(record: ClockRecord | null): string[] {
  const now = instantText(systemClock.nowMs())
  if (record === null || record.doubt === null) return [`The clock says ${now} and is not in doubt.`]
  const { expected_ms, found_ms } = record.doubt
  return [
    `The clock is in doubt: it said ${instantText(found_ms)} where ${instantText(expected_ms)} was expected. It says ${now} now.`,
    'Retention, expiry of backups and delayed deletions are paused.',
    'Set the clock right if it is wrong, then run "lethe clock confirm".',
  ]
}

function wireForm(record: ClockRecord | null) {
  const doubt = record?.doubt ?? null
  return {
    now: instantText(systemClock.nowMs()),
    is_in_doubt: doubt !== null,
    expected: doubt === null ? null : instantText(doubt.expected_ms),
    found: doubt === null ? null : instantText(doubt.found_ms),
  }
}
