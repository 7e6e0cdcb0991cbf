// Formats and parses instants for people: in the zone of the browser or in UTC, with 24 hours, and with the
// offset where they are bounds of an erasure. The wire has RFC 3339 in UTC, to the nanosecond; unedited text
// is sent back unchanged.

/** `local` is the zone of the browser. */
export type Zone = 'local' | 'utc'

export const zones: readonly Zone[] = ['local', 'utc']

const msPerMinute = 60_000
export const msPerDay = 86_400_000

/** Minutes east of UTC at that instant. */
function offsetMinutes(ms: number, zone: Zone): number {
  return zone === 'utc' ? 0 : -new Date(ms).getTimezoneOffset()
}

const two = (value: number) => String(value).padStart(2, '0')

/** `+01:00`, or `Z` for UTC. */
export function offsetText(ms: number, zone: Zone): string {
  if (zone === 'utc') return 'Z'
  const minutes = offsetMinutes(ms, zone)
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

/** `UTC`, `UTC+1`, `UTC+5:30`. */
export function zoneText(ms: number, zone: Zone): string {
  const minutes = offsetMinutes(ms, zone)
  const size = Math.abs(minutes)
  if (size === 0) return 'UTC'
  const rest = size % 60 === 0 ? '' : `:${two(size % 60)}`
  return `UTC${minutes < 0 ? '−' : '+'}${Math.floor(size / 60)}${rest}`
}

/** The fraction of the second, such as `.114`, as the instant has it; empty where it is zero. */
function fractionOf(instant: string): string {
  return /\.(?!0+(?:\D|$))\d+/.exec(instant)?.[0] ?? ''
}

/** `2026-11-03 14:03:20`; `fraction` adds the digits that the instant has. */
export function instantText(instant: string, zone: Zone, { fraction = false } = {}): string {
  const ms = Date.parse(instant)
  const shifted = new Date(ms + offsetMinutes(ms, zone) * msPerMinute).toISOString()
  const text = `${shifted.slice(0, 10)} ${shifted.slice(11, 19)}`
  return fraction ? `${text}${fractionOf(instant)}` : text
}

/** `3 Nov 2026`. */
export function dayText(instant: string, zone: Zone): string {
  const ms = Date.parse(instant)
  const date = new Date(ms + offsetMinutes(ms, zone) * msPerMinute)
  return `${date.getUTCDate()} ${months[date.getUTCMonth()]} ${date.getUTCFullYear()}`
}

/** `3 Nov` of a UTC day such as `2026-11-03`. */
export function shortDayText(day: string): string {
  return `${Number(day.slice(8, 10))} ${months[Number(day.slice(5, 7)) - 1]}`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/** How long ago, or in how long: `2 minutes ago`, `in 3 days`. */
export function agoText(instant: string, nowMs: number): string {
  const ms = nowMs - Date.parse(instant)
  const size = Math.abs(ms)
  const [unit, name] = agoUnits.find(([one]) => size >= one) ?? agoUnits[agoUnits.length - 1] ?? [1, 'ms']
  if (size < 1_000) return 'now'
  const count = Math.floor(size / unit)
  const text = `${count} ${name}${count === 1 ? '' : 's'}`
  return ms >= 0 ? `${text} ago` : `in ${text}`
}

const agoUnits: readonly (readonly [number, string])[] = [
  [msPerDay, 'day'],
  [3_600_000, 'hour'],
  [msPerMinute, 'minute'],
  [1_000, 'second'],
]

const typed =
  /^(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?)?\s*(Z|[+-]\d{2}:\d{2})?$/i

/**
 * Parses what a person types: `2026-11-03`, `2026-11-03 14:00`, with seconds, and with an offset or without,
 * which means `zone`. Returns RFC 3339 in UTC; null where it is no such instant.
 */
export function parseTyped(text: string, zone: Zone): string | null {
  const match = typed.exec(text.trim())
  if (match === null) return null
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset] = match
  const clock = `${year}-${month}-${day}T${hour}:${minute}:${second}`
  const utcMs = Date.parse(`${clock}Z`)
  // A day that the month doesn't have becomes another one.
  if (Number.isNaN(utcMs) || !new Date(utcMs).toISOString().startsWith(clock)) return null
  const ms = offset === undefined ? fromZone(utcMs, zone) : Date.parse(`${clock}${offset.toUpperCase()}`)
  return Number.isNaN(ms) ? null : `${new Date(ms).toISOString().slice(0, 19)}${fractionOf(fraction)}Z`
}

/** The instant whose clock in the zone shows what `utcMs` shows in UTC. */
function fromZone(utcMs: number, zone: Zone): number {
  const guess = utcMs - offsetMinutes(utcMs, zone) * msPerMinute
  return utcMs - offsetMinutes(guess, zone) * msPerMinute
}

/** The UTC day of an instant, such as `2026-11-03`. */
export function utcDayOf(instant: string): string {
  return new Date(Date.parse(instant)).toISOString().slice(0, 10)
}

/** The start of a UTC day as an instant. */
export function dayStart(day: string): string {
  return `${day}T00:00:00Z`
}

/** The UTC day so many days later. */
export function dayAfter(day: string, days = 1): string {
  return utcDayOf(new Date(Date.parse(dayStart(day)) + days * msPerDay).toISOString())
}

/** How many days the second UTC day is after the first. */
export function daysApart(first: string, second: string): number {
  return Math.round((Date.parse(dayStart(second)) - Date.parse(dayStart(first))) / msPerDay)
}

const daysOfMonth = Array.from({ length: 32 }, (_, day) => two(day))

/** UTC days from the first to the last, both included. */
export function daysBetween(first: string, last: string): string[] {
  const count = Math.max(0, daysApart(first, last) + 1)
  const days: string[] = []
  // A date for each month and not for each day, which takes a third of the time.
  for (
    const date = new Date(dayStart(first));
    days.length < count;
    date.setUTCMonth(date.getUTCMonth() + 1, 1)
  ) {
    const month = date.toISOString().slice(0, 8)
    const lastOfMonth = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
    const end = Math.min(lastOfMonth, date.getUTCDate() + count - days.length - 1)
    for (let day = date.getUTCDate(); day <= end; day++) days.push(month + daysOfMonth[day])
  }
  return days
}
