// What a run changes in the recorded anomalies. Each run judges its whole window again, so the same episode
// is found by run after run, and its start may move by a bucket as the window moves. An episode is the same
// as a recorded anomaly when the two share time in the same series. So running twice records nothing twice,
// an anomaly keeps its id and its start, and an ended anomaly is not rewritten unless its episode continues.
//
// A new anomaly is recorded only for an episode that is still open, or that was raised since the run before,
// minus an hour for late telemetry. A band that is computed from a later window may show an episode far in
// the past that was not reported at its time; recording it later would only exceed the alarm budget.

import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import { partitionPoint } from '../../core/partition-point.ts'
import type { Finding } from './findings.ts'

/** Telemetry that is late by up to this much still raises an alarm about its own time. */
export const latenessMinutes = 60
const latenessNs = BigInt(latenessMinutes) * nsPerMinute

export interface RecordedAnomaly {
  readonly id: string
  readonly groupKey: string
  readonly startedNs: Ns
  readonly seenUntilNs: Ns
  readonly isOpen: boolean
}

export interface RunWindow {
  readonly startNs: Ns
  readonly windowStartNs: Ns
  /** End of the time that the run before judged; null where the whole window counts as new. */
  readonly judgedUntilNs: Ns | null
  /** Whether some series were left out, so that their absence from the findings means nothing. */
  readonly isTruncated: boolean
}

export interface AnomalyChanges {
  readonly create: readonly Finding[]
  readonly update: readonly { readonly id: string; readonly finding: Finding }[]
  /** Recorded as open but not found any more: they ended where they were last seen. */
  readonly close: readonly string[]
}

/**
 * `recorded`: every anomaly of this detector and metric that is open, or was last seen inside the time of the
 * run and after the start of some finding; in any order.
 */
export function reconcile(
  recorded: readonly RecordedAnomaly[],
  findings: readonly Finding[],
  run: RunWindow,
): AnomalyChanges {
  const bySeries = new Map(
    [...Map.groupBy(recorded, ({ groupKey }) => groupKey)].map(([key, all]) => [
      key,
      new RecordedSeries(all),
    ]),
  )
  const create: Finding[] = []
  const update = new Map<string, Finding>()
  const confirmed = new Set<string>()
  for (const finding of findings) {
    const target = bySeries.get(finding.groupKey)?.sameAs(finding)
    if (target === undefined) {
      if (isNew(finding, run)) create.push(finding)
      continue
    }
    confirmed.add(target.id)
    const continues = finding.isOpen || finding.seenUntilNs > target.seenUntilNs
    if (target.isOpen || continues) update.set(target.id, finding)
  }
  const close = recorded.filter(
    (anomaly) => anomaly.isOpen && !confirmed.has(anomaly.id) && !mayHaveBeenLeftOut(anomaly, run),
  )
  return {
    create,
    update: [...update].map(([id, finding]) => ({ id, finding })),
    close: close.map(({ id }) => id),
  }
}

/**
 * The recorded anomalies of one series. A run may have a thousand findings and as many recorded anomalies, so
 * one is found without comparing all.
 */
class RecordedSeries {
  /** By start. */
  readonly #all: readonly RecordedAnomaly[]
  readonly #open: readonly RecordedAnomaly[]
  /** For each open one, the latest end of it and of those before it. */
  readonly #openUntil: readonly Ns[]
  /** For each, the position of the last one before it that ends later; -1 where none does. */
  readonly #endsLater: readonly number[]

  constructor(recorded: readonly RecordedAnomaly[]) {
    this.#all = recorded.toSorted(byStart)
    this.#open = this.#all.filter(({ isOpen }) => isOpen)
    let untilNs: Ns | null = null
    this.#openUntil = this.#open.map(({ seenUntilNs }) => {
      untilNs = untilNs === null || seenUntilNs > untilNs ? seenUntilNs : untilNs
      return untilNs
    })
    const endsLater: number[] = []
    for (const [i, { seenUntilNs }] of this.#all.entries()) {
      endsLater.push(this.#lastFrom(i - 1, seenUntilNs, endsLater))
    }
    this.#endsLater = endsLater
  }

  /** The first open anomaly that shares time with the finding; otherwise the last of all that do. */
  sameAs({
    seenUntilNs,
    startedNs,
  }: Pick<Finding, 'startedNs' | 'seenUntilNs'>): RecordedAnomaly | undefined {
    const first = partitionPoint(this.#open.length, (i) => (this.#openUntil[i] ?? startedNs) > startedNs)
    const open = this.#open[first]
    if (open !== undefined && open.startedNs < seenUntilNs) return open
    const after = partitionPoint(
      this.#all.length,
      (i) => (this.#all[i]?.startedNs ?? seenUntilNs) >= seenUntilNs,
    )
    return this.#all[this.#lastFrom(after - 1, startedNs, this.#endsLater)]
  }

  /** The last position up to `from` whose anomaly ends after an instant; -1 where none does. */
  #lastFrom(from: number, instantNs: Ns, endsLater: readonly number[]): number {
    let i = from
    while (i >= 0 && (this.#all[i]?.seenUntilNs ?? instantNs) <= instantNs) i = endsLater[i] ?? -1
    return i
  }
}

function byStart(a: RecordedAnomaly, b: RecordedAnomaly): number {
  return a.startedNs < b.startedNs ? -1 : a.startedNs > b.startedNs ? 1 : 0
}

function isNew(finding: Finding, run: RunWindow): boolean {
  if (finding.isOpen) return true
  const sinceNs = run.judgedUntilNs === null ? run.windowStartNs : run.judgedUntilNs - latenessNs
  return finding.raisedNs > sinceNs && finding.raisedNs > run.windowStartNs
}

function mayHaveBeenLeftOut(anomaly: RecordedAnomaly, run: RunWindow): boolean {
  return run.isTruncated && anomaly.seenUntilNs > run.startNs
}
