// How detectors are stored: reads and writes their rows. Definitions are JSON columns. The store decides who
// may change them, and writes the audit log. No read parses more than a few rows before other work runs.

import type { Selectable } from 'kysely'
import { DetectorScope, DetectorStatus } from '../../../contract/detection/detectors.ts'
import { MethodKey } from '../../../contract/detection/methods.ts'
import type { Control, ControlTransaction, DetectorsTable } from '../../control/database.ts'
import { InvalidInput, problem } from '../../core/app-error.ts'
import { newId } from '../../core/ids.ts'
import { pageBytes } from '../../core/input/cursor.ts'
import { isRecord } from '../../core/input/is-record.ts'
import { Pace } from '../../core/turns/pace.ts'
import { idList, idsMax } from '../anomalies/id-list.ts'
import type { DetectorDefinition, StoredDetector } from './detector.ts'

/**
 * More than people look at. Organisations run by turns, so a large number delays only its own organisation.
 */
const detectorsMax = 1000

/** Inserts a detector that is due at once and returns its id. For system detectors and for the store. */
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

/** Throws InvalidInput where the organisation has the largest number of detectors. */
export async function refuseTooManyDetectors(trx: ControlTransaction, tenantId: string): Promise<void> {
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

/** Reads a detector; null where the organisation has none with this id. */
export async function findDetectorRow(
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

/** A page of a list of detectors. */
export interface DetectorPage {
  readonly limit: number
  readonly beforeId: string | null
}

/**
 * Reads a page, newest first: fewer than `limit` where those have more bytes than a response may, but always
 * one more than the response has room for. Rows are read and parsed a few at a time, and other work of the
 * event loop runs in between: scopes of before there was a limit have 60 kB each.
 */
export async function readDetectorPage(
  control: Control,
  tenantId: string,
  { beforeId, limit }: DetectorPage,
  pace = new Pace(),
): Promise<StoredDetector[]> {
  const detectors: StoredDetector[] = []
  let [bytes, lastId] = [0, beforeId]
  while (detectors.length < limit && (bytes <= pageBytes || detectors.length < 2)) {
    const wanted = Math.min(idsMax, limit - detectors.length)
    let query = control
      .selectFrom('detectors')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('id', 'desc')
      .limit(wanted)
    if (lastId !== null) query = query.where('id', '<', lastId)
    const rows = await query.execute()
    for (const row of rows) {
      if (pace.isOver()) await pace.turn()
      detectors.push(readDetector(row))
      bytes += Buffer.byteLength(row.scope) + Buffer.byteLength(row.params)
      lastId = row.id
    }
    if (rows.length < wanted) break
  }
  return detectors
}

/** What an anomaly needs to know of the detector that raised it. */
export interface DetectorSubject {
  readonly metricKey: string
  readonly methodKey: string
  /** Of its scope; undefined where it has none. */
  readonly service: string | undefined
}

/**
 * Reads the subjects of the detectors that exist, by id; any number of ids. The database answers on the event
 * loop, so a few are read at a time.
 */
export async function readSubjects(
  control: Control,
  tenantId: string,
  ids: readonly string[],
  pace: Pace,
): Promise<Map<string, DetectorSubject>> {
  const subjects = new Map<string, DetectorSubject>()
  for (let i = 0; i < ids.length; i += idsMax) {
    const rows = await control
      .selectFrom('detectors')
      .select(['id', 'metric_key', 'method_key', 'scope'])
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', idList(ids.slice(i, i + idsMax)))
      .execute()
    for (const { id, method_key: methodKey, metric_key: metricKey, scope } of rows) {
      if (pace.isOver()) await pace.turn()
      subjects.set(id, { metricKey, methodKey, service: serviceIn(scope) })
    }
  }
  return subjects
}

/** The service of a stored scope. The rest is not checked, which would take longer than reading it. */
function serviceIn(scope: string): string | undefined {
  const read: unknown = JSON.parse(scope)
  return isRecord(read) && typeof read.service === 'string' ? read.service : undefined
}

export function definitionColumns(definition: DetectorDefinition) {
  return {
    ...definition,
    params: JSON.stringify(definition.params),
    scope: JSON.stringify(definition.scope),
    enabled: definition.enabled ? 1 : 0,
  }
}

export function readDetector(row: Selectable<DetectorsTable>): StoredDetector {
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
    tuningRevision: row.tuning_revision,
    lastRunAtMs: row.last_run_at_ms,
    lastStatus: DetectorStatus.nullable().parse(row.last_status),
    lastNote: row.last_note,
    nextRunAtMs: row.next_run_at_ms,
    createdAtMs: row.created_at_ms,
  }
}
