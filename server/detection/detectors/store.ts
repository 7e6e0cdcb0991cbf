// All SQL of detectors together with `detector-rows.ts`, and of anomalies together with `anomaly-list.ts`,
// `anomaly-rows.ts` and `write-runs.ts`. A change by a person and its audit entry share one transaction, and
// so do the result of a run and the anomalies it records; where it creates very many, some come before.
// Changes compare and set `revision`: a run that read an older definition records nothing, so an anomaly
// always belongs to the definition that it names.
//
// Anomalies are derived telemetry; `anomaly-erasure.ts` erases them. `isUnknown` of a run prevents a race
// between the two: it is called inside the transaction, so a run that read something before it was hidden
// cannot record it afterwards.

import { setImmediate as nextRound } from 'node:timers/promises'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import { appendAudit } from '../../audit/log.ts'
import { lockForAct } from '../../control/acting.ts'
import type { Control } from '../../control/database.ts'
import { transact } from '../../control/transaction.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import { fateOf } from '../anomalies/anomaly-fate.ts'
import { type RunRecord, sourceOf, toAnomaly } from '../anomalies/anomaly-rows.ts'
import { FeedbackStore } from '../anomalies/feedback-store.ts'
import {
  forgetReleasedVersions,
  type KeptVersion,
  type ReadHolds,
  readVersions,
  refuseHeldDetector,
} from '../anomalies/held-anomalies.ts'
import { idList, ofDetector } from '../anomalies/id-list.ts'
import { type PreparedRecord, preparedRecords, recordRunsIn } from '../anomalies/write-runs.ts'
import { type AnomalyPage, readAnomalyPage, visibleOf } from './anomaly-list.ts'
import {
  changedFields,
  type DetectorChange,
  type DetectorDefinition,
  ifMatchAllows,
  type StoredDetector,
} from './detector.ts'
import {
  type DetectorPage,
  type DetectorSubject,
  definitionColumns,
  findDetectorRow,
  insertDetector,
  readDetector,
  readDetectorPage,
  readSubjects,
  refuseTooManyDetectors,
} from './detector-rows.ts'

export interface DueDetector {
  readonly tenantId: string
  readonly placement: number
  readonly id: string
  /** Since when, milliseconds since 1970. */
  readonly dueAtMs: number
}

export class DetectionStore {
  /** Verdicts and mutes. */
  readonly feedback: FeedbackStore
  readonly #control: Control
  readonly #clock: Clock
  readonly #gate: TelemetryGate
  readonly #readHolds: ReadHolds

  constructor(control: Control, clock: Clock, gate: TelemetryGate, readHolds: ReadHolds) {
    this.#control = control
    this.#clock = clock
    this.#gate = gate
    this.#readHolds = readHolds
    this.feedback = new FeedbackStore(control, clock, gate, readHolds)
  }

  /** See {@link readDetectorPage}. */
  listDetectors(tenantId: string, page: DetectorPage, pace?: Pace): Promise<StoredDetector[]> {
    return readDetectorPage(this.#control, tenantId, page, pace)
  }

  /** See {@link readSubjects}. */
  findSubjects(tenantId: string, ids: readonly string[], pace: Pace): Promise<Map<string, DetectorSubject>> {
    return readSubjects(this.#control, tenantId, ids, pace)
  }

  async findDetector(tenantId: string, id: string): Promise<StoredDetector | null> {
    return findDetectorRow(this.#control, tenantId, id)
  }

  /** The detectors that exist, by id; at most `idsMax` ids. Throws where a row cannot be read. */
  async findDetectors(tenantId: string, ids: readonly string[]): Promise<Map<string, StoredDetector>> {
    const rows = await this.#control
      .selectFrom('detectors')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', idList(ids))
      .execute()
    return new Map(rows.map((row) => [row.id, readDetector(row)]))
  }

  /** Throws InvalidInput where the organisation has the largest number of detectors. */
  async createDetector(
    tenantId: string,
    definition: DetectorDefinition,
    actor: Actor,
  ): Promise<StoredDetector> {
    const nowMs = this.#clock.nowMs()
    return transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      await refuseTooManyDetectors(trx, tenantId)
      const id = await insertDetector(trx, { tenantId, definition, isSystem: false, nowMs })
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'detector.created',
        target: id,
        outcome: 'accepted',
        facts: { method_key: definition.method_key },
      })
      return found(await findDetectorRow(trx, tenantId, id))
    })
  }

  /**
   * Replaces the definition by the patched one, if it is still the one that the patch was applied to. Returns
   * the detector as it is afterwards, or null where it is no longer as it was read, so that the patch is to
   * be read again. A patch that changes nothing leaves revision and audit log alone. Throws
   * `precondition_failed` or `system_detector`, in this order of precedence. A changed definition is due at
   * once.
   */
  async changeDetector(
    { after, before, refused }: DetectorChange,
    ifMatch: string | undefined,
    actor: Actor,
  ): Promise<StoredDetector | null> {
    if (!ifMatchAllows(ifMatch, before.revision)) throw new AppError('precondition_failed')
    if (refused.length > 0) {
      throw new AppError('system_detector', {
        sentence: `Of a system detector, ${refused.join(', ')} cannot be changed.`,
      })
    }
    const changed = changedFields(before.definition, after)
    if (changed.length === 0) return before
    const { id, tenantId } = before
    const nowMs = this.#clock.nowMs()
    return transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const isRenamedOnly = changed.every((field) => field === 'name')
      const { numUpdatedRows } = await trx
        .updateTable('detectors')
        .set({
          ...definitionColumns(after),
          ...(isRenamedOnly ? {} : { next_run_at_ms: nowMs }),
          revision: before.revision + 1,
        })
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .where('revision', '=', before.revision)
        .executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n) return null
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'detector.updated',
        target: id,
        outcome: 'accepted',
        facts: { fields: changed, revision: before.revision + 1 },
      })
      return found(await findDetectorRow(trx, tenantId, id))
    })
  }

  /**
   * Deletes the detector and its anomalies. Throws `not_found`, `precondition_failed`, `system_detector`, or
   * `held` where a legal hold keeps one of the anomalies.
   */
  async deleteDetector(
    tenantId: string,
    id: string,
    ifMatch: string | undefined,
    actor: Actor,
  ): Promise<void> {
    const nowMs = this.#clock.nowMs()
    // A release removes them too, and may have been interrupted; without their anomalies they have no reader.
    await forgetReleasedVersions(this.#control, tenantId, this.#readHolds, id)
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const detector = found(await findDetectorRow(trx, tenantId, id))
      if (!ifMatchAllows(ifMatch, detector.revision)) throw new AppError('precondition_failed')
      if (detector.isSystem) {
        throw new AppError('system_detector', {
          sentence: 'A system detector cannot be deleted; set enabled to false instead.',
        })
      }
      await refuseHeldDetector(trx, tenantId, id, await this.#readHolds(trx, tenantId))
      const { numDeletedRows } = await trx
        .deleteFrom('anomalies')
        .where(ofDetector(trx, tenantId, id))
        .executeTakeFirstOrThrow()
      await trx
        .deleteFrom('detector_mutes')
        .where('tenant_id', '=', tenantId)
        .where('detector_id', '=', id)
        .execute()
      await trx.deleteFrom('detectors').where('tenant_id', '=', tenantId).where('id', '=', id).execute()
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'detector.deleted',
        target: id,
        outcome: 'accepted',
        facts: { anomalies: Number(numDeletedRows) },
      })
    })
  }

  /**
   * Enabled detectors whose time has come, the longest overdue first; at most `ofOne` for each organisation.
   */
  async dueDetectors(nowMs: number, limit: number, ofOne = limit): Promise<DueDetector[]> {
    const due = this.#control
      .selectFrom('detectors')
      .innerJoin('organisations', 'organisations.tenant_id', 'detectors.tenant_id')
      .select(['detectors.tenant_id as tenantId', 'placement', 'id', 'next_run_at_ms as dueAtMs'])
      .select(({ fn }) =>
        fn
          .agg<number>('row_number')
          .over((over) => over.partitionBy('detectors.tenant_id').orderBy('next_run_at_ms').orderBy('id'))
          .as('nth'),
      )
      .where('enabled', '=', 1)
      .where('next_run_at_ms', '<=', nowMs)
    const rows = await this.#control
      .selectFrom(due.as('due'))
      .select(['tenantId', 'placement', 'id', 'dueAtMs'])
      .where('nth', '<=', ofOne)
      .orderBy('dueAtMs')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ ...row }))
  }

  /**
   * Records a run: its result, and its changes of the anomalies. Returns false where the detector, its mutes
   * or its feedback were changed or deleted after the run read them, or where a part of what it read has been
   * hidden since; then nothing is written after that.
   */
  async recordRun(run: RunRecord, turn?: () => Promise<unknown>): Promise<boolean> {
    return (await this.recordRuns([run], turn)) === 1
  }

  /**
   * The same for several runs of one organisation, at most `idsMax`, in one transaction, because a
   * transaction waits for the disk: if it fails, none is recorded. Where they create many anomalies, several
   * transactions follow each other. Returns how many were recorded.
   *
   * @param turn resolves when a transaction may begin; absent: in the next round of the event loop
   */
  async recordRuns(runs: readonly RunRecord[], turn: () => Promise<unknown> = nextRound): Promise<number> {
    let rest: readonly PreparedRecord[] = await preparedRecords(runs, new Pace(turn))
    let count = 0
    while (rest.length > 0) {
      await turn()
      const part = rest
      const written = await transact(this.#control, (trx) => recordRunsIn(trx, this.#readHolds, part))
      count += written.recorded
      rest = written.unfinished
    }
    return count
  }

  /** By start, latest first. Never contains what was hidden before it is returned. */
  listAnomalies(tenantId: string, page: AnomalyPage): Promise<Anomaly[]> {
    return this.#gate.together(tenantId, () => readAnomalyPage(this.#control, this.#gate, tenantId, page))
  }

  /** Null also where it was hidden before this returns. */
  findAnomaly(tenantId: string, id: string): Promise<Anomaly | null> {
    return this.#gate.together(tenantId, async () => {
      const own = this.#control.selectFrom('anomalies').selectAll().where('tenant_id', '=', tenantId)
      const row = await visibleOf(own, this.#gate, tenantId).where('id', '=', id).executeTakeFirst()
      return row === undefined ? null : toAnomaly(row, this.#gate.hidden(tenantId))
    })
  }

  /**
   * The kept versions of a held anomaly, oldest first. Data derived from hidden telemetry is hidden with it.
   */
  listVersions(tenantId: string, id: string): Promise<(Omit<KeptVersion, 'row'> & { anomaly: Anomaly })[]> {
    return this.#gate.together(tenantId, async () => {
      const versions = await readVersions(this.#control, tenantId, id)
      const hidden = this.#gate.hidden(tenantId)
      return versions
        .filter(({ row }) =>
          hidden.every((part) => fateOf(sourceOf(row), { ...part, held: [] }) !== 'removed'),
        )
        .map(({ row, ...version }) => ({ ...version, anomaly: toAnomaly(row, hidden) }))
    })
  }
}

function found(detector: StoredDetector | null): StoredDetector {
  if (detector === null) throw new AppError('not_found')
  return detector
}
