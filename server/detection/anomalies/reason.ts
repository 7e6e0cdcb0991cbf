// One sentence that says why an episode was raised, so that the person who is alarmed knows what, where, how
// far and since when, without opening a chart: "requests/s of checkout 12.0, expected 310 to 420; 7 minutes
// low since 14:03 UTC". It states only what was measured: the value of the worst bucket, the edges it crossed
// there, and the time from the first violating bucket to the last; for a standstill, the value. Guesses at
// causes do not belong here.

import { shortText } from '../../core/shortened.ts'
import type { Episode } from '../alarms/episode.ts'
import { summarisePeers } from '../scoring/peers.ts'
import type { Series } from '../scoring/series.ts'
import { at, bucketStartNs } from '../scoring/series.ts'
import { standsStillAt } from '../scoring/standstill.ts'
import { comparisonText, sideOfComparison } from './comparison-text.ts'
import { factorText } from './feedback.ts'
import { formatCount, formatMinutes, formatQuantity } from './format.ts'

export interface ReasonSubject {
  /** A readable name: `requests/s`, `http.server.duration p95`. */
  readonly metricName: string
  /** A UCUM unit as OpenTelemetry sends it (`ms`, `By`, `%`, `{request}`), or empty. */
  readonly unit: string
  /** Which series of the metric (`checkout`, `host=a7`), or empty for the only one. */
  readonly scope: string
  /** Whether the expected value depends on the time of the day or the week. */
  readonly isSeasonal?: boolean
  /** Whether the peak is on a day that was judged as a holiday. */
  readonly isHoliday?: boolean
  /**
   * What the events behind the values are, where they are counted: `requests failed` for a share, or
   * `requests`.
   */
  readonly events?: { readonly noun: string; readonly isShare: boolean }
  /**
   * The series that it was compared with in the same bucket; empty or absent where it was
   * compared with its own past.
   */
  readonly peers?: readonly Series[]
  /** The factor by which feedback widened the crossed edge. */
  readonly edgeFactor?: number
}

/** Characters of a scope: a reason is read as one sentence, and the anomaly has its labels beside it. */
const scopeMax = 200

/** The sentence, in English, without a full stop so that it can be used as a title. Times are UTC. */
export function reasonFor(episode: Episode, subject: ReasonSubject, series: Series): string {
  const scope = shortText(subject.scope, scopeMax)
  const name = scope === '' ? subject.metricName : `${subject.metricName} of ${scope}`
  const lasted = formatMinutes((episode.lastIndex - episode.startIndex + 1) * series.stepMinutes)
  const span = spanOf(episode, series)
  const season = seasonAt(episode, subject, series)
  const edges = expectationOf(episode, subject.unit)
  const own = edges === '' ? comparedAt(episode, subject, series) : `${edges}${season}`
  const expectation = peersAt(episode, subject) || own
  if (episode.peakValue === null) return `${name}: no data for ${lasted} ${span}${expectation}`
  const standstill = standstillAt(episode, subject, series)
  if (standstill !== null)
    return `${name} ${standstill}${expectation}; ${lasted} unusual ${span}${widenedBy(subject)}`
  const value = `${formatQuantity(episode.peakValue, subject.unit)}${eventsAt(episode, subject, series)}`
  const side = (episode.compared && sideOfComparison(episode.compared)) ?? episode.kind
  const how = side === 'odd' ? 'unusual' : side
  return `${name} ${value}${expectation}; ${lasted} ${how} ${span}${widenedBy(subject)}`
}

/**
 * `stopped changing at 42.0` where a standstill raised the alarm; else null. Without a time: the standstill
 * began before the episode.
 */
function standstillAt(episode: Episode, { unit }: ReasonSubject, series: Series): string | null {
  const hasEdges = episode.lower !== null || episode.upper !== null
  if (hasEdges || !standsStillAt(series, episode.openedIndex)) return null
  return `stopped changing at ${formatQuantity(at(series.values, episode.openedIndex), unit)}`
}

/** The readable name of a built-in metric, and what its events are. Other metrics keep their names. */
export function describeMetric(metricKey: string): Pick<ReasonSubject, 'metricName' | 'events'> {
  const latency = /^spans\.latency_(p\d+)$/.exec(metricKey)
  if (latency !== null) {
    return { metricName: `${latency[1]} latency`, events: { noun: 'requests', isShare: false } }
  }
  if (metricKey === 'spans.error_ratio') {
    return { metricName: 'error ratio', events: { noun: 'requests failed', isShare: true } }
  }
  return { metricName: builtInNames.get(metricKey) ?? metricKey }
}

const builtInNames = new Map([
  ['spans.rate', 'request rate'],
  ['logs.rate', 'log rate'],
  ['logs.error_count', 'error logs'],
  ['ingest.rate', 'ingest rate'],
])

/**
 * ` (6 of 10 requests failed)`: the number of events behind a ratio or a percentile;
 * empty where it is not known.
 */
function eventsAt({ peakIndex, peakValue }: Episode, { events }: ReasonSubject, series: Series): string {
  const volume = series.volumes?.[peakIndex] ?? Number.NaN
  if (events === undefined || peakValue === null || !(volume >= 1)) return ''
  const all = formatCount(volume)
  return events.isShare
    ? ` (${formatCount(peakValue * volume)} of ${all} ${events.noun})`
    : ` over ${all} ${all === '1' ? events.noun.replace(/s$/, '') : events.noun}`
}

/**
 * `; its 11 peers 280 ms to 340 ms`: the range of the peers at the peak. Peers outside
 * the band are only counted.
 */
function peersAt(episode: Episode, { peers = [], unit }: ReasonSubject): string {
  const { count, within, lowest, highest } = summarisePeers(peers, episode.peakIndex, episode)
  if (count === 0) return ''
  const who = within === count || within === 0 ? `its ${count} peers` : `${within} of its ${count} peers`
  const range = lowest === highest ? '' : ` to ${formatQuantity(highest, unit)}`
  return `; ${who} ${formatQuantity(lowest, unit)}${range}`
}

const weekdayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/**
 * ` for a Friday 14:00`, or ` for a holiday, Friday 14:00`; empty where the time of the week does not matter.
 */
function seasonAt({ peakIndex }: Episode, subject: ReasonSubject, series: Series): string {
  if (subject.isSeasonal !== true) return ''
  return ` for a ${subject.isHoliday === true ? 'holiday, ' : ''}${weekTime(bucketStartNs(series, peakIndex))}`
}

/** `Tuesday 14:00`, in UTC like all times here. */
function weekTime(ns: bigint): string {
  const day = weekdayNames[new Date(Number(ns / 1_000_000n)).getUTCDay()] ?? ''
  return `${day} ${instantParts(ns).time}`
}

function widenedBy({ edgeFactor = 1 }: ReasonSubject): string {
  return edgeFactor === 1 ? '' : `; beyond an edge that feedback made ${factorText(edgeFactor)} wider`
}

function expectationOf(episode: Episode, unit: string): string {
  const { lower, upper } = episode
  if (lower !== null && upper !== null) {
    return lower === upper
      ? `, expected ${formatQuantity(lower, unit)}`
      : `, expected ${formatQuantity(lower, unit)} to ${formatQuantity(upper, unit)}`
  }
  if (upper !== null) return `, expected at most ${formatQuantity(upper, unit)}`
  return lower === null ? '' : `, expected at least ${formatQuantity(lower, unit)}`
}

/** Of methods without a band: what the peak was compared with. */
function comparedAt(
  { compared, peakValue }: Episode,
  { unit }: ReasonSubject,
  { stepMinutes }: Series,
): string {
  if (compared === undefined || peakValue === null) return ''
  return comparisonText(compared, stepMinutes, (value) => formatQuantity(value, unit))
}

/** Dates are included only where the two instants are on different days. */
function spanOf(episode: Episode, series: Series): string {
  const start = instantParts(bucketStartNs(series, episode.startIndex))
  const end = instantParts(bucketStartNs(series, episode.lastIndex + 1))
  const isOneDay = start.day === end.day
  const from = isOneDay ? start.time : `${start.day} ${start.time}`
  if (episode.endIndex === null) return `since ${from} UTC`
  return `from ${from} to ${isOneDay ? end.time : `${end.day} ${end.time}`} UTC`
}

function instantParts(ns: bigint): { day: string; time: string } {
  const text = new Date(Number(ns / 1_000_000n)).toISOString()
  return { day: text.slice(0, 10), time: text.slice(11, 16) }
}
