// The runs of a detector over past time, one after the other, each with the code of scheduled runs. Their
// findings are reconciled with those of earlier runs, as in the store but in memory. So the anomalies are
// exactly those that the detector would have recorded.

import { type Ns, nsPerMs } from '../../../contract/values/instant.ts'
import { newId } from '../../core/ids.ts'
import { comparedFromNs } from '../anomalies/anomaly-rows.ts'
import type { Finding } from '../anomalies/findings.ts'
import { type RecordedAnomaly, type RunWindow, reconcile } from '../anomalies/reconcile.ts'
import type { RunSummary } from '../anomalies/run-summary.ts'
import { type DetectorDefinition, methodChoiceOf, type StoredDetector } from '../detectors/detector.ts'
import type { JudgedGroup } from './course-in-progress.ts'
import type { SeriesSource } from './course-run.ts'
import { DetectorCourses, type JudgedRun } from './detector-course.ts'
import { courseRunOf, evaluateRun, type Run } from './evaluate-run.ts'
import type { EvaluationShare, Evaluations } from './evaluation-pool.ts'

interface ReplayOptions {
  readonly definition: DetectorDefinition
  readonly createdAtMs: number
  /** Reads series as they were known at a time. */
  readonly sourceAt: (knownUntilNs: Ns) => SeriesSource
  readonly evaluations: Evaluations
  readonly share: EvaluationShare
  readonly isUnknown: Run['isUnknown']
  readonly onJudged?: (judged: JudgedGroup) => void
}

/** An anomaly as the store would record it. */
export interface ReplayedAnomaly extends RecordedAnomaly {
  readonly finding: Finding
  /** When the run began that recorded it. */
  readonly ranAtMs: number
}

interface ReplayedRun {
  readonly judged: JudgedRun
  readonly summary: RunSummary
  readonly isErased: boolean
}

export class ReplayedRuns {
  readonly #options: ReplayOptions
  readonly #courses: DetectorCourses
  readonly #anomalies = new Map<string, ReplayedAnomaly>()
  /** Those that a later run may still change, by id. */
  readonly #open = new Map<string, ReplayedAnomaly>()
  /** Each once: every run writes the key of each series anew, and one may have 4 kB. */
  readonly #keys = new Map<string, string>()
  #detector: StoredDetector

  constructor(options: ReplayOptions) {
    this.#options = options
    this.#courses = new DetectorCourses(options.evaluations)
    this.#detector = neverRunDetector(options.definition, options.share.tenantId, options.createdAtMs)
  }

  /** In the order in which they were first recorded. */
  get anomalies(): ReplayedAnomaly[] {
    return [...this.#anomalies.values()]
  }

  async run(ranAtMs: number): Promise<ReplayedRun> {
    const { isUnknown, onJudged, share, sourceAt } = this.#options
    const detector = this.#detector
    const choice = methodChoiceOf(detector.definition)
    if (choice === null) throw new Error('The params of a validated definition are refused by its method.')
    const run: Run = { detector, choice, tuning: null, isUnknown, ...(onJudged && { onJudged }) }
    const source = sourceAt(BigInt(ranAtMs) * nsPerMs)
    const asked = courseRunOf(run, { nowMs: ranAtMs, source, share, mayBeLate: false })
    const judged = await this.#courses.judge(await this.#courses.prepare(asked))
    const { found, summary } = await evaluateRun(run, judged)
    this.#record(found.findings, found.window, ranAtMs)
    this.#detector = { ...detector, lastRunAtMs: ranAtMs, lastStatus: summary.status }
    return { judged, summary, isErased: judged.groups.some(({ series }) => series.unknown.includes(1)) }
  }

  /** Drops the course from which the runs continued. */
  end(): void {
    this.#courses.end(this.#detector.id)
  }

  /** Changes the anomalies like `recordChanges`. */
  #record(findings: readonly Finding[], window: RunWindow, ranAtMs: number): void {
    const open = this.#open
    const fromNs = comparedFromNs({ findings, window })
    const recorded: ReplayedAnomaly[] = []
    for (const anomaly of open.values()) {
      const { id, isOpen, seenUntilNs } = anomaly
      if (isOpen || (fromNs !== null && seenUntilNs > fromNs)) recorded.push(anomaly)
      else if (seenUntilNs <= window.startNs) open.delete(id)
    }
    const changes = reconcile(recorded, findings, window)
    const keep = (anomaly: ReplayedAnomaly) => {
      open.set(anomaly.id, anomaly)
      this.#anomalies.set(anomaly.id, anomaly)
    }
    for (const created of changes.create) {
      const finding = this.#withKnownKey(created)
      keep({ ...finding, id: String(this.#anomalies.size), finding, ranAtMs })
    }
    for (const { id, finding } of changes.update) {
      const anomaly = open.get(id)
      if (anomaly === undefined) continue
      keep({
        ...anomaly,
        finding: this.#withKnownKey(finding),
        seenUntilNs: finding.seenUntilNs,
        isOpen: finding.isOpen,
      })
    }
    for (const id of changes.close) {
      const anomaly = open.get(id)
      if (anomaly !== undefined) keep({ ...anomaly, isOpen: false })
    }
  }

  #withKnownKey(finding: Finding): Finding {
    const groupKey = this.#keys.get(finding.groupKey) ?? finding.groupKey
    this.#keys.set(groupKey, groupKey)
    return { ...finding, groupKey }
  }
}

/**
 * A detector that was just created. Its id is its own, because it names the courses that the runs continue:
 * replays at the same time, also of different organisations, are evaluated by the same threads.
 */
function neverRunDetector(
  definition: DetectorDefinition,
  tenantId: string,
  createdAtMs: number,
): StoredDetector {
  const never = { lastRunAtMs: null, lastStatus: null, lastNote: null, tuningRevision: 0 }
  const times = { nextRunAtMs: createdAtMs, createdAtMs }
  const id = newId('rpl', createdAtMs)
  return { id, tenantId, definition, isSystem: false, revision: 1, ...never, ...times }
}
