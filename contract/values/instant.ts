// Instants on the wire: RFC 3339 is read, RFC 3339 UTC with `Z` is written, exact to the nanosecond. Instants
// that the engine cannot store are refused here with a reason, because the engine would wrap them without an
// error.

import { z } from 'zod'
import { refuse } from './fields.ts'

/** Nanoseconds since 1970-01-01T00:00:00Z. */
export type Ns = bigint

export const nsPerMs = 1_000_000n
export const nsPerSecond = 1_000_000_000n
export const nsPerMinute = 60n * nsPerSecond

/**
 * Bounds of what the engine can store: its partition key is a 16-bit Date of the week's Monday, which ends in
 * June 2149. Every interface refuses instants outside with a reason, because the engine would wrap them
 * without an error.
 */
export const earliestNs: Ns = 0n
export const latestNs: Ns = BigInt(Date.UTC(2149, 5, 1)) * nsPerMs

type InstantProblem = 'syntax' | 'naive' | 'bounds'

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})?$/

/**
 * Parses an RFC 3339 date-time with up to nine fractional digits. Returns the instant, or why there is none:
 * `syntax`, `naive` (no offset, so the instant is ambiguous) or `bounds` (outside what the engine can store).
 * A leap second is refused as syntax, because the engine has no such instant.
 */
export function parseInstant(text: string): { ns: Ns } | { problem: InstantProblem } {
  const match = rfc3339.exec(text)
  if (match === null) return { problem: 'syntax' }
  const [, year, month, day, hour, minute, second, fraction, offset] = match
  if (offset === undefined) return { problem: 'naive' }
  const utcMs = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  )
  if (!sameFields(utcMs, match)) return { problem: 'syntax' }
  const offsetMinutes = parseOffset(offset)
  if (offsetMinutes === null) return { problem: 'syntax' }
  const ns = BigInt(utcMs - offsetMinutes * 60_000) * nsPerMs + BigInt((fraction ?? '').padEnd(9, '0'))
  return ns < earliestNs || ns > latestNs ? { problem: 'bounds' } : { ns }
}

/**
 * Guards against 30 February, 25 o'clock and years below 100, which Date.UTC would shift to another time
 * without an error.
 */
function sameFields(utcMs: number, match: RegExpExecArray): boolean {
  const date = new Date(utcMs)
  return (
    date.getUTCFullYear() === Number(match[1]) &&
    date.getUTCMonth() + 1 === Number(match[2]) &&
    date.getUTCDate() === Number(match[3]) &&
    date.getUTCHours() === Number(match[4]) &&
    date.getUTCMinutes() === Number(match[5]) &&
    date.getUTCSeconds() === Number(match[6])
  )
}

function parseOffset(offset: string): number | null {
  if (offset === 'Z' || offset === 'z') return 0
  const hours = Number(offset.slice(1, 3))
  const minutes = Number(offset.slice(4, 6))
  if (hours > 23 || minutes > 59) return null
  return (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes)
}

/** RFC 3339 UTC with `Z` and as many fractional digits (0, 3, 6 or 9) as the instant needs. */
export function formatInstant(ns: Ns): string {
  const seconds = ns / nsPerSecond
  const head = new Date(Number(seconds) * 1000).toISOString().slice(0, 19)
  const fraction = (ns % nsPerSecond).toString().padStart(9, '0')
  if (fraction === '000000000') return `${head}Z`
  if (fraction.endsWith('000000')) return `${head}.${fraction.slice(0, 3)}Z`
  if (fraction.endsWith('000')) return `${head}.${fraction.slice(0, 6)}Z`
  return `${head}.${fraction}Z`
}

const problems = {
  syntax: ['datetime_parsing', 'Input should be an RFC 3339 date-time such as 2026-11-21T09:30:00Z'],
  naive: ['timezone_aware', 'Input should have an offset: end it with Z or such as +01:00'],
  bounds: [
    'value_error',
    'Input is outside what can be stored: 1970-01-01T00:00:00Z to 2149-06-01T00:00:00Z',
  ],
} as const satisfies Record<InstantProblem, readonly [string, string]>

/** An instant of a request: absolute, or a duration before the time of the response. */
export type Moment = Ns | { readonly beforeNowNs: Ns }

/** Returns the absolute instant. One before the earliest instant that can be stored becomes the earliest. */
export function instantOf(moment: Moment, nowNs: Ns): Ns {
  if (typeof moment === 'bigint') return moment
  const ns = nowNs - moment.beforeNowNs
  return ns < earliestNs ? earliestNs : ns
}

const relative = /^(?:now|(?:now)?-((?:\d{1,9}(?:ms|[smhdw]))+))$/

const unitNs: Readonly<Record<string, Ns>> = {
  ms: nsPerMs,
  s: nsPerSecond,
  m: nsPerMinute,
  h: 60n * nsPerMinute,
  d: 1_440n * nsPerMinute,
  w: 10_080n * nsPerMinute,
}

/**
 * Parses `now`, `now-15m`, `-1h30m` (units ms, s, m, h, d, w), or what {@link parseInstant} parses. Only for
 * reading: an erasure, a legal hold or a mute must mean the same instant whenever its text is read.
 */
function parseMoment(text: string): { moment: Moment } | { problem: InstantProblem } {
  const match = relative.exec(text)
  if (match === null) {
    const read = parseInstant(text)
    return 'ns' in read ? { moment: read.ns } : read
  }
  const parts = (match[1] ?? '').matchAll(/(\d+)(ms|[smhdw])/g)
  const beforeNowNs = parts.reduce(
    (sum, [, count, unit]) => sum + BigInt(count ?? 0) * (unitNs[unit ?? ''] ?? 0n),
    0n,
  )
  return { moment: { beforeNowNs } }
}

/** An instant in a body or query string, exact to the nanosecond. */
export const InstantInput = z
  .string()
  .transform((text, context) => {
    const read = parseInstant(text)
    if ('ns' in read) return read.ns
    const [type, message] = problems[read.problem]
    return refuse(context, type, message, { error: read.problem })
  })
  .meta({ format: 'date-time' })

const momentSyntax = `${problems.syntax[1]}, or a time before now such as -1h, now-15m or now`

/** An instant, or a duration before the time of the response, in a body or query string. */
export const MomentInput = z
  .string()
  .transform((text, context): Moment => {
    const read = parseMoment(text)
    if ('moment' in read) return read.moment
    const [type, message] = problems[read.problem]
    return refuse(context, type, read.problem === 'syntax' ? momentSyntax : message, { error: read.problem })
  })
  .meta({ examples: ['2026-11-21T09:30:00Z', '-1h', 'now-15m', 'now'] })

/** The forms of a moment, for descriptions of parameters. */
export const momentForms = 'An RFC 3339 date-time, `now`, or a time before now: `-1h`, `now-15m`, `-1d12h`.'
