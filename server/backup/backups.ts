// Takes requested backups, and has those ended and removed that left-backups.ts knows how to. It runs inside
// the deletion loop, so that no erasure acts while engine and control plane are copied: a backup is
// completely from before an erasure or completely from after it. Hashing the copy and syncing it come
// afterwards, beside the loop, because the content of the copy no longer changes and an erasure need not wait
// for it. A folder gets its final name only when it is complete. Something of a backup is on its disk before
// it counts as running, and it is recorded as failed only when nothing of its content is. Where the disk
// stays silent, what runs is given up, so that the loop goes on; the locks are kept until the copy has ended,
// and until later rounds have removed or recorded what it wrote, the backup counts as running.

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { patientLooks } from '../disk/disk-calls.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { LocalEngineFiles } from '../telemetry/engine-files.ts'
import { LeaseLost } from '../worker/lease.ts'
import { engineBytes, engineVersion } from './engine-copy.ts'
import { findLackOfSpace, removeFolder, renameSynced, sealFolder, syncPath } from './files.ts'
import type { ErasureJournal } from './journal.ts'
import { LeftBackups, type LeftBackupsDeps, takingOf } from './left-backups.ts'
import {
  BackupError,
  backupIdPattern,
  bytesOf,
  controlFile,
  engineFolder,
  instanceFile,
  instanceHash,
  type Manifest,
  telemetrySchemaHash,
  writeManifest,
} from './manifest.ts'
import type { BackupRow, TakenBackup } from './register.ts'

export interface BackupsDeps extends LeftBackupsDeps {
  readonly journal: ErasureJournal
  readonly engine: TelemetryEngine
  readonly files: LocalEngineFiles
  readonly serviceVersion: string
  /** Name of the newest migration of the control plane. */
  readonly migration: string
  /** The most bytes of a copy of the control plane, and a function that copies it as of one moment. */
  readonly controlBytes: () => Promise<number>
  readonly copyControl: (path: string) => Promise<void>
  /** Tables of unfinished erasures; while there are any, the content of the others is not final. */
  readonly sideTables: () => Promise<readonly unknown[]>
  /**
   * Runs `work` while no attempt of an erasure is in progress. Throws the reason of `signal` where the lease
   * is lost before.
   */
  readonly whileNothingErases: <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>
  /** A point at which a test may end the process. */
  readonly failpoint: (name: string) => Promise<void>
}

/** The moment of a copy: a time for people, and the erasures that were completed by then. */
interface CopyMoment {
  readonly takenAtMs: number
  readonly erased: readonly string[]
}

export class Backups {
  readonly #deps: BackupsDeps
  readonly #left: LeftBackups
  /** The copy that is being sealed; one at a time. Never rejects. */
  #sealing: Promise<void> | null = null

  constructor(deps: BackupsDeps) {
    this.#deps = deps
    this.#left = new LeftBackups(deps)
  }

  /** See {@link LeftBackups.settle}. */
  settle(): Promise<void> {
    return this.#left.settle()
  }

  /**
   * One pass: ends what was given up, copies the oldest requested backup and starts sealing it, both unless
   * another is still being sealed; then removes expired ones. `signal` ends the sealing too. Throws only
   * errors of the control plane.
   */
  async round(signal: AbortSignal): Promise<void> {
    const { register } = this.#deps
    const [next] = await register.inStatus('requested')
    if (signal.aborted) return
    if (this.#sealing === null) {
      await this.#left.endGivenUp()
      if (next !== undefined) await this.#take(next, signal)
    }
    await this.#left.removeAllExpired()
  }

  /** Resolves when no copy is being sealed. */
  async sealed(): Promise<void> {
    await this.#sealing
  }

  /** Takes all requested backups, oldest first, and waits until they are complete. */
  async takeAll(signal: AbortSignal): Promise<void> {
    do {
      await this.round(signal)
      await this.sealed()
    } while (!signal.aborted && (await this.#deps.register.inStatus('requested')).length > 0)
  }

  async #take(row: BackupRow, signal: AbortSignal): Promise<void> {
    const { disk, failpoint, register, whileNothingErases } = this.#deps
    if (!(await this.#isBegun(row))) return
    await failpoint('backup begun')
    await register.begin(row.backup_id)
    // The locks are taken within the work, which may continue after it was given up: while the engine copies,
    // it keeps every part that an erasure replaces. Without this disk no erasure could act anyway.
    const copy = (givenUp: AbortSignal) =>
      whileNothingErases(signal, () => this.#copy(row, AbortSignal.any([signal, givenUp])))
    const moment = await this.#orFail(row, signal, () => disk.during(copy, patientLooks))
    if (moment === null) return
    this.#sealing = this.#finish(row, moment, signal).finally(() => {
      this.#sealing = null
    })
  }

  /**
   * Makes the backup's folder, so that its disk is recognised from before it counts as running. Where that
   * fails, the backup has failed without a copy of anything.
   */
  async #isBegun(row: BackupRow): Promise<boolean> {
    const { disk, logger, register } = this.#deps
    try {
      await disk.check()
      await disk.during(() => this.#begin(row))
      return true
    } catch (err) {
      logger.error({ err, backupId: row.backup_id }, 'a backup could not be taken')
      await register.fail(row.backup_id, err instanceof Error ? err.message : String(err))
      return false
    }
  }

  async #begin(row: BackupRow): Promise<void> {
    const { backupDir, folderSecret } = this.#deps
    if (!backupIdPattern.test(row.backup_id) || row.folder !== join(backupDir, row.backup_id)) {
      throw new BackupError(
        `It was requested in ${dirname(row.folder)}, but the service keeps its backups in ${backupDir}; see LETHE_BACKUP_DIR.`,
      )
    }
    const created = await mkdir(backupDir, { recursive: true, mode: 0o700 })
    const folder = takingOf(row.folder)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(join(folder, instanceFile), folderSecret, { mode: 0o600 })
    await syncPath(folder)
    await syncPath(backupDir)
    if (created !== undefined) await syncPath(dirname(created))
  }

  async #finish(row: BackupRow, moment: CopyMoment, signal: AbortSignal): Promise<void> {
    const { disk, logger, register } = this.#deps
    try {
      const seal = async () => {
        await disk.untilAnswering(patientLooks, signal)
        return disk.during(() => this.#seal(row, moment, signal), patientLooks)
      }
      const taken = await this.#orFail(row, signal, seal)
      if (taken === null) return
      await register.succeed(row.backup_id, taken)
      const { bytes, takenAtMs } = taken
      logger.info({ backupId: row.backup_id, takenAtMs, bytes }, 'backup taken')
    } catch (err) {
      // The folder is in place; a later round finds it there.
      logger.error({ err, backupId: row.backup_id }, 'a backup could not be recorded')
    }
  }

  /** Returns null where the work failed and with it the backup. */
  async #orFail<T>(row: BackupRow, signal: AbortSignal, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work()
    } catch (err) {
      this.#deps.logger.error({ err, backupId: row.backup_id }, 'a backup could not be taken')
      // After a stop of the service errors differ; this is the actual cause.
      await this.#fail(row, signal.aborted ? stopped(signal) : err)
      return null
    }
  }

  /**
   * Where the written files can't be removed, the backup stays `running`: it may contain telemetry until a
   * later round or the next start removes it.
   */
  async #fail(row: BackupRow, cause: unknown): Promise<void> {
    const { disk, logger, register } = this.#deps
    try {
      const message = cause instanceof Error ? cause.message : String(cause)
      await disk.during(() => removeFolder(takingOf(row.folder), () => register.fail(row.backup_id, message)))
    } catch (err) {
      logger.error({ err, backupId: row.backup_id }, 'a failed backup could not be removed')
    }
  }

  /**
   * Engine and control plane are in the folder when this resolves. Returns the moment of the copy, with the
   * erasures that were completed by then.
   */
  async #copy(row: BackupRow, signal: AbortSignal): Promise<CopyMoment> {
    const { clock, copyControl, failpoint, files, register } = this.#deps
    signal.throwIfAborted()
    await this.#assertPossible()
    const folder = takingOf(row.folder)
    const takenAtMs = clock.nowMs()
    const erased = await register.completedErasures()
    const path = join(takingOf(row.backup_id), engineFolder)
    await files.copyTo(path, row.backup_id, clock, signal)
    signal.throwIfAborted()
    await failpoint('backup engine copied')
    // After the engine: an organisation whose telemetry is in the copy is then also in the copied control
    // plane.
    await copyControl(join(folder, controlFile))
    await failpoint('backup control plane copied')
    return { takenAtMs, erased }
  }

  /** The folder is in place when this resolves. */
  async #seal(row: BackupRow, moment: CopyMoment, signal: AbortSignal): Promise<TakenBackup> {
    const { backupDir, failpoint } = this.#deps
    const folder = takingOf(row.folder)
    await failpoint('backup copied')
    const files = await sealFolder(folder, signal)
    await writeManifest(folder, await this.#describe(row, moment, files))
    await failpoint('backup sealed')
    await renameSynced(folder, join(backupDir, row.backup_id))
    await failpoint('backup in place')
    return { ...moment, bytes: bytesOf(files) }
  }

  async #assertPossible(): Promise<void> {
    const { backupDir, controlBytes, engine, journal, sideTables } = this.#deps
    if ((await sideTables()).length > 0) {
      throw new BackupError('An erasure was interrupted; take the backup when it has completed.')
    }
    await journal.ensure()
    const neededBytes = (await engineBytes(engine)) + (await controlBytes())
    const lack = await findLackOfSpace(backupDir, neededBytes)
    if (lack !== null) throw new BackupError(lack)
  }

  async #describe(
    row: BackupRow,
    { takenAtMs, erased }: CopyMoment,
    files: Manifest['files'],
  ): Promise<Manifest> {
    const { engine, folderSecret, migration, serviceVersion } = this.#deps
    return {
      format: 1,
      backup_id: row.backup_id,
      taken_at_ms: takenAtMs,
      expires_at_ms: row.expires_at_ms,
      erased: [...erased],
      service_version: serviceVersion,
      engine_version: await engineVersion(engine),
      telemetry_schema: telemetrySchemaHash(),
      migration,
      instance_hash: instanceHash(folderSecret),
      files,
    }
  }
}

function stopped({ reason }: AbortSignal): BackupError {
  const what = reason instanceof LeaseLost ? 'The process lost its lease' : 'The service was stopped'
  return new BackupError(`${what} while the backup was taken.`)
}
