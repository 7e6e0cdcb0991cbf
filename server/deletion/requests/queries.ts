// Reads deletion requests: those of one organisation for its people, those of all organisations for the
// worker. Nothing here writes.

import type { DeletionRequest, DeletionStatus } from '../../../contract/deletion/requests.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { AppError } from '../../core/app-error.ts'
import { instantText } from '../../core/clock.ts'
import {
  type CompletedDeletion,
  completedColumns,
  type KnownBackups,
  type RequestRow,
  type StoredDeletion,
  toCompleted,
  toRequest,
  toStored,
} from './request.ts'

/** Returns which backups may have a copy of what these requests erase. */
type FindBackups = (requestIds: readonly string[]) => Promise<KnownBackups>

const stepsShownMax = 1000

export class RequestQueries {
  readonly #control: Control
  readonly #findBackups: FindBackups

  constructor(control: Control, findBackups: FindBackups) {
    this.#control = control
    this.#findBackups = findBackups
  }

  /**
   * Returns the request with its steps. Throws `not_found` for an unknown id, and for one of another
   * organisation alike.
   */
  async get(tenantId: string, requestId: string): Promise<DeletionRequest> {
    const request = await this.wireForm(await requireRow(this.#control, tenantId, requestId))
    return { ...request, detail: { ...request.detail, steps: await this.#steps(requestId) } }
  }

  /** Returns the wire form of a row that was read already. */
  async wireForm(row: RequestRow): Promise<DeletionRequest> {
    return toRequest(row, await this.#findBackups([row.request_id]))
  }

  /** Returns the request in the form that the rest of the room uses. Throws as {@link get} does. */
  async stored(tenantId: string, requestId: string): Promise<StoredDeletion> {
    return toStored(await requireRow(this.#control, tenantId, requestId))
  }

  /** Returns its steps in their order, at most {@link stepsShownMax}, which is years of telemetry. */
  async #steps(requestId: string) {
    const rows = await this.#control
      .selectFrom('deletion_steps')
      .selectAll()
      .where('request_id', '=', requestId)
      .orderBy('ordinal')
      .limit(stepsShownMax)
      .execute()
    return rows.map(({ store, partition_id, action, rows: selected, bytes, done_at_ms }) => ({
      store,
      partition: partition_id,
      action,
      rows: selected,
      bytes,
      done_at: done_at_ms === null ? null : instantText(done_at_ms),
    }))
  }

  /** Returns a page, newest first, of requests before `beforeId` where given. */
  async list(
    tenantId: string,
    page: { limit: number; beforeId: string | null; status: DeletionStatus | null },
  ): Promise<DeletionRequest[]> {
    let query = this.#control
      .selectFrom('deletion_requests')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('request_id', 'desc')
      .limit(page.limit)
    if (page.beforeId !== null) query = query.where('request_id', '<', page.beforeId)
    if (page.status !== null) query = query.where('status', '=', page.status)
    const rows = await query.execute()
    const backups = await this.#findBackups(rows.map(({ request_id }) => request_id))
    return rows.map((row) => toRequest(row, backups))
  }

  /**
   * Returns the requests of every organisation, or of one, in the given states, in the order in which they
   * were created.
   */
  async inStatus(
    statuses: readonly DeletionStatus[],
    tenantId: string | null = null,
  ): Promise<StoredDeletion[]> {
    let query = this.#control
      .selectFrom('deletion_requests')
      .selectAll()
      .where('status', 'in', [...statuses])
      .orderBy('seq')
    if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
    return (await query.execute()).map(toStored)
  }

  /** Returns the completed requests of every organisation, in the order in which they were created. */
  async completed(): Promise<CompletedDeletion[]> {
    const rows = await this.#control
      .selectFrom('deletion_requests')
      .select(completedColumns)
      .where('status', '=', 'completed')
      .orderBy('seq')
      .execute()
    return rows.map(toCompleted)
  }

  /** Returns whether the organisation has another request that was attempted and is not completed. */
  async hasBegunAnother({ requestId, tenantId }: StoredDeletion): Promise<boolean> {
    const begun = await this.#control
      .selectFrom('deletion_requests')
      .select('request_id')
      .where('tenant_id', '=', tenantId)
      .where('status', 'in', ['held', 'running', 'verifying', 'incomplete', 'failed'])
      .where('attempts', '>', 0)
      .where('request_id', '!=', requestId)
      .limit(1)
      .executeTakeFirst()
    return begun !== undefined
  }
}

export async function requireRow(
  control: Control | ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<RequestRow> {
  const row = await findRow(control, tenantId, requestId)
  if (row === null) throw new AppError('not_found')
  return row
}

export async function findRow(
  control: Control | ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<RequestRow | null> {
  const row = await control
    .selectFrom('deletion_requests')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('request_id', '=', requestId)
    .executeTakeFirst()
  return row ?? null
}
