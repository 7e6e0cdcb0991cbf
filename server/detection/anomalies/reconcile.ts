// What a run changes in the recorded anomalies. Each run judges its whole window again, so the same episode
// is found by run after run, and its start may move by a bucket as the window moves. An episode is the same
// as a recorded anomaly when the two share time in the same series. So running twice records nothing twice,
// an anomaly keeps its id and its start, and an ended anomaly is not rewritten unless its episode continues.
//
// A new anomaly is recorded only for an episode that is still open, or that was raised since the run before,
// minus an hour for late telemetry. A band that is computed from a later window may show an episode far in
// the past that was not reported at its time; recording it later would only exceed the alarm budget.

import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
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

interface AnomalyChanges {
  readonly create: readonly Finding[]
  readonly update: readonly { readonly id: string; readonly finding: Finding }[]
  /** Recorded as open but not found any more: they ended where they were last seen. */
  readonly close: readonly string[]
}

/**
 * `recorded`: every anomaly of this detector and metric that is open or was last seen
 * inside the time of the run.
 */
export function reconcile(
  recorded: readonly RecordedAnomaly[],
  findings: readonly Finding[],
  run: RunWindow,
): AnomalyChanges {
  const create: Finding[] = []
  const update = new Map<string, Finding>()
  const confirmed = new Set<string>()
  for (const finding of findings) {
    const same = recorded.filter((anomaly) => isSame(anomaly, finding))
    const target = same.find(({ isOpen }) => isOpen) ?? same.at(-1)
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

function isSame(anomaly: RecordedAnomaly, finding: Finding): boolean {
  return (
    anomaly.groupKey === finding.groupKey &&
    anomaly.startedNs < finding.seenUntilNs &&
    finding.startedNs < anomaly.seenUntilNs
  )
}

function isNew(finding: Finding, run: RunWindow): boolean {
  if (finding.isOpen) return true
  const sinceNs = run.judgedUntilNs === null ? run.windowStartNs : run.judgedUntilNs - latenessNs
  return finding.raisedNs > sinceNs && finding.raisedNs > run.windowStartNs
}

function mayHaveBeenLeftOut(anomaly: RecordedAnomaly, run: RunWindow): boolean {
  return run.isTruncated && anomaly.seenUntilNs > run.startNs
}
