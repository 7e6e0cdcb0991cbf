// Ends what a crash, or a disk that did not answer, left of backups, and removes those that expired. A folder
// that is empty or absent looks the same as one whose disk is not mounted, and the journal shows nothing
// either, because each start writes it where it is missing. So a backup is recorded as failed or removed only
// where something of it is seen: from before it is `running` until after its end is recorded, one of its
// names is in its folder (`takingOf`, files.ts `removingOf`). Until then it counts as one that may contain
// telemetry.

import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../core/clock.ts'
import type { DiskCalls } from '../disk/disk-calls.ts'
import { namesIn, readIfThere, removeFolder, removingOf } from './files.ts'
import {
  BackupError,
  backupIdPattern,
  bytesOf,
  instanceFile,
  instanceHash,
  readManifest,
} from './manifest.ts'
import type { BackupRegister, BackupRow } from './register.ts'

export interface LeftBackupsDeps {
  readonly register: BackupRegister
  readonly clock: Clock
  /** The time for the expiry of backups; null while the clock is in doubt, and then none is removed. */
  readonly trustedNowMs: () => Promise<number | null>
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info' | 'warn'>
  readonly backupDir: string
  /** The file system of `backupDir`. */
  readonly disk: DiskCalls
  /**
   * The data folder's secret: a copy is restored only into the same folder, or with the secret into an empty
   * one.
   */
  readonly folderSecret: string
}

/** The folder of a backup until it is complete. */
export function takingOf(folder: string): string {
  return `${folder}.taking`
}

/** Pause before the next try to remove or record a backup where that failed. */
const removalPauseMs = 60_000

const processEnded = 'The process ended while the backup was taken.'
const givenUp = 'The backup was given up; the log of the service names the cause.'

/** What the last try to end or remove a backup said. */
interface Failed {
  readonly message: string
  /** By the monotonic clock. */
  readonly notBeforeMs: number
}

export class LeftBackups {
  readonly #deps: LeftBackupsDeps
  /** By the id of the backup: one that can't be reached must not delay the others. */
  readonly #failed = new Map<string, Failed>()

  constructor(deps: LeftBackupsDeps) {
    this.#deps = deps
  }

  /**
   * Call it before anything is served: ends backups that were running when the process ended, removes
   * incomplete and partly removed folders, and records complete ones again. A backup whose disk isn't there
   * stays `running`, and {@link endGivenUp} ends it later.
   */
  async settle(): Promise<void> {
    const { backupDir, logger, register } = this.#deps
    for (const row of await register.inStatus('running')) {
      logger.warn({ backupId: row.backup_id }, 'the process ended while this backup was taken')
      try {
        await this.#endLeft(row, processEnded)
      } catch (error) {
        if (!(error instanceof BackupError)) throw error
        logger.error({ err: error, backupId: row.backup_id }, 'a backup could not be ended')
      }
    }
    for (const name of await namesIn(backupDir)) {
      const backupId = name.split('.')[0] ?? ''
      if (!backupIdPattern.test(backupId)) continue
      const row = await register.find(backupId)
      if (row?.status !== 'running') await this.#settleFolder(name, backupId, row)
    }
  }

  async #settleFolder(name: string, backupId: string, row: BackupRow | null): Promise<void> {
    const { backupDir, register } = this.#deps
    const folder = join(backupDir, name)
    const complete = join(backupDir, backupId)
    if (name === backupId) await this.#adopt(folder, name)
    else if (folder === takingOf(complete)) await this.#removeUnfinished(folder, row)
    else if (folder === removingOf(complete) && row?.status === 'ready' && row.folder === complete) {
      if (!(await namesIn(backupDir)).includes(backupId)) await removeBackup(register, row)
      else await rm(folder, { recursive: true, force: true })
    } else if (name.endsWith('.removing')) await rm(folder, { recursive: true, force: true })
  }

  /** Ends the backups that stayed `running`. Call it only while none is copied or sealed. */
  async endGivenUp(): Promise<void> {
    for (const row of await this.#deps.register.inStatus('running')) {
      await this.#orLater(row, 'a backup that was given up could not be ended', () =>
        this.#endLeft(row, givenUp),
      )
    }
  }

  async removeAllExpired(): Promise<void> {
    const { logger, register, trustedNowMs } = this.#deps
    for (const row of await register.inStatus('ready')) {
      const nowMs = await trustedNowMs()
      if (nowMs === null) return
      if (row.expires_at_ms > nowMs) continue
      await this.#orLater(row, 'an expired backup could not be removed', async () => {
        await assertVisible(row)
        await removeBackup(register, row)
        logger.info({ backupId: row.backup_id }, 'an expired backup was removed')
      })
    }
  }

  /**
   * Runs the work while the disk answers. Where it fails, it is not tried again for a pause, and the same
   * message is logged once.
   */
  async #orLater(row: BackupRow, failure: string, work: () => Promise<void>): Promise<void> {
    const { clock, disk, logger } = this.#deps
    const backupId = row.backup_id
    const before = this.#failed.get(backupId)
    if (clock.steady().ms < (before?.notBeforeMs ?? Number.NEGATIVE_INFINITY)) return
    try {
      await disk.during(work)
      this.#failed.delete(backupId)
    } catch (err) {
      const message = err instanceof Error ? err.message : String(err)
      if (message !== before?.message) logger.error({ err, backupId }, failure)
      this.#failed.set(backupId, { message, notBeforeMs: clock.steady().ms + removalPauseMs })
    }
  }

  /**
   * Records a backup that is complete after all, or removes what was written of it and records it as failed
   * with `cause`. Throws BackupError where it can't, and records why, so that people see it.
   */
  async #endLeft(row: BackupRow, cause: string): Promise<void> {
    try {
      await this.#end(row, cause)
    } catch (error) {
      if (error instanceof BackupError && error.message !== row.error) {
        await this.#deps.register.note(row.backup_id, error.message)
      }
      throw error
    }
  }

  async #end(row: BackupRow, cause: string): Promise<void> {
    const { logger, register } = this.#deps
    const backupId = row.backup_id
    const folder = await this.#folderOf(row)
    if (!(await namesIn(dirname(folder))).includes(backupId)) {
      await removeFolder(takingOf(folder), () => register.fail(backupId, cause))
      logger.info({ backupId }, 'what was left of a backup that did not end was removed')
      return
    }
    await this.#adopt(folder, backupId)
    if ((await register.find(backupId))?.status === 'running') {
      throw new BackupError(
        `${folder} is not a backup of this data folder; remove it, or what is wrong in it.`,
      )
    }
    logger.info({ backupId }, 'a backup that did not end is complete')
  }

  /** The folder of a backup, also where its disk has another path than when it was begun. */
  async #folderOf(row: BackupRow): Promise<string> {
    const here = join(this.#deps.backupDir, row.backup_id)
    if (await isVisible({ ...row, folder: here })) return here
    await assertVisible(row)
    return row.folder
  }

  /** Incomplete folders of another data folder with the same backup folder are left unchanged. */
  async #removeUnfinished(folder: string, row: BackupRow | null): Promise<void> {
    const { folderSecret } = this.#deps
    if (row !== null || (await readIfThere(join(folder, instanceFile))) === folderSecret)
      await removeFolder(folder)
  }

  async #adopt(folder: string, name: string): Promise<void> {
    const { folderSecret, logger, register } = this.#deps
    try {
      const manifest = await readManifest(folder)
      if (manifest?.backup_id !== name || manifest.instance_hash !== instanceHash(folderSecret)) return
      const taken = {
        takenAtMs: manifest.taken_at_ms,
        bytes: bytesOf(manifest.files),
        erased: manifest.erased ?? null,
      }
      await register.adopt({ backupId: name, folder, expiresAtMs: manifest.expires_at_ms, taken })
    } catch (error) {
      if (!(error instanceof BackupError)) throw error
      logger.warn({ backupId: name, reason: error.message }, 'a folder beside the backups is not readable')
    }
  }
}

/**
 * Whether anything of a backup is in the folder: while it is taken, complete, or partly removed. Where
 * nothing is, it may be gone, or its disk isn't mounted.
 */
export async function isVisible({ folder, status }: Pick<BackupRow, 'folder' | 'status'>): Promise<boolean> {
  const removed = status === 'running' ? takingOf(folder) : folder
  const own = [folder, removed, removingOf(removed)].map((path) => basename(path))
  return (await namesIn(dirname(folder))).some((name) => own.includes(name))
}

async function assertVisible(row: BackupRow): Promise<void> {
  if (await isVisible(row)) return
  throw new BackupError(
    `Nothing of the backup is in ${dirname(row.folder)}, and it may contain telemetry. Mount its disk; if it was deleted or its disk is lost, run: lethe backup remove ${row.backup_id} --gone`,
  )
}

/** Removes a backup's folder. It is recorded before its last name is gone. */
export async function removeBackup(register: BackupRegister, row: BackupRow): Promise<void> {
  await removeFolder(row.folder, () => register.remove(row.backup_id))
}
