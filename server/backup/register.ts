// The register of backups: which were requested, taken, failed and removed, and which may still contain what
// has since been erased. A backup counts from its request until its folder is known to be removed. Whether it
// was taken before or after an erasure is decided by what both record, never by a clock: when an erasure
// completes, the backups of that moment are recorded beside it (deletion/requests/store.ts), and a backup
// names the erasures that were completed when it began. Without such a record the backup counts as containing
// the telemetry.

import type { Insertable, Selectable } from 'kysely'
import { actorValues } from '../control/actor-columns.ts'
import {
  type BackupsTable,
  type Control,
  type ControlTransaction,
  type ErasureBackupsTable,
  statusesWithTelemetry,
} from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import { type Actor, systemActor } from '../core/actor.ts'
import type { Clock } from '../core/clock.ts'
import { newId } from '../core/ids.ts'

export type BackupRow = Selectable<BackupsTable>

/** A backup that may contain a copy of erased telemetry. */
interface KnownBackupCopy {
  readonly backup_id: string
  /** Null until it is taken. */
  readonly taken_at_ms: number | null
  readonly expires_at_ms: number
}

/** The content of a complete backup. */
export interface TakenBackup {
  readonly takenAtMs: number
  readonly bytes: number
  /**
   * Erasures that were completed before it began, so that it contains nothing of them; null where this is
   * unknown.
   */
  readonly erased: readonly string[] | null
}

/** The known backups that may contain what an erasure has erased, newest first. */
interface BackupsWithTelemetry {
  /** All that exist, or will exist when they are taken. */
  readonly all: readonly KnownBackupCopy[]
  /** Those that are not known to be from after its completion; only for the requested erasures. */
  fromBefore(requestId: string): readonly KnownBackupCopy[]
}

const msPerDay = 86_400_000

/** A statement may have 32,766 values in SQLite and 65,535 in PostgreSQL. */
const idsAtOnce = 1_000

export class BackupRegister {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  /** Requests a backup below `backupDir`, to be kept for `keepDays` from now. Returns its id. */
  async request(backupDir: string, keepDays: number, requestedBy: Actor): Promise<string> {
    const nowMs = this.#clock.nowMs()
    const backupId = newId('bak', nowMs)
    const row = {
      backup_id: backupId,
      folder: `${backupDir}/${backupId}`,
      status: 'requested',
      ...actorValues('requested_by', requestedBy),
      requested_at_ms: nowMs,
      taken_at_ms: null,
      expires_at_ms: nowMs + keepDays * msPerDay,
      bytes: null,
      error: null,
      removed_at_ms: null,
      order_known: 1,
    }
    await this.#change((trx) => insertBackup(trx, row))
    return backupId
  }

  async find(backupId: string): Promise<BackupRow | null> {
    const row = await this.#rows().where('backup_id', '=', backupId).executeTakeFirst()
    return row ?? null
  }

  /** Newest first. */
  list(): Promise<BackupRow[]> {
    return this.#rows().orderBy('backup_id', 'desc').execute()
  }

  /** Oldest first. */
  inStatus(status: string): Promise<BackupRow[]> {
    return this.#rows().where('status', '=', status).orderBy('backup_id').execute()
  }

  /**
   * Returns backups that may contain what completed erasures have erased. A failed backup has no folder and
   * does not count.
   */
  async containing(requestIds: readonly string[] = []): Promise<BackupsWithTelemetry> {
    const rows = await this.#rows()
      .where('status', 'in', statusesWithTelemetry)
      .orderBy('backup_id', 'desc')
      .execute()
    const noted = await this.#noted(requestIds)
    const before = new Set(noted.map(({ request_id, backup_id }) => `${request_id} ${backup_id}`))
    return {
      all: rows.map(toCopy),
      fromBefore: (requestId) =>
        rows
          .filter((row) => row.order_known !== 1 || before.has(`${requestId} ${row.backup_id}`))
          .map(toCopy),
    }
  }

  /** Returns the completed erasures; a backup that begins now contains nothing of them. */
  async completedErasures(): Promise<string[]> {
    return completedIn(this.#control)
  }

  async begin(backupId: string): Promise<void> {
    await this.#update(backupId, { status: 'running' })
  }

  async succeed(backupId: string, taken: TakenBackup): Promise<void> {
    await this.#change((trx) => markReady(trx, backupId, taken))
  }

  async fail(backupId: string, error: string): Promise<void> {
    await this.#update(backupId, { status: 'failed', error })
  }

  /** Records why a running backup that nobody takes any more could not be ended. It stays `running`. */
  async note(backupId: string, error: string): Promise<void> {
    await this.#update(backupId, { error })
  }

  async remove(backupId: string): Promise<void> {
    const removed = { status: 'removed', removed_at_ms: this.#clock.nowMs() }
    await this.#change(async (trx) => {
      await trx.updateTable('backups').set(removed).where('backup_id', '=', backupId).execute()
      await forgetOrder(trx, backupId)
    })
  }

  /**
   * Records a backup by its folder: the control plane may be older than the backup, the process ended before
   * the backup was recorded as ready, or its disk has got another path meanwhile.
   */
  async adopt(found: {
    backupId: string
    folder: string
    expiresAtMs: number
    taken: TakenBackup
  }): Promise<void> {
    await this.#change(async (trx) => {
      const known = await trx
        .selectFrom('backups')
        .select('status')
        .where('backup_id', '=', found.backupId)
        .executeTakeFirst()
      if (known?.status === 'ready') return
      if (known === undefined) {
        const row = {
          backup_id: found.backupId,
          folder: found.folder,
          status: 'ready',
          ...actorValues('requested_by', systemActor('found')),
          requested_at_ms: found.taken.takenAtMs,
          taken_at_ms: null,
          expires_at_ms: found.expiresAtMs,
          bytes: null,
          error: null,
          removed_at_ms: null,
        }
        await insertBackup(trx, row)
      } else {
        const { backupId, folder } = found
        await trx.updateTable('backups').set({ folder }).where('backup_id', '=', backupId).execute()
      }
      await markReady(trx, found.backupId, found.taken)
    })
  }

  async #noted(requestIds: readonly string[]): Promise<Selectable<ErasureBackupsTable>[]> {
    const noted: Selectable<ErasureBackupsTable>[] = []
    for (let at = 0; at < requestIds.length; at += idsAtOnce) {
      const rows = await this.#control
        .selectFrom('erasure_backups')
        .selectAll()
        .where('request_id', 'in', requestIds.slice(at, at + idsAtOnce))
        .execute()
      noted.push(...rows)
    }
    return noted
  }

  #rows() {
    return this.#control.selectFrom('backups').selectAll()
  }

  /**
   * A transaction during which no other backup is recorded and no erasure is recorded as completed: of the
   * two, the second always finds the first.
   */
  #change(work: (trx: ControlTransaction) => Promise<void>): Promise<void> {
    return transact(this.#control, async (trx) => {
      await lock(trx, 'backups')
      await work(trx)
    })
  }

  async #update(backupId: string, changes: Partial<Pick<BackupRow, 'status' | 'error'>>): Promise<void> {
    await this.#control.updateTable('backups').set(changes).where('backup_id', '=', backupId).execute()
  }
}

async function insertBackup(trx: ControlTransaction, row: Insertable<BackupsTable>): Promise<void> {
  await trx.insertInto('backups').values(row).execute()
}

function toCopy({ backup_id, taken_at_ms, expires_at_ms }: BackupRow): KnownBackupCopy {
  return { backup_id, taken_at_ms, expires_at_ms }
}

/**
 * A completed erasure that the backup does not name was completed after it, or in another history of the
 * control plane.
 */
async function markReady(
  trx: ControlTransaction,
  backupId: string,
  { takenAtMs, bytes, erased }: TakenBackup,
): Promise<void> {
  const ready = { status: 'ready', taken_at_ms: takenAtMs, bytes, error: null, removed_at_ms: null }
  const order_known = erased === null ? 0 : 1
  await trx
    .updateTable('backups')
    .set({ ...ready, order_known })
    .where('backup_id', '=', backupId)
    .execute()
  await forgetOrder(trx, backupId)
  if (erased === null) return
  const isNamed = new Set(erased)
  for (const request_id of await completedIn(trx)) {
    if (isNamed.has(request_id)) continue
    await trx.insertInto('erasure_backups').values({ request_id, backup_id: backupId }).execute()
  }
}

async function forgetOrder(trx: ControlTransaction, backupId: string): Promise<void> {
  await trx.deleteFrom('erasure_backups').where('backup_id', '=', backupId).execute()
}

async function completedIn(control: Control | ControlTransaction): Promise<string[]> {
  const rows = await control
    .selectFrom('deletion_requests')
    .select('request_id')
    .where('status', '=', 'completed')
    .orderBy('request_id')
    .execute()
  return rows.map(({ request_id }) => request_id)
}
