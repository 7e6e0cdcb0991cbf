// Suggests window, schedule and method for a metric, from its last week. The width of buckets matters most:
// the narrowest in which data is dense. Finer buckets have gaps, and wider ones hide incidents and delay
// alarms. Then methods are tried on the past, by the code that will run: the first that judges and keeps to
// its alarm budget is proposed, and the reasons say what was seen of each.

import type { MethodKey } from '../../contract/detection/methods.ts'
import type { DetectorSuggestion } from '../../contract/detection/suggestion.ts'
import { nsPerMinute } from '../../contract/values/instant.ts'
import type { Clock } from '../core/clock.ts'
import { eventSeriesOf } from '../series/event-series.ts'
import { readSeries, type SeriesSet } from '../series/series.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { groupBytesMax } from './anomalies/findings.ts'
import { type DetectorDefinition, readDraft } from './detectors/detector.ts'
import { backtest } from './runs/backtest.ts'
import { densestWidth, fewestEvents } from './runs/bucket-width.ts'
import type { Evaluations } from './runs/evaluation-pool.ts'
import { at } from './scoring/series.ts'

const lookbackDays = 7
const minutesPerDay = 1440
const rhythmic = 0.4
const limits = { maxSeconds: 10, maxMemoryBytes: 1024 * 1024 * 1024 }
/** The past on which a method is tried; what it learns from lies before that. */
const triedDays = 2
/** In a short time a budget is exceeded by chance: this many alarms are no sign of a wrong one. */
const chanceAlarms = 2

/** Windows that give these bucket widths. What a method learns from lies before the window. */
const plans = [
  { stepMinutes: 1, window_minutes: 1440 },
  { stepMinutes: 5, window_minutes: 5760 },
  { stepMinutes: 15, window_minutes: 21_600 },
  { stepMinutes: 60, window_minutes: 60_480 },
] as const

interface SuggestionSubject {
  readonly metric_key: string
  readonly service?: string | undefined
  readonly group_by?: string | undefined
}

/** What a method did over some past time. */
export interface Trial {
  /** Buckets with a score, of all series. */
  readonly judged: number
  readonly alarms: number
  /** Alarms that the budget allows in that time for all series. */
  readonly allowed: number
  readonly days: number
}

/** Tries a definition on the past. */
type TryOut = (definition: DetectorDefinition) => Promise<Trial>

/** Proposes a detector for a metric of an organisation. */
export async function suggest(
  reader: TenantReader,
  subject: SuggestionSubject,
  { clock, evaluations }: { readonly clock: Clock; readonly evaluations?: Evaluations },
): Promise<DetectorSuggestion> {
  const endNs = (clock.nowNs() / nsPerMinute) * nsPerMinute
  const set = await readSeries(
    reader,
    {
      metricKey: subject.metric_key,
      service: subject.service,
      groupBy: subject.group_by,
      startNs: endNs - BigInt(lookbackDays * minutesPerDay) * nsPerMinute,
      endNs,
      stepSeconds: 60,
      maxGroups: 1,
      groupBytesMax,
    },
    limits,
  )
  const range = { startNs: endNs - BigInt(triedDays * minutesPerDay) * nsPerMinute, endNs }
  return proposeFor(subject, set, async (definition) => {
    const options = evaluations === undefined ? { clock } : { clock, evaluations }
    const { alarms, range_end, range_start, series } = await backtest(reader, definition, range, options)
    const days = (Date.parse(range_end) - Date.parse(range_start)) / 86_400_000
    return trialOf(definition, {
      judged: series.reduce(
        (sum, { points }) => sum + points.reduce((count, { score }) => count + (score === null ? 0 : 1), 0),
        0,
      ),
      alarms,
      seriesCount: Math.max(1, series.length),
      days,
    })
  })
}

/** A trial, with what the budget of the definition allows in its time. */
export function trialOf(
  { params }: DetectorDefinition,
  seen: Pick<Trial, 'judged' | 'alarms' | 'days'> & { readonly seriesCount: number },
): Trial {
  const budget = typeof params.alarm_budget_per_week === 'number' ? params.alarm_budget_per_week : 1
  const { alarms, days, judged, seriesCount } = seen
  return { judged, alarms, days, allowed: (budget * days * seriesCount) / 7 }
}

/**
 * Proposes a detector from minutes of its series (one group at most). `params` are merged into those of each
 * method that is tried.
 */
export async function proposeFor(
  subject: SuggestionSubject,
  set: Pick<SeriesSet, 'groups' | 'unknown'>,
  tryOut: TryOut,
  params: Readonly<Record<string, unknown>> = {},
): Promise<DetectorSuggestion> {
  const [{ values: minutes, volume } = { values: new Float64Array(0), volume: new Float64Array(0) }] =
    set.groups
  const filled = plans.map(({ stepMinutes }) => ({
    step_minutes: stepMinutes,
    share: round(filledShare(minutes, set.unknown, stepMinutes)),
  }))
  const least = eventSeriesOf(subject.metric_key) === undefined ? 1 : fewestEvents
  const widths = plans.map(({ stepMinutes }) => stepMinutes)
  const isEmpty = !volume.some((events) => events > 0)
  const width = isEmpty ? undefined : densestWidth([{ volume, stepMinutes: 1 }], widths, least)
  const plan = plans.find(({ stepMinutes }) => stepMinutes === width) ?? plans[3]
  const rhythm = dailyRhythm(minutes)
  const isRhythmic = rhythm !== null && rhythm >= rhythmic
  const candidates = candidatesFor(subject, isRhythmic).map((key) => draftOf(subject, key, plan, params))
  const { chosen, reasons } = isEmpty ? untried(candidates) : await firstThatWorks(candidates, tryOut)
  const { enabled: _, ...detector } = chosen
  return {
    detector: { ...detector, params: { ...detector.params } },
    step_minutes: plan.stepMinutes,
    filled,
    daily_rhythm: rhythm === null ? null : round(rhythm),
    reasons: [...(isEmpty ? [] : [widthReason(plan.stepMinutes, filled, least)]), ...reasons],
  }
}

/**
 * In the order in which they are tried. Only more errors and slower requests do harm, and `auto` has no side;
 * so for these a band comes first.
 */
function candidatesFor({ metric_key }: SuggestionSubject, isRhythmic: boolean): MethodKey[] {
  const bands: MethodKey[] = isRhythmic ? ['seasonal_band', 'robust_band'] : ['robust_band']
  return Object.keys(paramsFor(metric_key)).length > 0 ? [...bands, 'auto'] : ['auto', ...bands]
}

function draftOf(
  subject: SuggestionSubject,
  key: MethodKey,
  plan: (typeof plans)[number],
  params: Readonly<Record<string, unknown>>,
): DetectorDefinition {
  const read = readDraft({
    name: nameOf(subject),
    metric_key: subject.metric_key,
    method_key: key,
    params: { ...(key === 'auto' ? volumeOf(subject.metric_key) : paramsFor(subject.metric_key)), ...params },
    scope: {
      ...(subject.service === undefined ? {} : { service: subject.service }),
      ...(subject.group_by === undefined ? {} : { group_by: subject.group_by }),
    },
    window_minutes: plan.window_minutes,
    schedule_minutes: plan.stepMinutes,
  })
  if ('problems' in read) throw new Error(`A suggestion is invalid: ${JSON.stringify(read.problems)}`)
  return read.value
}

interface Choice {
  readonly chosen: DetectorDefinition
  readonly reasons: readonly string[]
}

/** The first candidate whose trial judged something and kept to its budget; else the closest one. */
async function firstThatWorks(candidates: readonly DetectorDefinition[], tryOut: TryOut): Promise<Choice> {
  const reasons: string[] = []
  let best: { readonly definition: DetectorDefinition; readonly trial: Trial } | null = null
  for (const definition of candidates) {
    const trial = await tryOut(definition)
    const isWithin = trial.alarms <= trial.allowed + chanceAlarms
    reasons.push(trialReason(definition, trial, isWithin))
    if (trial.judged > 0 && isWithin) return { chosen: definition, reasons }
    const isBetter = best === null || excessOf(trial) < excessOf(best.trial)
    if (isBetter) best = { definition, trial }
  }
  const [first] = candidates
  const chosen = best?.definition ?? first
  if (chosen === undefined) throw new Error('There is no candidate to propose')
  return {
    chosen,
    reasons: [...reasons, 'None of them is shown to work yet; preview the detector once there is more data.'],
  }
}

/** Methods that judged nothing come last. */
function excessOf({ alarms, allowed, judged }: Trial): number {
  return judged === 0 ? Number.POSITIVE_INFINITY : alarms - allowed
}

function untried([first]: readonly DetectorDefinition[]): Choice {
  if (first === undefined) throw new Error('There is no candidate to propose')
  return { chosen: first, reasons: ['There was no data in the last seven days.'] }
}

function trialReason({ method_key }: DetectorDefinition, trial: Trial, isWithin: boolean): string {
  const days = `${trial.days < 10 ? trial.days.toFixed(1) : Math.round(trial.days)} days`
  if (trial.judged === 0) return `${method_key} would have judged nothing in the last ${days}.`
  const alarms = `${trial.alarms} ${trial.alarms === 1 ? 'alarm' : 'alarms'}`
  const kept = isWithin ? 'as its budget allows' : 'more than its budget allows'
  return `${method_key} would have judged ${trial.judged} buckets of the last ${days}, with ${alarms}: ${kept}.`
}

function widthReason(width: number, filled: DetectorSuggestion['filled'], least: number): string {
  const share = Math.round((filled.find((one) => one.step_minutes === width)?.share ?? 0) * 100)
  const enough = least > 1 ? ` with ${least} events or more` : ' with data'
  return width === 1
    ? `Minutes are dense: ${share} % of them have data.`
    : `Buckets of ${width} minutes are the narrowest that are dense${enough} while data arrives; ${share} % of all have data.`
}

/**
 * Only more errors and slower requests do harm, so these alarm upwards. With too few
 * events there is no percentile.
 */
function paramsFor(metricKey: string): Record<string, unknown> {
  if (metricKey === 'spans.error_ratio') return { direction: 'up', min_abs_dev: 0.05, min_volume: 20 }
  if (metricKey.startsWith('spans.latency_')) return { direction: 'up', min_rel_dev: 0.5, min_volume: 20 }
  return metricKey === 'logs.error_count' ? { direction: 'up', min_rel_dev: 1 } : {}
}

/** The part of it that has a meaning without a band. */
function volumeOf(metricKey: string): Record<string, unknown> {
  const { min_volume } = paramsFor(metricKey)
  return min_volume === undefined ? {} : { min_volume }
}

function nameOf({ group_by, metric_key, service }: SuggestionSubject): string {
  const of = service === undefined ? '' : ` of ${service}`
  return `${metric_key}${of}${group_by === undefined ? '' : ` by ${group_by}`}`.slice(0, 200)
}

/**
 * Share of buckets with data, of those since the first with data that are not erased; 0 where there is none.
 */
function filledShare(minutes: Float64Array, unknown: Uint8Array, stepMinutes: number): number {
  const first = minutes.findIndex((value) => !Number.isNaN(value))
  if (first < 0) return 0
  let [known, full] = [0, 0]
  for (let i = first; i + stepMinutes <= minutes.length; i += stepMinutes) {
    if (unknown.subarray(i, i + stepMinutes).includes(1)) continue
    known++
    if (minutes.subarray(i, i + stepMinutes).some((value) => !Number.isNaN(value))) full++
  }
  return known === 0 ? 0 : full / known
}

/** Correlation of hourly means with those of the day before; null with fewer than two days of pairs. */
function dailyRhythm(minutes: Float64Array): number | null {
  const hours: number[] = []
  for (let i = 0; i + 60 <= minutes.length; i += 60) hours.push(meanOf(minutes.subarray(i, i + 60)))
  const pairs = hours
    .map((value, i) => [value, hours[i - 24] ?? Number.NaN] as const)
    .filter(([a, b]) => !Number.isNaN(a) && !Number.isNaN(b))
  if (pairs.length < 48) return null
  const [meanA, meanB] = [0, 1].map(
    (side) => pairs.reduce((sum, pair) => sum + (pair[side] ?? 0), 0) / pairs.length,
  )
  let [both, ofA, ofB] = [0, 0, 0]
  for (const [a, b] of pairs) {
    const [x, y] = [a - (meanA ?? 0), b - (meanB ?? 0)]
    both += x * y
    ofA += x * x
    ofB += y * y
  }
  const correlation = both / Math.sqrt(ofA * ofB)
  return Number.isFinite(correlation) ? correlation : 0
}

function meanOf(values: Float64Array): number {
  let [sum, count] = [0, 0]
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(at(values, i))) continue
    sum += at(values, i)
    count++
  }
  return count === 0 ? Number.NaN : sum / count
}

function round(share: number): number {
  return Math.round(share * 1000) / 1000
}
