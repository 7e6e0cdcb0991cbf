// The register of backups: which were asked for, taken, failed and removed, and which may still hold what has
// since been erased. A backup counts as held from the moment it is asked for until its folder is known to be gone.

import type { Insertable, Selectable } from 'kysely'
import type { BackupsTable, Control } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'
import { newId } from '../core/ids.ts'

export type BackupRow = Selectable<BackupsTable>

/** A backup that may hold a copy of erased telemetry. */
export interface HoldingBackup {
  readonly backup_id: string
  /** Null while it is still to be taken. */
  readonly taken_at_ms: number | null
  readonly expires_at_ms: number
}

/** What is in a backup that is whole. */
export interface TakenBackup {
  readonly takenAtMs: number
  readonly bytes: number
}

const msPerDay = 86_400_000

export class BackupRegister {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  /** Asks for a backup below `backupDir`, to be kept for `keepDays` from now. Answers its id. */
  async request(backupDir: string, keepDays: number, requestedBy: string): Promise<string> {
    const nowMs = this.#clock.nowMs()
    const backupId = newId('bak', nowMs)
    await this.#insert({
      backup_id: backupId,
      folder: `${backupDir}/${backupId}`,
      status: 'requested',
      requested_by: requestedBy,
      requested_at_ms: nowMs,
      taken_at_ms: null,
      expires_at_ms: nowMs + keepDays * msPerDay,
      bytes: null,
      error: null,
      removed_at_ms: null,
    })
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
   * Backups that may hold what was there at `untilMs`, newest first: those taken by then, and those under way,
   * whose moment isn't settled. A failed backup has no folder and holds nothing.
   */
  async holding(untilMs: number): Promise<HoldingBackup[]> {
    const rows = await this.#rows()
      .where((where) =>
        where.or([
          where('status', 'in', ['requested', 'running']),
          where.and([where('status', '=', 'ready'), where('taken_at_ms', '<=', untilMs)]),
        ]),
      )
      .orderBy('backup_id', 'desc')
      .execute()
    return rows.map(({ backup_id, taken_at_ms, expires_at_ms }) => ({
      backup_id,
      taken_at_ms,
      expires_at_ms,
    }))
  }

  async begin(backupId: string): Promise<void> {
    await this.#update(backupId, { status: 'running' })
  }

  async succeed(backupId: string, { takenAtMs, bytes }: TakenBackup): Promise<void> {
    await this.#update(backupId, { status: 'ready', taken_at_ms: takenAtMs, bytes, error: null })
  }

  async fail(backupId: string, error: string): Promise<void> {
    await this.#update(backupId, { status: 'failed', error })
  }

  async remove(backupId: string): Promise<void> {
    await this.#update(backupId, { status: 'removed', removed_at_ms: this.#clock.nowMs() })
  }

  /**
   * Knows a backup by its folder: the control plane may be older than the backup, or have ended before the backup
   * was recorded as ready.
   */
  async adopt(found: {
    backupId: string
    folder: string
    expiresAtMs: number
    taken: TakenBackup
  }): Promise<void> {
    const known = await this.find(found.backupId)
    if (known === null) {
      await this.#insert({
        backup_id: found.backupId,
        folder: found.folder,
        status: 'ready',
        requested_by: 'system:found',
        requested_at_ms: found.taken.takenAtMs,
        taken_at_ms: found.taken.takenAtMs,
        expires_at_ms: found.expiresAtMs,
        bytes: found.taken.bytes,
        error: null,
        removed_at_ms: null,
      })
    } else if (known.status !== 'ready') {
      const { takenAtMs, bytes } = found.taken
      await this.#update(found.backupId, {
        status: 'ready',
        taken_at_ms: takenAtMs,
        bytes,
        error: null,
        removed_at_ms: null,
      })
    }
  }

  #rows() {
    return this.#control.selectFrom('backups').selectAll()
  }

  async #insert(row: Insertable<BackupsTable>): Promise<void> {
    await this.#control.insertInto('backups').values(row).execute()
  }

  async #update(
    backupId: string,
    changes: Partial<Pick<BackupRow, 'status' | 'taken_at_ms' | 'bytes' | 'error' | 'removed_at_ms'>>,
  ): Promise<void> {
    await this.#control.updateTable('backups').set(changes).where('backup_id', '=', backupId).execute()
  }
}
