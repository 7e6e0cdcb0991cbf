// Suggests window, schedule and method for a metric, from its last week. The bucket width matters most: the
// narrowest with which nearly all buckets have data. Finer buckets have gaps, and wider ones delay alarms.
// The daily rhythm decides the method.

import { methodKeys } from '../../contract/detection-methods.ts'
import type { DetectorSuggestion } from '../../contract/detection-suggestion.ts'
import { type Ns, nsPerMinute } from '../../contract/instant.ts'
import { readSeries } from '../series/series.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { readDraft } from './detectors/detector.ts'
import { at } from './scoring/series.ts'

const lookbackDays = 7
/** The share that OpenSearch uses when it proposes an interval. */
const wantedShare = 0.75
const rhythmic = 0.4
const limits = { maxSeconds: 10, maxMemoryBytes: 1024 * 1024 * 1024 }

/** Windows that give these bucket widths, long enough for a baseline. */
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

export async function suggest(
  reader: TenantReader,
  subject: SuggestionSubject,
  nowNs: Ns,
): Promise<DetectorSuggestion> {
  const endNs = (nowNs / nsPerMinute) * nsPerMinute
  const set = await readSeries(
    reader,
    {
      metricKey: subject.metric_key,
      service: subject.service,
      groupBy: subject.group_by,
      startNs: endNs - BigInt(lookbackDays * 1440) * nsPerMinute,
      endNs,
      stepSeconds: 60,
      maxGroups: 1,
    },
    limits,
  )
  const minutes = set.groups[0]?.values ?? new Float64Array(0)
  const filled = plans.map(({ stepMinutes }) => ({
    step_minutes: stepMinutes,
    share: round(filledShare(minutes, set.unknown, stepMinutes)),
  }))
  const index = filled.findIndex(({ share }) => share >= wantedShare)
  const plan = plans[index < 0 ? plans.length - 1 : index] ?? plans[0]
  const rhythm = dailyRhythm(minutes)
  const isRhythmic = rhythm !== null && rhythm >= rhythmic
  const seasonal = methodKeys.find((key) => String(key) === 'seasonal_band')
  const read = readDraft({
    name: nameOf(subject),
    metric_key: subject.metric_key,
    method_key: (isRhythmic ? seasonal : undefined) ?? 'robust_band',
    params: paramsFor(subject.metric_key),
    scope: {
      ...(subject.service === undefined ? {} : { service: subject.service }),
      ...(subject.group_by === undefined ? {} : { group_by: subject.group_by }),
    },
    window_minutes: plan.window_minutes,
    schedule_minutes: plan.stepMinutes,
  })
  if ('problems' in read) throw new Error(`A suggestion is invalid: ${JSON.stringify(read.problems)}`)
  const { enabled: _, ...detector } = read.value
  return {
    detector: { ...detector, params: { ...detector.params } },
    step_minutes: plan.stepMinutes,
    filled,
    daily_rhythm: rhythm === null ? null : round(rhythm),
    reasons: reasonsFor({ filled, index, isRhythmic, hasSeasonal: seasonal !== undefined, plan }),
  }
}

function reasonsFor(facts: {
  readonly filled: DetectorSuggestion['filled']
  readonly index: number
  readonly isRhythmic: boolean
  readonly hasSeasonal: boolean
  readonly plan: (typeof plans)[number]
}): string[] {
  const { filled, hasSeasonal, index, isRhythmic, plan } = facts
  if (filled.every(({ share }) => share === 0)) return ['There was no data in the last seven days.']
  const share = `${Math.round((filled.find((one) => one.step_minutes === plan.stepMinutes)?.share ?? 0) * 100)} %`
  return [
    index < 0
      ? `Data is sparse: only ${share} of hourly buckets have data.`
      : `${share} of buckets of ${plan.stepMinutes} minutes have data; narrower buckets have too many gaps.`,
    ...(isRhythmic && hasSeasonal ? ['It has a daily rhythm.'] : []),
    ...(isRhythmic && !hasSeasonal
      ? ['It has a daily rhythm; a band around the recent past follows it with a delay.']
      : []),
  ]
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
