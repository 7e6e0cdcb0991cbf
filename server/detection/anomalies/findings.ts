// From an evaluation of buckets to findings about time: what may become an anomaly on record. Time that was erased is
// not only unknown to the methods, it also must not lie inside an anomaly: an incident that goes on across a hole is
// cut there, into one finding before and one after, each with a peak of its own. Otherwise the record would claim to
// have seen what an erasure promises nobody can know, and the next verification would find it.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { type Ns, nsPerMinute } from '../../../contract/instant.ts'
import { type Evaluation, type Incident, sideOf } from '../alarms/alarm.ts'
import { holidayTest } from '../scoring/holidays.ts'
import { localClock } from '../scoring/local-clock.ts'
import { at, bucketStartNs, type Series } from '../scoring/series.ts'
import { noWidening, type Widening } from './feedback.ts'
import { isMutedThroughout, type MuteRule } from './mute.ts'
import { type ReasonSubject, reasonFor } from './reason.ts'

export interface Finding {
  /** JSON of what `group_by` told apart: `{"service":"checkout"}`, or `{}`. */
  readonly groupKey: string
  readonly startedNs: Ns
  /** End of the last violating bucket: `[startedNs, seenUntilNs)` is all this finding was read from. */
  readonly seenUntilNs: Ns
  /** End of the bucket at which the alarm was raised. */
  readonly raisedNs: Ns
  readonly isOpen: boolean
  readonly peakNs: Ns
  /** At the peak; null for silence. */
  readonly value: number | null
  readonly expected: number | null
  readonly lower: number | null
  readonly upper: number | null
  readonly score: number
  readonly reason: string
  /** Every bucket since the alarm was raised lies in a mute. */
  readonly isMuted: boolean
  /** How many times wider than its own the edge on the side of the peak was, by feedback; 1 where it was not. */
  readonly edgeFactor: number
  /** What that feedback was derived from, beside the window. */
  readonly alsoRead: Widening['learntFrom']
}

interface Evaluated {
  readonly series: Series
  readonly evaluation: Evaluation
  readonly params: MethodParams
  readonly groupKey: string
  readonly subject: ReasonSubject
  readonly widening?: Widening | undefined
  readonly mutes?: readonly MuteRule[]
}

/** In order of time; none overlaps another or an unknown bucket. */
export function findingsOf(evaluated: Evaluated): Finding[] {
  const firstNegative = evaluated.series.values.findIndex((value) => value < 0)
  // Up to the peak only: nothing of a finding may come from time after it, or an erasure there would have to know.
  const isNeverNegative = (incident: Incident) => firstNegative < 0 || firstNegative > incident.peakIndex
  const isLearnt = learns(evaluated.params)
  return evaluated.evaluation.incidents
    .flatMap((incident) => cutAtUnknown(incident, evaluated))
    .map((incident) => (isLearnt && isNeverNegative(incident) ? withoutNegativeBand(incident) : incident))
    .map((incident) => findingOf(incident, evaluated))
}

/** Whether the band is learnt from the history of the series; otherwise somebody set it. */
export function learns(params: MethodParams): boolean {
  return 'warmup_points' in params
}

/** A band is symmetric, a rate is not: nobody should read that fewer than zero errors were expected. */
function withoutNegativeBand(incident: Incident): Incident {
  const atLeastZero = (edge: number | null) => (edge === null ? null : Math.max(0, edge))
  return { ...incident, lower: atLeastZero(incident.lower), upper: atLeastZero(incident.upper) }
}

function findingOf(incident: Incident, evaluated: Evaluated): Finding {
  const { groupKey, mutes = [], series, subject, widening = noWidening } = evaluated
  const seenUntilNs = bucketStartNs(series, incident.lastIndex + 1)
  const raisedNs = bucketStartNs(series, incident.openedIndex + 1)
  const stepNs = BigInt(series.stepMinutes) * nsPerMinute
  const edgeFactor =
    incident.kind === 'silent' ? 1 : incident.kind === 'low' ? widening.below : widening.above
  return {
    groupKey,
    startedNs: bucketStartNs(series, incident.startIndex),
    seenUntilNs,
    raisedNs,
    isMuted: isMutedThroughout(mutes, raisedNs, seenUntilNs, stepNs),
    edgeFactor,
    alsoRead: widening.learntFrom,
    isOpen: incident.endIndex === null,
    peakNs: bucketStartNs(series, incident.peakIndex),
    value: incident.peakValue,
    expected: incident.expected,
    lower: incident.lower,
    upper: incident.upper,
    score: incident.score,
    reason: reasonFor(incident, { ...subject, ...seasonOf(evaluated, incident), edgeFactor }, series),
  }
}

/** Whether what was expected followed the clock, and which kind of day it was. */
function seasonOf({ params, series }: Evaluated, { peakIndex }: Incident) {
  if (!('season' in params)) return {}
  const { day } = localClock(series, params.timezone)(peakIndex)
  return { isSeasonal: true, isHoliday: holidayTest(params.holidays)(day) }
}

/** The incident itself where no bucket of it is unknown; otherwise a part for each stretch that still violates. */
function cutAtUnknown(incident: Incident, evaluated: Evaluated): Incident[] {
  const { unknown } = evaluated.series
  if (!unknown.subarray(incident.startIndex, incident.lastIndex + 1).includes(1)) return [incident]
  const stretches: number[][] = []
  let isAfterHole = true
  for (let i = incident.startIndex; i <= incident.lastIndex; i++) {
    if (unknown[i] === 1) isAfterHole = true
    else if (violationAt(evaluated, i) !== null) {
      if (isAfterHole) stretches.push([])
      stretches.at(-1)?.push(i)
      isAfterHole = false
    }
  }
  return stretches.map((violating) => partOf(incident, violating, evaluated))
}

function partOf(incident: Incident, violating: readonly number[], evaluated: Evaluated): Incident {
  const first = violating[0] ?? incident.startIndex
  const last = violating.at(-1) ?? first
  const span = {
    startIndex: first,
    lastIndex: last,
    openedIndex: Math.max(first, Math.min(last, incident.openedIndex)),
    endIndex: last === incident.lastIndex ? incident.endIndex : last,
  }
  if (incident.peakIndex >= first && incident.peakIndex <= last) return { ...incident, ...span }
  return { ...incident, ...span, ...peakOf(violating, evaluated) }
}

function peakOf(violating: readonly number[], evaluated: Evaluated) {
  const { score, expected, lower, upper } = evaluated.evaluation.scores
  const scoreAt = (i: number) => (Number.isNaN(at(score, i)) ? 1 : at(score, i))
  const peakIndex = violating.reduce((worst, i) => (scoreAt(i) > scoreAt(worst) ? i : worst))
  const value = valueAt(evaluated, peakIndex)
  return {
    kind: violationAt(evaluated, peakIndex) ?? 'odd',
    peakIndex,
    peakValue: finiteOrNull(value),
    expected: finiteOrNull(at(expected, peakIndex)),
    lower: finiteOrNull(at(lower, peakIndex)),
    upper: finiteOrNull(at(upper, peakIndex)),
    score: scoreAt(peakIndex),
  }
}

/** The alarm layer's own judgement, read back from the edges it left. */
function violationAt(evaluated: Evaluated, i: number): Incident['kind'] | null {
  const { params, evaluation } = evaluated
  const direction = 'direction' in params ? params.direction : 'both'
  const value = valueAt(evaluated, i)
  if (Number.isNaN(value)) return params.missing === 'alert' ? 'silent' : null
  const { expected, lower, score, upper } = evaluation.scores
  if (Number.isNaN(at(upper, i))) return at(score, i) > 1 ? sideOf(value, at(expected, i)) : null
  if (direction !== 'down' && value > at(upper, i)) return 'high'
  return direction !== 'up' && value < at(lower, i) ? 'low' : null
}

function valueAt({ series, params }: Evaluated, i: number): number {
  const value = at(series.values, i)
  return Number.isNaN(value) && params.missing === 'zero' ? 0 : value
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
