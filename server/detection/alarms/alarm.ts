// The alarm layer all methods share: from scores to incidents somebody should hear of. Ranking buckets and raising
// alarms are different jobs; a method that ranks well drowns its users in alarms at a fixed cut, so methods only
// score, and this layer decides, in four steps.
//
// 1. Edges. The method's band is widened by the threshold that keeps the alarm budget (tail-calibration.ts) and to
//    the least deviations the user cares about. A value outside these edges violates. So the edges are the whole
//    truth: what a chart draws is what alarms. Methods without a budget are exact: their edges stay. A method that
//    draws no band is judged by its score alone, on the same scale; if it tells news apart, only news opens.
// 2. n of m. `violateN` of the last `windowM` judged buckets open an incident; `clearN` calm ones in a row close it.
// 3. Alert once. An incident is one anomaly however long it lasts; only its peak and its length are updated. After
//    it closes, the cool-down mutes what is not clearly worse.
//    While fewer than sixteen buckets were judged, nobody knows how far the scores of this series go: what is over by then is
//    not told, what lasts is told with its first violation from then on. It is learnt from as ever.
// 4. Silence is a violation under the policy "alert", once the series has had data. Buckets that are erased, thin
//    or merely missing are no testimony: they count neither for nor against and do not use up n of m.
//
//             n of m violate                  calm bucket
//    ok ------------------------> anomalous ---------------> recovering
//     ^ ^                             ^                        |    |
//     | '-- muted (same, but within   '------- violation ------'    |
//     |      the cool-down)                                         |
//     '------------------------- clearN calm buckets ---------------'
//
// It is a fold over the whole window without memory between runs: the same window gives the same incidents, and
// what was erased is out of the decision as well. Of an incident, open or muted, only the score that opened it is
// learnt: it is one alarm, and its length must not pass for what is usual. Feedback that something was no anomaly
// widens the edge on its side once more, after the budget has (feedback.ts).

import type { Scores } from '../methods/method.ts'
import { scoreOf } from '../methods/method.ts'
import { at } from '../scoring/series.ts'
import type { Evidence } from './evidence.ts'
import { bucketKind } from './evidence.ts'
import { fewestScores, type Side, TailCalibration } from './tail-calibration.ts'

/** After a cool-down has begun, only a peak this many times the last one is news. */
const clearlyWorse = 1.5

export interface AlarmPolicy {
  readonly direction: 'both' | 'up' | 'down'
  readonly minAbsDev: number
  readonly minRelDev: number
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  readonly cooldownBuckets: number
  readonly silenceAlarms: boolean
  /** Values needed before the first judgement; 0 for methods that learn nothing. */
  readonly warmupPoints: number
  /** Whether what is over before sixteen buckets were judged is not told: nobody knows yet how far scores go. */
  readonly waitsForScores: boolean
  /** Bearable alarms per bucket; null for exact methods, whose edges are never widened. */
  readonly budgetPerBucket: number | null
  /** The edge is never drawn further in than this many times the method's own; at most 1. */
  readonly leastThreshold: number
  /** Nor further out than this, as long as the budget is kept; Infinity where only the past can tell. */
  readonly mostThreshold: number
  /** Factors by which feedback widens each side; 1 where absent. */
  readonly widening?: Widened | undefined
}

interface Widened {
  readonly above: number
  readonly below: number
}

/** Indexes are buckets of the series. */
export interface Incident {
  /** At the peak: above or below what was expected, odd where nothing was, or no data at all. */
  readonly kind: 'high' | 'low' | 'odd' | 'silent'
  /** First of the violating buckets that opened it. */
  readonly startIndex: number
  /** The bucket after which the alarm was raised; `openedIndex - startIndex` is the delay. */
  readonly openedIndex: number
  /** The last violating bucket so far. */
  readonly lastIndex: number
  /** Equal to `lastIndex` once closed, null while open. */
  readonly endIndex: number | null
  readonly peakIndex: number
  /** Null for silence. */
  readonly peakValue: number | null
  /** What was expected at the peak; null for methods without an opinion, and before warm-up. */
  readonly expected: number | null
  /** Edges at the peak; null where the method has none. */
  readonly lower: number | null
  readonly upper: number | null
  /** At the peak; 1 is the edge of alarm, also for silence. */
  readonly score: number
}

/** What the last bucket leaves behind. */
export type DetectorState =
  /** Insufficient: at this rate of data the window never holds enough to judge, it needs to be longer or coarser. */
  | { readonly status: 'learning' | 'insufficient_data'; readonly pointsNeeded: number }
  /** So many more series of the group would have to have data at the same time. */
  | { readonly status: 'insufficient_data'; readonly peersNeeded: number }
  | { readonly status: 'ok' | 'anomalous' | 'recovering' | 'no_data' | 'muted' }

export interface Evaluation {
  /** In order of time; at most the last one is open. */
  readonly incidents: readonly Incident[]
  readonly state: DetectorState
  /** The scores as alarmed on: score 1 and the band are the edges of alarm. NaN in erased buckets. */
  readonly scores: Scores
}

/** Decides over a whole window, oldest bucket first. `scores` are a method's, row for row with the evidence. */
export function raiseAlarms(evidence: Evidence, scores: Scores, policy: AlarmPolicy): Evaluation {
  const edges = copyOf(scores)
  const budget = policy.budgetPerBucket
  const length = evidence.kinds.length
  const hasSides = policy.direction === 'both' && scores.upper.some((edge) => !Number.isNaN(edge))
  const tail =
    budget === null ? null : new TailCalibration({ ...policy, budgetPerBucket: budget }, length, hasSides)
  const episodes = new Episodes(policy)
  let hasHadValue = false
  let judged = 0
  const scoresNeeded = tail !== null && policy.waitsForScores ? fewestScores : 0
  for (let i = 0; i < length; i++) {
    const kind = evidence.kinds[i]
    const value = at(evidence.series.values, i)
    if (kind === bucketKind.value) hasHadValue = true
    if (kind === bucketKind.unknown) blankRow(edges, i)
    else if (tail) {
      widenRow(edges, i, value, tail, policy)
      if (policy.widening !== undefined) stretchRow(edges, i, value, policy.widening)
    }

    if (kind === bucketKind.missing && policy.silenceAlarms && hasHadValue) {
      episodes.judge(i, { kind: 'silent', value: null, score: 1 }, edges)
    } else if (!Number.isNaN(at(edges.score, i))) {
      if (++judged >= scoresNeeded) episodes.tell()
      const isCounted = !episodes.isAlarming
      episodes.judge(i, violationAt(edges, i, value, policy, episodes.isOpen), edges)
      const learnt = scores.news ? at(scores.news, i) : directedScore(scores, i, value, policy)
      if (isCounted) tail?.learn(learnt, episodes.isAlarming, sideFor(value, at(scores.expected, i)))
    } else if (kind !== bucketKind.unknown && !episodes.isAlarming) tail?.pass()
  }
  const state: DetectorState =
    episodes.isUntold && judged < scoresNeeded
      ? { status: 'learning', pointsNeeded: scoresNeeded - judged }
      : stateAfter(evidence, episodes, policy)
  return { incidents: episodes.incidents, state, scores: edges }
}

interface Violation {
  readonly kind: Incident['kind']
  readonly value: number | null
  readonly score: number
}

/** Gathers violations into incidents. Of those before {@link tell}, `incidents` has only silence and what lasts. */
class Episodes {
  readonly incidents: Incident[] = []
  readonly #policy: AlarmPolicy
  /** The violating ones of the last `windowM` judged buckets, with their ordinals among the judged. */
  #recent: { ordinal: number; index: number; violation: Violation }[] = []
  #judged = 0
  #open: Incident | null = null
  #isTelling = false
  #calm = 0
  #mutedUntil = -1
  #mutedBelow = 0
  isMuted = false

  constructor(policy: AlarmPolicy) {
    this.#policy = policy
  }

  get isOpen(): boolean {
    return this.#open !== null
  }

  get isUntold(): boolean {
    return this.#open !== null && this.incidents.at(-1) !== this.#open
  }

  get isRecovering(): boolean {
    return this.#open !== null && this.#calm > 0
  }

  get isAlarming(): boolean {
    return this.isOpen || this.isMuted
  }

  /** From the next judged bucket on, violations are told of. */
  tell(): void {
    this.#isTelling = true
  }

  /** Takes the next judged bucket: its violation, or null when calm. */
  judge(index: number, violation: Violation | null, edges: Scores): void {
    this.#judged++
    if (this.#open) this.#goOn(this.#open, index, violation, edges)
    else this.#watch(index, violation, edges)
  }

  #watch(index: number, violation: Violation | null, edges: Scores): void {
    if (violation) this.#recent.push({ ordinal: this.#judged, index, violation })
    const oldest = this.#judged - this.#policy.windowM
    if (this.#recent[0] && this.#recent[0].ordinal <= oldest) this.#recent.shift()
    this.isMuted = false
    const first = this.#recent[0]
    if (!first || this.#recent.length < this.#policy.violateN) return
    const worst = this.#recent.reduce((a, b) => (b.violation.score > a.violation.score ? b : a))
    if (index <= this.#mutedUntil && worst.violation.score < this.#mutedBelow) {
      this.isMuted = true
      return
    }
    const lastIndex = this.#recent.at(-1)?.index ?? index
    const span = { startIndex: first.index, openedIndex: index, lastIndex, endIndex: null }
    this.#write({ ...span, ...peakAt(worst.index, worst.violation, edges) }, this.#tells(violation))
    this.#calm = 0
  }

  #goOn(incident: Incident, index: number, violation: Violation | null, edges: Scores): void {
    if (violation) {
      this.#calm = 0
      const worse = violation.score > incident.score ? peakAt(index, violation, edges) : {}
      const isNews = this.isUntold && this.#tells(violation)
      const opened = isNews ? { openedIndex: index } : {}
      this.#write({ ...incident, ...worse, ...opened, lastIndex: index }, isNews)
    } else if (++this.#calm >= this.#policy.clearN) {
      this.#write({ ...incident, endIndex: incident.lastIndex }, false)
      this.#recent = []
      this.#mutedUntil = index + this.#policy.cooldownBuckets
      this.#mutedBelow = incident.score * clearlyWorse
    }
  }

  #tells(violation: Violation | null): boolean {
    return this.#isTelling || violation?.kind === 'silent'
  }

  #write(incident: Incident, isNews: boolean): void {
    const isTold = this.isOpen && !this.isUntold
    if (isTold) this.incidents.pop()
    if (isTold || isNews) this.incidents.push(incident)
    this.#open = incident.endIndex === null ? incident : null
  }
}

type Peak = Omit<Incident, 'startIndex' | 'openedIndex' | 'lastIndex' | 'endIndex'>

function peakAt(peakIndex: number, violation: Violation, edges: Scores): Peak {
  const finite = (x: number) => (Number.isFinite(x) ? x : null)
  return {
    kind: violation.kind,
    peakIndex,
    peakValue: violation.value,
    expected: finite(at(edges.expected, peakIndex)),
    lower: finite(at(edges.lower, peakIndex)),
    upper: finite(at(edges.upper, peakIndex)),
    score: violation.score,
  }
}

function violationAt(
  edges: Scores,
  i: number,
  value: number,
  policy: AlarmPolicy,
  isOpen: boolean,
): Violation | null {
  const score = at(edges.score, i)
  if (Number.isNaN(at(edges.upper, i))) {
    const decides = isOpen || !edges.news ? score : at(edges.news, i)
    return decides > 1 ? { kind: sideOf(value, at(edges.expected, i)), value, score } : null
  }
  if (policy.direction !== 'down' && value > at(edges.upper, i)) return { kind: 'high', value, score }
  if (policy.direction !== 'up' && value < at(edges.lower, i)) return { kind: 'low', value, score }
  return null
}

/** Where a value lies that no edge was drawn for. */
export function sideOf(value: number, expected: number): 'high' | 'low' | 'odd' {
  if (value === expected || Number.isNaN(expected)) return 'odd'
  return value < expected ? 'low' : 'high'
}

/** The method's own score, 0 on the side that can't alarm: the rate of what could. */
function directedScore(scores: Scores, i: number, value: number, policy: AlarmPolicy): number {
  const isOtherSide =
    (policy.direction === 'up' && value < at(scores.expected, i)) ||
    (policy.direction === 'down' && value > at(scores.expected, i))
  return isOtherSide ? 0 : at(scores.score, i)
}

function sideFor(value: number, expected: number): Side {
  if (value === expected || Number.isNaN(expected)) return 'none'
  return value > expected ? 'above' : 'below'
}

/** Moves both edges of row i out to where an alarm begins, and the score onto that scale. */
function widenRow(edges: Scores, i: number, value: number, tail: TailCalibration, policy: AlarmPolicy): void {
  const expected = at(edges.expected, i)
  if (Number.isNaN(at(edges.upper, i))) {
    edges.score[i] = at(edges.score, i) / tail.threshold
    if (edges.news) edges.news[i] = at(edges.news, i) / tail.threshold
    return
  }
  const least = Math.max(policy.minAbsDev, policy.minRelDev * Math.abs(expected))
  const above = Math.max(least, tail.above * (at(edges.upper, i) - expected))
  const below = Math.max(least, tail.below * (expected - at(edges.lower, i)))
  edges.upper[i] = expected + above
  edges.lower[i] = expected - below
  edges.score[i] = scoreOf(Math.abs(value - expected), value > expected ? above : below)
}

/** Moves the edges of row i out by a factor for each side; without a band, only what is measured by one. */
function stretchRow(edges: Scores, i: number, value: number, { above, below }: Widened): void {
  const { expected: expecteds, lower, upper, ...measures } = edges
  const expected = at(expecteds, i)
  const factor = value < expected ? below : above
  if (Number.isNaN(at(upper, i))) {
    for (const measure of Object.values(measures)) measure[i] = at(measure, i) / factor
    return
  }
  upper[i] = expected + above * (at(upper, i) - expected)
  lower[i] = expected - below * (expected - at(lower, i))
  edges.score[i] = scoreOf(
    Math.abs(value - expected),
    Math.abs(at(value > expected ? upper : lower, i) - expected),
  )
}

function blankRow(edges: Scores, i: number): void {
  const columns = [edges.score, edges.expected, edges.lower, edges.upper, ...(edges.news ? [edges.news] : [])]
  for (const column of columns) column[i] = Number.NaN
}

function copyOf(scores: Scores): Scores {
  return {
    score: scores.score.slice(),
    expected: scores.expected.slice(),
    lower: scores.lower.slice(),
    upper: scores.upper.slice(),
    ...(scores.news ? { news: scores.news.slice() } : {}),
  }
}

function stateAfter(evidence: Evidence, episodes: Episodes, policy: AlarmPolicy): DetectorState {
  const seen = countKind(evidence, bucketKind.value)
  const thin = countKind(evidence, bucketKind.thin)
  if (seen === 0 && thin === 0) return { status: 'no_data' }
  if (!policy.silenceAlarms && trailingMissing(evidence) >= policy.windowM) return { status: 'no_data' }
  if (episodes.isOpen && !episodes.isUntold)
    return { status: episodes.isRecovering ? 'recovering' : 'anomalous' }
  if (episodes.isMuted) return { status: 'muted' }
  const needed = Math.max(1, policy.warmupPoints)
  if (seen >= needed) return { status: 'ok' }
  const status = seenByFullWindow(evidence, seen) < needed ? 'insufficient_data' : 'learning'
  return { status, pointsNeeded: needed - seen }
}

/** How many values the whole window would hold at the rate seen since its first value. */
function seenByFullWindow(evidence: Evidence, seen: number): number {
  const first = evidence.kinds.indexOf(bucketKind.value)
  if (first < 0) return 0
  const known = evidence.kinds
    .subarray(first)
    .reduce((sum, kind) => sum + (kind === bucketKind.unknown ? 0 : 1), 0)
  return (seen / known) * evidence.kinds.length
}

function trailingMissing(evidence: Evidence): number {
  let missing = 0
  for (let i = evidence.kinds.length - 1; i >= 0; i--) {
    if (evidence.kinds[i] === bucketKind.missing) missing++
    else if (evidence.kinds[i] !== bucketKind.unknown) break
  }
  return missing
}

function countKind(evidence: Evidence, kind: number): number {
  return evidence.kinds.reduce((count, each) => (each === kind ? count + 1 : count), 0)
}
