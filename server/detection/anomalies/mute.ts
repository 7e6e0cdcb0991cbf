// When a series is muted, and which mutes are accepted: a mute must say what it mutes and until when, so that
// a forgotten field cannot mute anything for good. Mutes are compared with the time of the telemetry, not
// with the time of the run: a late or repeated run has the same result. An episode inside a mute is recorded
// as muted; one that lasts longer than its mute alarms as soon as the mute ends.

import { type CreateMute, type Weekly, weekdays } from '../../../contract/detection/feedback.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { type Ns, nsPerMs } from '../../../contract/values/instant.ts'
import { problem } from '../../core/app-error.ts'
import { isRecord } from '../../core/input/is-record.ts'
import type { Parsed } from '../../core/input/parsed.ts'
import { zoneOffsetMs } from '../../core/zone-offsets.ts'

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

/**
 * Whether an instant is in the weekly window, in local time. A window across midnight belongs to
 * the day on which it begins.
 */
export function isInWeekly(weekly: Weekly, instantNs: Ns): boolean {
  const ms = Number(instantNs / nsPerMs)
  const localMs = ms + zoneOffsetMs(weekly.time_zone, ms)
  const day = Math.floor(localMs / msPerDay)
  const sinceMidnightMs = localMs - day * msPerDay
  const { fromMs, untilMs } = timesOfDay(weekly)
  if (fromMs < untilMs) {
    return isOnDay(weekly, day) && sinceMidnightMs >= fromMs && sinceMidnightMs < untilMs
  }
  return (
    (isOnDay(weekly, day) && sinceMidnightMs >= fromMs) ||
    (isOnDay(weekly, day - 1) && sinceMidnightMs < untilMs)
  )
}

export const msPerDay = 86_400_000
/** 1970-01-01 was a Thursday, and `weekdays` begin with Monday. */
const epochWeekday = 3

/** Whether the window begins on a local day, counted from 1970-01-01. */
export function isOnDay({ days }: Pick<Weekly, 'days'>, day: number): boolean {
  const weekday = weekdays[(((day + epochWeekday) % 7) + 7) % 7]
  return days.some((name) => name === weekday)
}

/** Milliseconds since midnight. A window that does not end later than it begins ends on the next day. */
export function timesOfDay({ from, until }: Pick<Weekly, 'from' | 'until'>) {
  return { fromMs: sinceMidnight(from), untilMs: sinceMidnight(until) }
}

function sinceMidnight(text: string): number {
  return (Number(text.slice(0, 2)) * 60 + Number(text.slice(3))) * 60_000
}

/** The body of a new mute as it was sent: read by its schema, and the fields of it that are good. */
interface SentMute {
  /** Undefined where the schema refuses it. */
  readonly body: CreateMute | undefined
  readonly fields: Partial<CreateMute>
  readonly raw: unknown
}

/**
 * The mute that is asked for, or the problems that no field shows alone: the body doesn't say what is muted
 * or until when, says it twice, or ends before it begins.
 */
export function readMute({ body, fields, raw }: SentMute): Parsed<CreateMute> {
  if (!isRecord(raw)) return { problems: [] }
  const problems = [...selectorProblems(raw), ...endProblems(raw, fields)]
  return body === undefined || problems.length > 0 ? { problems } : { value: body }
}

function selectorProblems(raw: SentFields): ValidationProblem[] {
  const isAll = raw.all_detectors === true
  if (isAll && has(raw, 'detector_id')) {
    return [contradiction('all_detectors', 'detector_id', 'names one detector')]
  }
  const isLabelled = has(raw, 'group') && !(isRecord(raw.group) && Object.keys(raw.group).length === 0)
  if (isAll || isLabelled || has(raw, 'detector_id')) return []
  const sentence =
    'Say what to mute: detector_id, a group with at least one label, or "all_detectors": true for every detector of your organisation'
  return [problem(['body', 'detector_id'], 'missing', sentence, raw)]
}

function endProblems(raw: SentFields, fields: Partial<CreateMute>): ValidationProblem[] {
  const isOpen = raw.open_ended === true
  if (!has(raw, 'range_end')) {
    if (isOpen) return []
    const sentence =
      'Say when the mute ends: range_end, or "open_ended": true for one that lasts until it is deleted'
    return [problem(['body', 'range_end'], 'missing', sentence, raw)]
  }
  if (isOpen) return [contradiction('open_ended', 'range_end', 'is an end')]
  const { range_end: endNs, range_start: startNs } = fields
  const isReversed = startNs !== undefined && endNs !== undefined && endNs <= startNs
  return isReversed ? [endsTooEarly(raw.range_end)] : []
}

type SentFields = Readonly<Record<string, unknown>>

/** Whether a field was sent, also one that the schema refuses. */
function has(raw: SentFields, field: keyof CreateMute): boolean {
  return Object.hasOwn(raw, field)
}

function contradiction(field: string, other: string, why: string): ValidationProblem {
  return problem(['body', field], 'value_error', `${other} ${why}; send one of the two`, true, { other })
}

/** The problem of a mute that ends before it begins. */
export function endsTooEarly(input: unknown): ValidationProblem {
  return problem(['body', 'range_end'], 'greater_than', 'range_end must be later than range_start', input)
}
