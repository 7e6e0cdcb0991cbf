// Compares the samples of the honest organisation without and with the attack, and returns which bars were
// missed. Nothing here measures.

import { quantile } from '../samples.ts'
import { type Activity, activities, ownErasure, type Sample } from './honest.ts'

interface Latency {
  readonly count: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

type Latencies = Readonly<Record<Activity, Latency>>

/** The measurements of one attack. */
export interface AttackEffect {
  readonly attack: string
  readonly calm: Latencies
  readonly attacked: Latencies
  /**
   * Refusals of the honest organisation by status, from the start of the attack's preparation until the end.
   */
  readonly refusals: Readonly<Record<string, number>>
  readonly peakMb: number
  readonly hasDied: boolean
  /** From the end of the attack until charts are quick again; null where they never were. */
  readonly recoverySeconds: number | null
}

/** Half a second is acceptable for people, whatever the calm value was. */
const floorMs = 500
const timesCalm = 2
const memoryBarMb = 2500
const recoveryBarSeconds = 5

/** The maximum latency of an activity, given its calm value. */
export function barMs(calmP99Ms: number | null): number {
  return Math.max(floorMs, timesCalm * (calmP99Ms ?? 0))
}

/** Latencies of requests sent in a half-open time. Refused requests have none. */
export function latenciesBetween(samples: readonly Sample[], fromMs: number, untilMs: number): Latencies {
  const inside = samples.filter(
    ({ sentMs, refusal }) => sentMs >= fromMs && sentMs < untilMs && refusal === null,
  )
  return Object.fromEntries(
    activities.map((activity) => [
      activity,
      latencyOf(inside.filter((sample) => sample.activity === activity).map(({ ms }) => ms)),
    ]),
  ) as Record<Activity, Latency>
}

export function latencyOf(samples: readonly number[]): Latency {
  const at = (q: number) => (samples.length === 0 ? null : Math.round(quantile(samples, q)))
  return { count: samples.length, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Refusals by activity and status, without those that the organisation's own erasure causes. */
export function refusalsSince(samples: readonly Sample[], fromMs: number): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { activity, sentMs, refusal } of samples) {
    if (sentMs < fromMs || refusal === null || refusal === ownErasure) continue
    const what = `${activity} ${refusal}`
    counts[what] = (counts[what] ?? 0) + 1
  }
  return counts
}

/**
 * When charts had recovered: the time since which `inARow` charts in a row were within the bar. Null where
 * there is none so far.
 */
export function recoveredSinceMs(charts: readonly Sample[], bar: number, inARow: number): number | null {
  const lastBad = charts.findLastIndex(({ ms, refusal }) => refusal !== null || ms > bar)
  const good = charts.slice(lastBad + 1)
  return good.length < inARow ? null : (good[0]?.sentMs ?? null)
}

/** Every missed bar as text; empty where all are met. */
export function missedBars(effect: AttackEffect): string[] {
  const missed = activities.flatMap((activity) => {
    const [{ p99Ms: calm }, { p99Ms }] = [effect.calm[activity], effect.attacked[activity]]
    // A chart without a response is not a quick one.
    if (p99Ms === null) return calm === null ? [] : [`${activity}: no response`]
    return p99Ms > barMs(calm) ? [`${activity} ${seconds(p99Ms)}`] : []
  })
  const refused = Object.values(effect.refusals).reduce((sum, times) => sum + times, 0)
  if (refused > 0) missed.push(`${refused} refused`)
  if (effect.peakMb > memoryBarMb) missed.push(`${effect.peakMb} MB`)
  if (effect.recoverySeconds === null) missed.push('no recovery')
  else if (effect.recoverySeconds > recoveryBarSeconds) missed.push(`recovery ${effect.recoverySeconds} s`)
  if (effect.hasDied) missed.push('died')
  return missed
}

/**
 * Returns the trial whose worst latency, compared with its bar, is in the middle. Of refusals, memory and
 * deaths it has those of all trials, because none of them is noise of the machine.
 *
 * @param trials of the same attack; an odd number of them
 */
export function middleTrial<T extends AttackEffect>(trials: readonly T[]): T {
  const shares = trials.map((trial) => ({ trial, worst: worstShare(trial) }))
  // Two endless ones are equal.
  shares.sort((a, b) => (a.worst === b.worst ? 0 : a.worst - b.worst))
  const middle = shares[(shares.length - 1) / 2]?.trial
  if (middle === undefined) throw new Error(`There is no middle of ${trials.length} trials.`)
  const refusals: Record<string, number> = {}
  for (const [what, times] of trials.flatMap((trial) => Object.entries(trial.refusals))) {
    refusals[what] = (refusals[what] ?? 0) + times
  }
  return {
    ...middle,
    refusals,
    peakMb: Math.max(...trials.map(({ peakMb }) => peakMb)),
    hasDied: trials.some(({ hasDied }) => hasDied),
  }
}

/** The largest share of a bar that a latency or the recovery reached. */
function worstShare({ attacked, calm, recoverySeconds }: AttackEffect): number {
  const latencies = activities.map((activity) => {
    const { p99Ms } = attacked[activity]
    if (p99Ms !== null) return p99Ms / barMs(calm[activity].p99Ms)
    return calm[activity].p99Ms === null ? 0 : Number.POSITIVE_INFINITY
  })
  return Math.max(...latencies, (recoverySeconds ?? Number.POSITIVE_INFINITY) / recoveryBarSeconds)
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
