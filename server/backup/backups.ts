// Takes requested backups, removes expired ones, and handles at the start what a crash left. It runs inside
// the deletion loop, so that no erasure acts while engine and control plane are copied: a backup is
// completely from before an erasure or completely from after it. Hashing the copy and syncing it come
// afterwards, beside the loop, because the content of the copy no longer changes and an erasure need not wait
// for it. A folder gets its final name only when it is complete, and a backup is recorded as failed only when
// nothing of it is on disk. Where the disk stays silent, what runs is given up, so that the loop goes on; the
// locks are kept until the copy has ended, and until later rounds have removed or recorded what it wrote, the
// backup counts as running.

import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../core/clock.ts'
import { type DiskCalls, patientLooks } from '../disk/disk-calls.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { LocalEngineFiles } from '../telemetry/engine-files.ts'
import { LeaseLost } from '../worker/lease.ts'
import { engineBytes, engineVersion } from './engine-copy.ts'
import { findLackOfSpace, namesIn, readIfThere, removeFolder, renameSynced, sealFolder } from './files.ts'
import { type ErasureJournal, journalFile } from './journal.ts'
import {
  BackupError,
  backupIdPattern,
  bytesOf,
  controlFile,
  engineFolder,
  instanceFile,
  instanceHash,
  type Manifest,
  readManifest,
  telemetrySchemaHash,
  writeManifest,
} from './manifest.ts'
import type { BackupRegister, BackupRow, TakenBackup } from './register.ts'

export interface BackupsDeps {
  readonly register: BackupRegister
  readonly journal: ErasureJournal
  readonly engine: TelemetryEngine
  readonly files: LocalEngineFiles
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

const takingSuffix = '.taking'

/** Pause before the next try to remove or record a backup where that failed. */
const removalPauseMs = 60_000

export class Backups {
  readonly #deps: BackupsDeps
  /** No removal is tried before this time, by the monotonic clock. */
  #notBeforeMs = Number.NEGATIVE_INFINITY
  /** The copy that is being sealed; one at a time. Never rejects. */
  #sealing: Promise<void> | null = null

  constructor(deps: BackupsDeps) {
    this.#deps = deps
  }

  /**
   * Call it before anything is served: removes incomplete and partly removed folders, records complete ones
   * again, and records backups that were running when the process ended as failed.
   */
  async settle(): Promise<void> {
    const { backupDir, logger, register } = this.#deps
    for (const name of await namesIn(backupDir)) {
      const folder = join(backupDir, name)
      const isOurs = backupIdPattern.test(name.split('.')[0] ?? '')
      if (isOurs && name.endsWith('.removing')) await rm(folder, { recursive: true, force: true })
      else if (isOurs && name.endsWith(takingSuffix)) await this.#removeUnfinished(folder, name)
      else if (isOurs) await this.#adopt(folder, name)
    }
    for (const row of await register.inStatus('running')) {
      logger.warn({ backupId: row.backup_id }, 'the process ended while this backup was taken')
      await register.fail(row.backup_id, 'The process ended while the backup was taken.')
    }
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
      await this.#endGivenUp()
      if (next !== undefined) await this.#take(next, signal)
    }
    await this.#removeAllExpired()
  }

  /** Ends the backups that stayed `running`. Call it only while none is copied or sealed. */
  async #endGivenUp(): Promise<void> {
    for (const row of await this.#deps.register.inStatus('running')) {
      await this.#orLater(row, 'a backup that was given up could not be ended', () => this.#endLeft(row))
    }
  }

  async #removeAllExpired(): Promise<void> {
    const { logger, register, trustedNowMs } = this.#deps
    for (const row of await register.inStatus('ready')) {
      const nowMs = await trustedNowMs()
      if (nowMs === null) return
      if (row.expires_at_ms > nowMs) continue
      await this.#orLater(row, 'an expired backup could not be removed', async () => {
        await this.#removeExpired(row)
        logger.info({ backupId: row.backup_id }, 'an expired backup was removed')
      })
    }
  }

  /** Runs the work while the disk answers. Where it fails, nothing of this kind is tried for a pause. */
  async #orLater(row: BackupRow, failure: string, work: () => Promise<void>): Promise<void> {
    const { clock, disk, logger } = this.#deps
    if (clock.steady().ms < this.#notBeforeMs) return
    try {
      await disk.during(work)
    } catch (err) {
      logger.error({ err, backupId: row.backup_id }, failure)
      this.#notBeforeMs = clock.steady().ms + removalPauseMs
    }
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

  async #removeExpired(row: BackupRow): Promise<void> {
    await assertReachable(row)
    await removeBackup(this.#deps.register, row)
  }

  /** Records a backup that is complete after all, or removes what was written of it. */
  async #endLeft(row: BackupRow): Promise<void> {
    const { logger, register } = this.#deps
    const backupId = row.backup_id
    const names = await assertReachable(row)
    if (!names.includes(backupId)) {
      await removeFolder(`${row.folder}${takingSuffix}`)
      await register.fail(backupId, 'The backup was given up; the log of the service names the cause.')
      logger.info({ backupId }, 'what was left of a backup that was given up was removed')
      return
    }
    await this.#adopt(row.folder, backupId)
    if ((await register.find(backupId))?.status === 'running') {
      throw new BackupError(`${row.folder} is not a backup of this data folder.`)
    }
    logger.info({ backupId }, 'a backup that was given up is complete')
  }

  async #take(row: BackupRow, signal: AbortSignal): Promise<void> {
    const { disk, register, whileNothingErases } = this.#deps
    await register.begin(row.backup_id)
    if (!(await this.#isDiskAnswering(row))) return
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

  /** Where the disk does not answer, the backup has failed without having written anything. */
  async #isDiskAnswering(row: BackupRow): Promise<boolean> {
    const { disk, logger, register } = this.#deps
    try {
      await disk.check()
      return true
    } catch (err) {
      logger.error({ err, backupId: row.backup_id }, 'a backup could not be taken')
      await register.fail(row.backup_id, err instanceof Error ? err.message : String(err))
      return false
    }
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
      await disk.during(() => removeFolder(`${row.folder}${takingSuffix}`))
      await register.fail(row.backup_id, cause instanceof Error ? cause.message : String(cause))
    } catch (err) {
      logger.error({ err, backupId: row.backup_id }, 'a failed backup could not be removed')
    }
  }

  /**
   * Engine and control plane are in the folder when this resolves. Returns the moment of the copy, with the
   * erasures that were completed by then.
   */
  async #copy(row: BackupRow, signal: AbortSignal): Promise<CopyMoment> {
    const { clock, copyControl, failpoint, files, folderSecret, register } = this.#deps
    signal.throwIfAborted()
    await this.#assertPossible(row)
    const folder = `${row.folder}${takingSuffix}`
    await mkdir(folder, { mode: 0o700 })
    await writeFile(join(folder, instanceFile), folderSecret, { mode: 0o600 })
    const takenAtMs = clock.nowMs()
    const erased = await register.completedErasures()
    const path = `${row.backup_id}${takingSuffix}/${engineFolder}`
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
    const folder = `${row.folder}${takingSuffix}`
    await failpoint('backup copied')
    const files = await sealFolder(folder, signal)
    await writeManifest(folder, await this.#describe(row, moment, files))
    await failpoint('backup sealed')
    await renameSynced(folder, join(backupDir, row.backup_id))
    await failpoint('backup in place')
    return { ...moment, bytes: bytesOf(files) }
  }

  async #assertPossible(row: BackupRow): Promise<void> {
    const { backupDir, controlBytes, engine, journal, sideTables } = this.#deps
    if (!backupIdPattern.test(row.backup_id) || row.folder !== join(backupDir, row.backup_id)) {
      throw new BackupError(
        `It was requested in ${dirname(row.folder)}, but the service keeps its backups in ${backupDir}; see LETHE_BACKUP_DIR.`,
      )
    }
    if ((await sideTables()).length > 0) {
      throw new BackupError('An erasure was interrupted; take the backup when it has completed.')
    }
    await mkdir(backupDir, { recursive: true, mode: 0o700 })
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

  /** Incomplete folders of another data folder with the same backup folder are left unchanged. */
  async #removeUnfinished(folder: string, name: string): Promise<void> {
    const { folderSecret, register } = this.#deps
    const isKnown = (await register.find(name.slice(0, -takingSuffix.length))) !== null
    if (isKnown || (await readIfThere(join(folder, instanceFile))) === folderSecret)
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

function stopped({ reason }: AbortSignal): BackupError {
  const what = reason instanceof LeaseLost ? 'The process lost its lease' : 'The service was stopped'
  return new BackupError(`${what} while the backup was taken.`)
}

/**
 * Returns the names beside a backup. Throws where its folder isn't visible because the disk may be unmounted:
 * the journal, which is beside every backup, shows whether it is there.
 */
async function assertReachable({ backup_id, folder }: BackupRow): Promise<string[]> {
  const names = await namesIn(dirname(folder))
  const expected = [backup_id, `${backup_id}${takingSuffix}`, journalFile]
  if (expected.some((name) => names.includes(name))) return names
  throw new BackupError(`${folder} can't be reached; is its disk there?`)
}

/** Removes a backup's folder, then records it. */
export async function removeBackup(register: BackupRegister, row: BackupRow): Promise<void> {
  await removeFolder(row.folder)
  await register.remove(row.backup_id)
}
