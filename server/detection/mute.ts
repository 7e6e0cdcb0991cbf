// When a series is muted. Mutes are compared with telemetry time, not with the clock at the run: a run that is late,
// or repeated, finds the same. What lies inside a mute is recorded as muted; an incident that outlasts its mute alarms
// as soon as it does.

import { type Weekly, weekdays } from '../../contract/detection-feedback.ts'
import { type Ns, nsPerMs } from '../../contract/instant.ts'

export interface MuteRule {
  readonly id: string
  /** Labels a series must have; null for every series. */
  readonly group: Readonly<Record<string, string>> | null
  readonly fromNs: Ns
  readonly untilNs: Ns | null
  readonly weekly: Weekly | null
}

/** The mutes for a series by its labels. */
export function mutesFor(mutes: readonly MuteRule[], labels: Readonly<Record<string, string>>): MuteRule[] {
  return mutes.filter(
    ({ group }) =>
      group === null ||
      Object.entries(group).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value),
  )
}

/** The mute in force at an instant; null where there is none. */
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

/** By the clock on the wall of the time zone; a window that passes midnight belongs to the day it begins on. */
export function isInWeekly(weekly: Weekly, instantNs: Ns): boolean {
  const { day, minute } = wallClock(weekly.time_zone, instantNs)
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
function wallClock(timeZone: string, instantNs: Ns): { day: number; minute: number } {
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
