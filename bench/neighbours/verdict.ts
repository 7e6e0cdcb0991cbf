// From samples to a verdict: what the honest organisation saw while nothing happened and while it was
// attacked, and which of the bars that missed. Nothing here measures.

import { quantile } from '../storage/bench-store.ts'
import { type Door, doors, ownErasure, type Sample } from './honest.ts'

export interface Latency {
  readonly count: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

type Latencies = Readonly<Record<Door, Latency>>

/** One attack as it was measured. */
export interface Outcome {
  readonly attack: string
  readonly calm: Latencies
  readonly attacked: Latencies
  /**
   * Of the honest organisation, from the begin of the attack's preparation until the end: how often, by
   * status.
   */
  readonly refusals: Readonly<Record<string, number>>
  readonly peakMb: number
  readonly deaths: number
  /** From the end of the attack until charts are as quick as they may be; null where they never were. */
  readonly recoverySeconds: number | null
}

/** Half a second is what a person doesn't mind, whatever it was before. */
const floorMs = 500
const timesCalm = 2
const memoryBarMb = 2500
const recoveryBarSeconds = 5

/** The slowest that a door may be, by what it was. */
export function barMs(calmP99Ms: number | null): number {
  return Math.max(floorMs, timesCalm * (calmP99Ms ?? 0))
}

/** Latencies of what was sent from one instant until another. What was refused has none. */
export function latenciesBetween(samples: readonly Sample[], fromMs: number, untilMs: number): Latencies {
  const inside = samples.filter(
    ({ sentMs, refusal }) => sentMs >= fromMs && sentMs < untilMs && refusal === null,
  )
  return Object.fromEntries(
    doors.map((door) => [
      door,
      latencyOf(inside.filter((sample) => sample.door === door).map(({ ms }) => ms)),
    ]),
  ) as Record<Door, Latency>
}

export function latencyOf(samples: readonly number[]): Latency {
  const at = (q: number) => (samples.length === 0 ? null : Math.round(quantile(samples, q)))
  return { count: samples.length, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Refusals by door and status, without those that the organisation's own erasure explains. */
export function refusalsSince(samples: readonly Sample[], fromMs: number): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { door, sentMs, refusal } of samples) {
    if (sentMs < fromMs || refusal === null || refusal === ownErasure) continue
    const what = `${door} ${refusal}`
    counts[what] = (counts[what] ?? 0) + 1
  }
  return counts
}

/**
 * When charts were well again: the instant since which so many in a row were answered within the bar. Null
 * where there is none so far.
 */
export function wellSinceMs(charts: readonly Sample[], bar: number, inARow: number): number | null {
  const lastBad = charts.findLastIndex(({ ms, refusal }) => refusal !== null || ms > bar)
  const good = charts.slice(lastBad + 1)
  return good.length < inARow ? null : (good[0]?.sentMs ?? null)
}

/** Every bar that was missed, in words; empty where all hold. */
export function missedBars(outcome: Outcome): string[] {
  const missed = doors.flatMap((door) => {
    const [{ p99Ms: calm }, { p99Ms }] = [outcome.calm[door], outcome.attacked[door]]
    // A chart that nobody answered is no quick one.
    if (p99Ms === null) return calm === null ? [] : [`${door}: no answer`]
    return p99Ms > barMs(calm) ? [`${door} ${seconds(p99Ms)}`] : []
  })
  const refused = Object.values(outcome.refusals).reduce((sum, times) => sum + times, 0)
  if (refused > 0) missed.push(`${refused} refused`)
  if (outcome.peakMb > memoryBarMb) missed.push(`${outcome.peakMb} MB`)
  if (outcome.recoverySeconds === null) missed.push('no recovery')
  else if (outcome.recoverySeconds > recoveryBarSeconds) missed.push(`recovery ${outcome.recoverySeconds} s`)
  if (outcome.deaths > 0) missed.push('died')
  return missed
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
