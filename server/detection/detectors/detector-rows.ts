// How detectors are stored: reads and writes the row of a detector. Definitions are JSON columns. The store
// decides who may change them, and writes the audit log.

import type { Selectable } from 'kysely'
import { DetectorScope, DetectorStatus } from '../../../contract/detection/detectors.ts'
import { MethodKey } from '../../../contract/detection/methods.ts'
import type { Control, ControlTransaction, DetectorsTable } from '../../control/database.ts'
import { InvalidInput, problem } from '../../core/app-error.ts'
import { newId } from '../../core/ids.ts'
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
