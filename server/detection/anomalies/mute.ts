// When a series is muted, and which mutes are accepted: a mute must say what it mutes and until when, so that a
// forgotten field cannot mute anything for good. Mutes are compared with the time of the telemetry, not with the time
// of the run: a late or repeated run has the same result. An incident inside a mute is recorded as muted; one that
// lasts longer than its mute alarms as soon as the mute ends.

import { CreateMute, type Weekly, weekdays } from '../../../contract/detection-feedback.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { type Ns, nsPerMs } from '../../../contract/instant.ts'
import { problem } from '../../core/app-error.ts'
import { isRecord } from '../../http/validation.ts'

export interface MuteRule {
  readonly id: string
  /** Labels a series must have; null for every series. */
  readonly group: Readonly<Record<string, string>> | null
  readonly fromNs: Ns
  readonly untilNs: Ns | null
  readonly weekly: Weekly | null
}

/** The mutes that apply to a series with these labels. */
export function mutesFor(mutes: readonly MuteRule[], labels: Readonly<Record<string, string>>): MuteRule[] {
  return mutes.filter(
    ({ group }) =>
      group === null ||
      Object.entries(group).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value),
  )
}

/** A mute that is active at an instant; null where there is none. */
export function muteAt(mutes: readonly MuteRule[], instantNs: Ns): MuteRule | null {
  return (
    mutes.find(
      ({ fromNs, untilNs, weekly }) =>
        fromNs <= instantNs &&
        (untilNs === null || instantNs < untilNs) &&
        (weekly === null || isInWeekly(weekly, instantNs)),
    ) ?? null
  )
}

/** Whether the bucket that ends at `firstEndNs` is muted, and every one after it up to `lastEndNs`. */
export function isMutedThroughout(
  mutes: readonly MuteRule[],
  firstEndNs: Ns,
  lastEndNs: Ns,
  stepNs: Ns,
): boolean {
  if (muteAt(mutes, firstEndNs - 1n) === null) return false
  for (let endNs = firstEndNs; endNs <= lastEndNs; endNs += stepNs) {
    if (muteAt(mutes, endNs - 1n) === null) return false
  }
  return true
}

/**
 * Whether an instant is in the weekly window, in local time. A window across midnight belongs to the day on which it
 * begins.
 */
export function isInWeekly(weekly: Weekly, instantNs: Ns): boolean {
  const { day, minute } = localTime(weekly.time_zone, instantNs)
  const [from, until] = [minuteOfDay(weekly.from), minuteOfDay(weekly.until)]
  const isOn = (index: number) => weekly.days.some((name) => name === weekdays[(index + 7) % 7])
  if (from < until) return isOn(day) && minute >= from && minute < until
  return (isOn(day) && minute >= from) || (isOn(day - 1) && minute < until)
}

function minuteOfDay(text: string): number {
  return Number(text.slice(0, 2)) * 60 + Number(text.slice(3))
}

const formats = new Map<string, Intl.DateTimeFormat>()
const shortDays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** `day` 0 is Monday. */
function localTime(timeZone: string, instantNs: Ns): { day: number; minute: number } {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    })
    formats.set(timeZone, format)
  }
  const parts = new Map(
    format.formatToParts(Number(instantNs / nsPerMs)).map(({ type, value }) => [type, value]),
  )
  return {
    day: shortDays.indexOf(parts.get('weekday') ?? ''),
    minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')),
  }
}

/**
 * Problems in the body of a new mute that need more than one field: it does not say what is muted or until when, says
 * it twice, or ends before it begins. Takes the raw body and skips what the schema refuses anyway.
 */
export function muteProblems(raw: unknown): ValidationProblem[] {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return []
  const body = new Map<string, unknown>(Object.entries(raw))
  return [...selectorProblems(body, raw), ...endProblems(body, raw)]
}

function selectorProblems(body: ReadonlyMap<string, unknown>, raw: object): ValidationProblem[] {
  const isAll = body.get('all_detectors') === true
  if (isAll && body.has('detector_id')) {
    return [contradiction('all_detectors', 'detector_id', 'names one detector')]
  }
  const group = body.get('group')
  const isLabelled = body.has('group') && !(isRecord(group) && Object.keys(group).length === 0)
  if (isAll || isLabelled || body.has('detector_id')) return []
  const sentence =
    'Say what to mute: detector_id, a group with at least one label, or "all_detectors": true for every detector of your organisation'
  return [problem(['body', 'detector_id'], 'missing', sentence, raw)]
}

function endProblems(body: ReadonlyMap<string, unknown>, raw: object): ValidationProblem[] {
  const isOpen = body.get('open_ended') === true
  if (!body.has('range_end')) {
    if (isOpen) return []
    const sentence =
      'Say when the mute ends: range_end, or "open_ended": true for one that lasts until it is deleted'
    return [problem(['body', 'range_end'], 'missing', sentence, raw)]
  }
  if (isOpen) return [contradiction('open_ended', 'range_end', 'is an end')]
  const bounds = CreateMute.pick({ range_start: true, range_end: true }).strip().safeParse(raw)
  if (!bounds.success) return []
  const { range_end: endNs, range_start: startNs } = bounds.data
  const isReversed = startNs !== undefined && endNs !== undefined && endNs <= startNs
  return isReversed ? [endsTooEarly(body.get('range_end'))] : []
}

function contradiction(field: string, other: string, why: string): ValidationProblem {
  return problem(['body', field], 'value_error', `${other} ${why}; send one of the two`, true, { other })
}

/** The problem of a mute that ends before it begins. */
export function endsTooEarly(input: unknown): ValidationProblem {
  return problem(['body', 'range_end'], 'greater_than', 'range_end must be later than range_start', input)
}
