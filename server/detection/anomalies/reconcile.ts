// What a run changes in the record of anomalies. Each run judges its whole window anew, so the same incident comes
// back run after run, with a start that may move by a bucket as the window slides. An incident is the same as a
// recorded anomaly when the two share time in the same series. From that everything follows: running twice records
// nothing twice, an anomaly keeps its id and its start, and one that has ended is history and is not rewritten
// unless the incident turns out to go on.
//
// New anomalies are made only of news: incidents that are still open, or that were raised since the run before,
// less an hour for telemetry that came late. A band recomputed from a later window may see an incident in the
// distant past that nobody was told of when it happened; recording it now would only break the alarm budget.

import { type Ns, nsPerMinute } from '../../../contract/instant.ts'
import type { Finding } from './findings.ts'

/** Telemetry may be this late and still raise an alarm about its own time. */
const latenessNs = 60n * nsPerMinute

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
  /** Where the judgement of the run before ended; null where all of the window is news. */
  readonly judgedUntilNs: Ns | null
  /** Whether some series were left out, so that absence from the findings says nothing. */
  readonly isTruncated: boolean
}

interface AnomalyChanges {
  readonly create: readonly Finding[]
  readonly update: readonly { readonly id: string; readonly finding: Finding }[]
  /** Recorded as open but seen no more: they ended where they were last seen. */
  readonly close: readonly string[]
}

/** `recorded`: every anomaly of this detector and metric that is open or was seen inside the run's time. */
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
      if (isNews(finding, run)) create.push(finding)
      continue
    }
    confirmed.add(target.id)
    const goesOn = finding.isOpen || finding.seenUntilNs > target.seenUntilNs
    if (target.isOpen || goesOn) update.set(target.id, finding)
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

function isNews(finding: Finding, run: RunWindow): boolean {
  if (finding.isOpen) return true
  const sinceNs = run.judgedUntilNs === null ? run.windowStartNs : run.judgedUntilNs - latenessNs
  return finding.raisedNs > sinceNs && finding.raisedNs > run.windowStartNs
}

function mayHaveBeenLeftOut(anomaly: RecordedAnomaly, run: RunWindow): boolean {
  return run.isTruncated && anomaly.seenUntilNs > run.startNs
}
