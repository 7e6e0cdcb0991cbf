// All SQL of detectors and anomalies. A change by a person and its audit entry share one transaction, and so do the
// outcome of a run and the anomalies it records. Changes are compare-and-set on `revision`: a run that read an
// older definition records nothing, so an anomaly always belongs to the definition it names.
//
// Anomalies are derived telemetry. `removeAnomaliesIn` and `countAnomaliesIn` are the doors through which an erasure
// removes them and a verification counts them; `isUnknown` of a recorded run closes the race between the two: it is
// asked inside the transaction, so a run that read before the erasure can't write after it.

import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import {
  type Anomaly,
  type AnomalyListQuery,
  type Detector,
  DetectorScope,
  DetectorStatus,
} from '../../contract/detection.ts'
import { MethodKey } from '../../contract/detection-methods.ts'
import { formatInstant, type Ns } from '../../contract/instant.ts'
import { appendAudit } from '../audit/log.ts'
import type {
  AnomaliesTable,
  Control,
  ControlTransaction,
  Database,
  DetectorsTable,
} from '../control/database.ts'
import { AppError, InvalidInput, problem } from '../core/app-error.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import type { TimeRange } from '../core/time-range.ts'
import { signals as allSignals, type Signal } from '../telemetry/schema/tables.ts'
import {
  applyPatch,
  changedFields,
  type DetectorDefinition,
  type Draft,
  ifMatchAllows,
  refusedOnSystem,
} from './detector.ts'
import type { Finding } from './findings.ts'
import type { Outcome } from './outcome.ts'
import { type RecordedAnomaly, type RunWindow, reconcile } from './reconcile.ts'

/** One detector costs a query per run; past this an organisation would starve the others of the worker. */
const detectorsMax = 1000

export interface StoredDetector {
  readonly id: string
  readonly tenantId: string
  readonly definition: DetectorDefinition
  readonly isSystem: boolean
  readonly revision: number
  readonly lastRunAtMs: number | null
  readonly lastStatus: DetectorStatus | null
  readonly lastNote: string | null
  readonly createdAtMs: number
}

export interface DueDetector {
  readonly tenantId: string
  readonly placement: number
  readonly id: string
}

export interface DetectorPatch {
  readonly fields: Draft
  /** Merge `params` and `scope` instead of replacing them. */
  readonly isMerge: boolean
  readonly ifMatch: string | undefined
}

export interface RunRecord {
  readonly detector: StoredDetector
  readonly ranAtMs: number
  readonly nextRunAtMs: number
  readonly outcome: Outcome
  /** Null where nothing could be evaluated: then no anomaly changes. */
  readonly found: RunFound | null
}

export interface RunFound {
  readonly findings: readonly Finding[]
  readonly window: RunWindow
  readonly signals: readonly Signal[]
  /** Whether some of `[startNs, endNs)` is erased by now. */
  readonly isUnknown: (range: { startNs: Ns; endNs: Ns }) => boolean
}

export interface AnomalyPage {
  readonly limit: number
  readonly filter: Pick<AnomalyListQuery, 'detector_id' | 'open' | 'start' | 'end'>
  /** Where the page before ended. */
  readonly before: { readonly startedNs: Ns; readonly id: string } | null
}

export class DetectionStore {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  /** Newest first, from before `beforeId` where given. */
  async listDetectors(
    tenantId: string,
    page: { limit: number; beforeId: string | null },
  ): Promise<StoredDetector[]> {
    let query = this.#control
      .selectFrom('detectors')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('id', 'desc')
      .limit(page.limit)
    if (page.beforeId !== null) query = query.where('id', '<', page.beforeId)
    return (await query.execute()).map(readDetector)
  }

  async findDetector(tenantId: string, id: string): Promise<StoredDetector | null> {
    return find(this.#control, tenantId, id)
  }

  /** Throws InvalidInput where the organisation has as many as it may. */
  async createDetector(
    tenantId: string,
    definition: DetectorDefinition,
    actor: string,
  ): Promise<StoredDetector> {
    const nowMs = this.#clock.nowMs()
    return this.#control.transaction().execute(async (trx) => {
      await refuseTooMany(trx, tenantId)
      const id = await insertDetector(trx, { tenantId, definition, isSystem: false, nowMs })
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'detector.created',
        target: id,
        outcome: 'accepted',
        facts: { method_key: definition.method_key },
      })
      return found(await find(trx, tenantId, id))
    })
  }

  /**
   * Answers the detector as it is afterwards; a patch that changes nothing leaves revision and audit log alone.
   * Throws `not_found`, `precondition_failed`, `system_detector` or InvalidInput, in this order of precedence. A
   * changed definition is due at once.
   */
  async patchDetector(
    tenantId: string,
    id: string,
    patch: DetectorPatch,
    actor: string,
  ): Promise<StoredDetector> {
    const nowMs = this.#clock.nowMs()
    return this.#control.transaction().execute(async (trx) => {
      const before = found(await find(trx, tenantId, id))
      if (!ifMatchAllows(patch.ifMatch, before.revision)) throw new AppError('precondition_failed')
      const after = definitionAfter(before, patch)
      const changed = changedFields(before.definition, after)
      if (changed.length === 0) return before
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
      if (numUpdatedRows === 0n) throw new AppError('precondition_failed')
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'detector.updated',
        target: id,
        outcome: 'accepted',
        facts: { fields: changed, revision: before.revision + 1 },
      })
      return found(await find(trx, tenantId, id))
    })
  }

  /** Deletes the detector and its anomalies. Throws `not_found`, `precondition_failed` or `system_detector`. */
  async deleteDetector(
    tenantId: string,
    id: string,
    ifMatch: string | undefined,
    actor: string,
  ): Promise<void> {
    const nowMs = this.#clock.nowMs()
    await this.#control.transaction().execute(async (trx) => {
      const detector = found(await find(trx, tenantId, id))
      if (!ifMatchAllows(ifMatch, detector.revision)) throw new AppError('precondition_failed')
      if (detector.isSystem) {
        throw new AppError('system_detector', {
          sentence: 'A system detector cannot be deleted; set enabled to false instead.',
        })
      }
      const { numDeletedRows } = await trx
        .deleteFrom('anomalies')
        .where('tenant_id', '=', tenantId)
        .where('detector_id', '=', id)
        .executeTakeFirstOrThrow()
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

  /** Enabled detectors whose time has come, the longest overdue first. */
  async dueDetectors(nowMs: number, limit: number): Promise<DueDetector[]> {
    const rows = await this.#control
      .selectFrom('detectors')
      .innerJoin('organisations', 'organisations.tenant_id', 'detectors.tenant_id')
      .select(['detectors.tenant_id as tenantId', 'placement', 'id'])
      .where('enabled', '=', 1)
      .where('next_run_at_ms', '<=', nowMs)
      .orderBy('next_run_at_ms')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ ...row }))
  }

  /**
   * Writes the outcome and what it means for the anomalies on record. False, and nothing written, where the
   * detector was changed or deleted since it was read.
   */
  async recordRun(run: RunRecord): Promise<boolean> {
    const { detector, found: seen } = run
    return this.#control.transaction().execute(async (trx) => {
      const { numUpdatedRows } = await trx
        .updateTable('detectors')
        .set({
          last_run_at_ms: run.ranAtMs,
          last_status: run.outcome.status,
          last_note: run.outcome.note,
          next_run_at_ms: run.nextRunAtMs,
        })
        .where('tenant_id', '=', detector.tenantId)
        .where('id', '=', detector.id)
        .where('revision', '=', detector.revision)
        .executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n) return false
      if (seen !== null) await recordFindings(trx, run, seen)
      return true
    })
  }

  /** By start, latest first. */
  async listAnomalies(tenantId: string, page: AnomalyPage): Promise<Anomaly[]> {
    const { filter, before } = page
    let query = this.#control.selectFrom('anomalies').selectAll().where('tenant_id', '=', tenantId)
    if (filter.detector_id !== undefined) query = query.where('detector_id', '=', filter.detector_id)
    if (filter.open !== undefined)
      query = query.where('ended_at_ns', filter.open === 'true' ? 'is' : 'is not', null)
    if (filter.start !== undefined) query = query.where(ns('seen_until_ns'), '>', bound(filter.start))
    if (filter.end !== undefined) query = query.where(ns('started_at_ns'), '<', bound(filter.end))
    if (before !== null) {
      const { id, startedNs } = before
      query = query.where((where) =>
        where.or([
          where(ns('started_at_ns'), '<', bound(startedNs)),
          where.and([where(ns('started_at_ns'), '=', bound(startedNs)), where('id', '<', id)]),
        ]),
      )
    }
    const rows = await query
      .orderBy(ns('started_at_ns'), 'desc')
      .orderBy('id', 'desc')
      .limit(page.limit)
      .execute()
    return rows.map(toAnomaly)
  }

  async findAnomaly(tenantId: string, id: string): Promise<Anomaly | null> {
    const row = await this.#control
      .selectFrom('anomalies')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('id', '=', id)
      .executeTakeFirst()
    return row === undefined ? null : toAnomaly(row)
  }
}

/** Inserts a detector that is due at once and answers its id. For system detectors and for the store. */
export async function insertDetector(
  trx: ControlTransaction,
  detector: { tenantId: string; definition: DetectorDefinition; isSystem: boolean; nowMs: number },
): Promise<string> {
  const { tenantId, definition, isSystem, nowMs } = detector
  const id = newId('det', nowMs)
  await trx
    .insertInto('detectors')
    .values({
      id,
      tenant_id: tenantId,
      ...definitionColumns(definition),
      is_system: isSystem ? 1 : 0,
      last_run_at_ms: null,
      last_status: null,
      last_note: null,
      next_run_at_ms: nowMs,
      created_at_ms: nowMs,
      revision: 1,
    })
    .execute()
  return id
}

/**
 * Removes every anomaly of the organisation that was derived from one of the signals and shares an instant with
 * the range, and makes its detectors due, so that their statuses forget as well. Answers how many it removed.
 */
export async function removeAnomaliesIn(
  trx: ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('anomalies')
    .where('tenant_id', '=', tenantId)
    .where((where) => isTouched(where, signals, range))
    .executeTakeFirstOrThrow()
  await trx.updateTable('detectors').set({ next_run_at_ms: 0 }).where('tenant_id', '=', tenantId).execute()
  return Number(numDeletedRows)
}

/** How many anomalies {@link removeAnomaliesIn} would remove. */
export async function countAnomaliesIn(
  control: Control,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
): Promise<number> {
  const row = await control
    .selectFrom('anomalies')
    .select((select) => select.fn.countAll<number | string>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where((where) => isTouched(where, signals, range))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

/** The wire form. */
export function toDetector(stored: StoredDetector): Detector {
  const { params, scope, ...rest } = stored.definition
  return {
    id: stored.id,
    ...rest,
    params: { ...params },
    scope,
    is_system: stored.isSystem,
    last_run_at: stored.lastRunAtMs === null ? null : instantText(stored.lastRunAtMs),
    last_status: stored.lastStatus,
    created_at: instantText(stored.createdAtMs),
    last_note: stored.lastNote,
  }
}

function definitionAfter(before: StoredDetector, patch: DetectorPatch): DetectorDefinition {
  const refused = before.isSystem ? refusedOnSystem(before.definition, patch.fields) : []
  if (refused.length > 0) {
    throw new AppError('system_detector', {
      sentence: `Of a system detector, ${refused.join(', ')} cannot be changed.`,
    })
  }
  const result = applyPatch(before.definition, patch.fields, patch.isMerge)
  if ('problems' in result) throw new InvalidInput(result.problems)
  return result.definition
}

async function refuseTooMany(trx: ControlTransaction, tenantId: string): Promise<void> {
  const { count } = await trx
    .selectFrom('detectors')
    .select((select) => select.fn.countAll<number | string>().as('count'))
    .where('tenant_id', '=', tenantId)
    .executeTakeFirstOrThrow()
  if (Number(count) < detectorsMax) return
  throw new InvalidInput([
    problem(
      ['body'],
      'value_error',
      `Your organisation has ${detectorsMax} detectors; delete one first`,
      null,
      {
        limit: detectorsMax,
      },
    ),
  ])
}

async function find(
  control: Control | ControlTransaction,
  tenantId: string,
  id: string,
): Promise<StoredDetector | null> {
  const row = await control
    .selectFrom('detectors')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row === undefined ? null : readDetector(row)
}

function found(detector: StoredDetector | null): StoredDetector {
  if (detector === null) throw new AppError('not_found')
  return detector
}

function definitionColumns(definition: DetectorDefinition) {
  return {
    ...definition,
    params: JSON.stringify(definition.params),
    scope: JSON.stringify(definition.scope),
    enabled: definition.enabled ? 1 : 0,
  }
}

function readDetector(row: Selectable<DetectorsTable>): StoredDetector {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    definition: {
      name: row.name,
      metric_key: row.metric_key,
      method_key: MethodKey.parse(row.method_key),
      params: JSON.parse(row.params),
      scope: DetectorScope.parse(JSON.parse(row.scope)),
      window_minutes: row.window_minutes,
      schedule_minutes: row.schedule_minutes,
      enabled: row.enabled === 1,
    },
    isSystem: row.is_system === 1,
    revision: row.revision,
    lastRunAtMs: row.last_run_at_ms,
    lastStatus: DetectorStatus.nullable().parse(row.last_status),
    lastNote: row.last_note,
    createdAtMs: row.created_at_ms,
  }
}

async function recordFindings(trx: ControlTransaction, run: RunRecord, seen: RunFound): Promise<void> {
  const recorded = await recordedAnomalies(trx, run.detector, seen.window)
  const changes = reconcile(recorded, seen.findings, seen.window)
  const isKnown = (finding: Finding) =>
    !seen.isUnknown({ startNs: finding.startedNs, endNs: finding.seenUntilNs })
  for (const finding of changes.create.filter(isKnown)) {
    await trx
      .insertInto('anomalies')
      .values(newAnomaly(run, seen, finding))
      .execute()
  }
  for (const { id, finding } of changes.update.filter((change) => isKnown(change.finding))) {
    await trx
      .updateTable('anomalies')
      .set({ ...findingColumns(finding), updated_at_ms: run.ranAtMs })
      .where('id', '=', id)
      .execute()
  }
  for (const id of changes.close) {
    await trx
      .updateTable('anomalies')
      .set((columns) => ({ ended_at_ns: columns.ref('seen_until_ns'), updated_at_ms: run.ranAtMs }))
      .where('id', '=', id)
      .execute()
  }
}

async function recordedAnomalies(
  trx: ControlTransaction,
  detector: StoredDetector,
  window: RunWindow,
): Promise<RecordedAnomaly[]> {
  const rows = await trx
    .selectFrom('anomalies')
    .select(['id', 'group_key', 'metric_key', 'started_at_ns', 'seen_until_ns', 'ended_at_ns'])
    .where('tenant_id', '=', detector.tenantId)
    .where('detector_id', '=', detector.id)
    .where((where) =>
      where.or([where('ended_at_ns', 'is', null), where(ns('seen_until_ns'), '>', bound(window.startNs))]),
    )
    .orderBy(ns('started_at_ns'))
    .execute()
  return rows.map((row) => ({
    id: row.id,
    // Of a metric the detector no longer watches nothing can be found again: its group matches none.
    groupKey:
      row.metric_key === detector.definition.metric_key
        ? row.group_key
        : `${row.metric_key} ${row.group_key}`,
    startedNs: BigInt(row.started_at_ns),
    seenUntilNs: BigInt(row.seen_until_ns),
    isOpen: row.ended_at_ns === null,
  }))
}

function newAnomaly(run: RunRecord, seen: RunFound, finding: Finding) {
  return {
    id: newId('ano', run.ranAtMs),
    tenant_id: run.detector.tenantId,
    detector_id: run.detector.id,
    group_key: finding.groupKey,
    metric_key: run.detector.definition.metric_key,
    signal: seen.signals.join(','),
    started_at_ns: finding.startedNs.toString(),
    ...findingColumns(finding),
    created_at_ms: run.ranAtMs,
    updated_at_ms: run.ranAtMs,
  }
}

function findingColumns(finding: Finding) {
  return {
    ended_at_ns: finding.isOpen ? null : finding.seenUntilNs.toString(),
    seen_until_ns: finding.seenUntilNs.toString(),
    peak_at_ns: finding.peakNs.toString(),
    value: finding.value,
    expected: finding.expected,
    lower: finding.lower,
    upper: finding.upper,
    score: finding.score,
    reason: finding.reason,
  }
}

function toAnomaly(row: Selectable<AnomaliesTable>): Anomaly {
  return {
    id: row.id,
    detector_id: row.detector_id,
    metric_key: row.metric_key,
    group: JSON.parse(row.group_key),
    signals: allSignals.filter((signal) => row.signal.split(',').includes(signal)),
    started_at: instantOf(row.started_at_ns),
    ended_at: row.ended_at_ns === null ? null : instantOf(row.ended_at_ns),
    seen_until: instantOf(row.seen_until_ns),
    peak_at: instantOf(row.peak_at_ns),
    value: row.value,
    expected: row.expected,
    lower: row.lower,
    upper: row.upper,
    score: row.score,
    reason: row.reason,
    created_at: instantText(row.created_at_ms),
    updated_at: instantText(row.updated_at_ms),
  }
}

function instantOf(text: string): string {
  return formatInstant(BigInt(text))
}

type AnomalyColumns = ExpressionBuilder<Database, 'anomalies'>

/** `signal` lists what the values came from, such as `traces` or `metrics,logs,traces`. */
function isTouched(where: AnomalyColumns, signals: readonly Signal[], range: TimeRange) {
  const conditions = [where.or(signals.map((signal) => where('signal', 'like', `%${signal}%`)))]
  if (range.startNs !== null) conditions.push(where(ns('seen_until_ns'), '>', bound(range.startNs)))
  if (range.endNs !== null) conditions.push(where(ns('started_at_ns'), '<', bound(range.endNs)))
  return where.and(conditions)
}

/** Nanoseconds are kept as text; compared as 64-bit integers. */
function ns(column: 'started_at_ns' | 'seen_until_ns') {
  return sql<bigint>`cast(${sql.ref(column)} as bigint)`
}

function bound(instantNs: Ns) {
  return sql<bigint>`cast(${instantNs.toString()} as bigint)`
}
