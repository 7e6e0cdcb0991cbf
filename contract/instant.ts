// Instants on the wire: RFC 3339 in, RFC 3339 UTC with `Z` out, exact to the nanosecond in between. What the
// engine can't hold is refused by name here, at the door, rather than wrapped by the engine.

import { z } from 'zod'
import { refuse } from './common.ts'

/** Nanoseconds since 1970-01-01T00:00:00Z. */
export type Ns = bigint

export const nsPerMs = 1_000_000n
export const nsPerSecond = 1_000_000_000n
export const nsPerMinute = 60n * nsPerSecond

/**
 * What the engine can hold: its partition key is a 16-bit Date of the week's Monday, which ends in June 2149.
 * Instants outside are refused by name at every door rather than wrapped by the engine.
 */
export const earliestNs: Ns = 0n
export const latestNs: Ns = BigInt(Date.UTC(2149, 5, 1)) * nsPerMs

type InstantProblem = 'syntax' | 'naive' | 'bounds'

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})?$/

/**
 * Reads an RFC 3339 date-time with up to nine fractional digits. Answers the instant, or why not: `syntax`,
 * `naive` (no offset, so the instant is anyone's guess) or `bounds` (outside what the engine can hold).
 * A leap second is refused as syntax: the engine has no such instant.
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
 * Guards against 30 February, 25 o'clock and years below 100, which Date.UTC would quietly move elsewhere.
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

/** An instant as it is asked for: itself, or how long before the request is answered. */
export type Moment = Ns | { readonly beforeNowNs: Ns }

/** The instant that is meant. What lies before all that can be stored is the earliest that can. */
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
 * Reads `now`, `now-15m`, `-1h30m` (of ms, s, m, h, d, w), or what {@link parseInstant} reads. Only for what
 * looks: an erasure, a hold or a mute means the same instant whenever it is read.
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

/** An instant in a body or query string, read to nanoseconds. */
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

/** An instant, or a time before the request is answered, in a body or query string. */
export const MomentInput = z
  .string()
  .transform((text, context): Moment => {
    const read = parseMoment(text)
    if ('moment' in read) return read.moment
    const [type, message] = problems[read.problem]
    return refuse(context, type, read.problem === 'syntax' ? momentSyntax : message, { error: read.problem })
  })
  .meta({ examples: ['2026-11-21T09:30:00Z', '-1h', 'now-15m', 'now'] })

/** What descriptions of such a parameter say of it. */
export const momentForms = 'An RFC 3339 date-time, `now`, or a time before now: `-1h`, `now-15m`, `-1d12h`.'
