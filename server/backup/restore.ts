// Restores a backup into a data folder. The new engine is built beside the old one and renamed to a name that
// promises the swap; only then is anything old removed, and the next start completes a promised swap that was
// interrupted. So a crash leaves the old or the new one, never neither. A control plane of the backup takes
// the place of a file, or fills a database that is empty. This code does not know what was erased since the
// backup: the service erases it again before it is ready, by its ledger and by the journal, which is why a
// control plane older than the journal needs the journal.

import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ControlAddress, nameOfControl, openControlAt } from '../control/control-address.ts'
import { folderSecretIn } from '../control/data-folder.ts'
import type { Control } from '../control/database.ts'
import { migrationNames } from '../control/migrate.ts'
import { logsOf } from '../control/sqlite/sqlite.ts'
import { instanceOf } from '../core/process/instance.ts'
import { DiskCalls } from '../disk/disk-calls.ts'
import { openChdb } from '../telemetry/chdb.ts'
import { lockFolder } from '../telemetry/folder-lock.ts'
import { restoreEngine } from './engine-copy.ts'
import { findDifference, findLackOfSpace, renameSynced, syncPath, syncTree } from './files.ts'
import { assertEmpty, fillDatabase, isEmptyDatabase } from './fill-database.ts'
import { ErasureJournal } from './journal.ts'
import {
  BackupError,
  bytesOf,
  controlFile,
  engineFolder,
  instanceFile,
  instanceHash,
  isReadableSchema,
  type Manifest,
  manifestFile,
  readManifest,
} from './manifest.ts'

/** The folders and files of a service. */
interface ServiceData {
  readonly dataDir: string
  readonly control: ControlAddress
}

interface RestoreOptions extends ServiceData {
  /** The backup's folder. It is only read. */
  readonly backup: string
  /** Where the service on this data folder will look for backups and the journal. */
  readonly backupDir: string
  /** Uses the backup's control plane although there is one. */
  readonly isControlReplaced: boolean
  /** Continues where the control plane comes from the backup and no journal records what was erased since. */
  readonly isJournalLost: boolean
  readonly engineMemoryBytes: number
  /** A point at which a test may end the process. */
  readonly failpoint: (name: string) => Promise<void>
}

interface Restored {
  readonly manifest: Manifest
  /** Content of the control plane from the backup; null where the present one was kept. */
  readonly control: { readonly organisations: number; readonly liveTokens: number } | null
  /** Erasures in the journal that a service on this folder reads. */
  readonly journalled: number
}

/** Below the engine's folder, so that both are on its file system. */
const pathsOf = (dataDir: string) => {
  const telemetry = join(dataDir, 'telemetry')
  return {
    telemetry,
    engine: join(telemetry, 'engine'),
    building: join(telemetry, 'restore.building'),
    promised: join(telemetry, 'restore.promised'),
    instance: join(dataDir, instanceFile),
  }
}

/**
 * Checks everything before anything is changed. Throws BackupError or JournalError, whose messages are for
 * the operator, and EngineError where a service runs on the folder.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { backup, dataDir, failpoint } = options
  const manifest = await readManifest(backup)
  if (manifest === null) throw new BackupError(`${backup} is not a backup: it has no ${manifestFile}.`)
  assertReadable(manifest)
  const paths = pathsOf(dataDir)
  await mkdir(paths.telemetry, { recursive: true, mode: 0o700 })
  const lock = lockFolder(paths.telemetry, { command: 'lethe backup restore' })
  try {
    await settleRestore(options)
    const folderSecret = await assertSameInstance(options, manifest)
    const isControlKept = !options.isControlReplaced && (await hasControl(options.control))
    if (isControlKept) await assertControlOf(options.control, folderSecret)
    else await assertReplaceable(options.control)
    const difference = await findDifference(backup, manifest.files, (path) => path !== manifestFile)
    if (difference !== null)
      throw new BackupError(`The backup ${backup} ${difference}; it can't be restored.`)
    const lack = await findLackOfSpace(dataDir, bytesOf(manifest.files))
    if (lack !== null) throw new BackupError(lack)
    const journalled = await bringJournal(options, folderSecret, isControlKept)
    const control = await build(options, isControlKept).catch(async (error: unknown) => {
      await rm(paths.building, { recursive: true, force: true })
      throw error
    })
    await failpoint('restore built')
    await renameSynced(paths.building, paths.promised)
    await failpoint('restore promised')
    await settleRestore(options, failpoint)
    return { manifest, control, journalled }
  } finally {
    lock.close()
  }
}

/**
 * Completes a promised restore that was interrupted, and removes one that was not promised. The caller has
 * the lock of the telemetry folder and has opened nothing in it. Any number of interruptions end in the same
 * state.
 */
export async function settleRestore(
  { dataDir, control }: ServiceData,
  failpoint: RestoreOptions['failpoint'] = async () => {},
): Promise<void> {
  const { engine, building, instance, promised, telemetry } = pathsOf(dataDir)
  await rm(building, { recursive: true, force: true })
  if (!existsSync(promised)) return
  const copy = join(promised, controlFile)
  const hasCopy = existsSync(copy)
  // First, because a database that refuses it leaves the old engine in place.
  if (hasCopy && control.kind === 'postgres') {
    await fillFrom(copy, control)
    await failpoint('restore database filled')
  }
  if (existsSync(join(promised, engineFolder))) {
    await rm(engine, { recursive: true, force: true })
    await failpoint('restore old engine removed')
    await renameSynced(join(promised, engineFolder), engine)
  }
  if (hasCopy && control.kind === 'sqlite') {
    // The log belongs to the file that is being replaced; it would corrupt another file.
    for (const log of logsOf(control.path)) await rm(log, { force: true })
    await failpoint('restore old log removed')
    await putFile(copy, control.path)
  }
  if (existsSync(join(promised, instanceFile))) await putFile(join(promised, instanceFile), instance)
  await failpoint('restore in place')
  await rm(promised, { recursive: true, force: true })
  await syncPath(telemetry)
}

/** Copies a file over another one, which stays complete until the copy is. */
async function putFile(from: string, to: string): Promise<void> {
  const aside = `${to}.restoring`
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await copyFile(from, aside)
  await syncPath(aside)
  await renameSynced(aside, to)
}

function assertReadable(manifest: Manifest): void {
  if (isReadableSchema(manifest.telemetry_schema) && migrationNames.includes(manifest.migration)) return
  throw new BackupError(
    `The backup ${manifest.backup_id} was taken by Lethe ${manifest.service_version}, whose tables differ from this version's; restore it with that version.`,
  )
}

/** Returns the secret that the folder and the backup share. */
async function assertSameInstance({ backup, dataDir }: RestoreOptions, manifest: Manifest): Promise<string> {
  const paths = pathsOf(dataDir)
  const folderSecret = await readFile(join(backup, instanceFile), 'utf8').catch(() => '')
  if (instanceHash(folderSecret) !== manifest.instance_hash) {
    throw new BackupError(
      `The backup ${backup} has another ${instanceFile} than it had; it can't be restored.`,
    )
  }
  const isForeign = existsSync(paths.instance)
    ? (await readFile(paths.instance, 'utf8')) !== folderSecret
    : existsSync(paths.engine)
  if (!isForeign) return folderSecret
  throw new BackupError(
    `${dataDir} contains the telemetry of another data folder than the backup's; restore into an empty folder with --into.`,
  )
}

/** Whether the folder has a control plane, which may be of another installation. */
async function hasControl(control: ControlAddress): Promise<boolean> {
  if (control.kind === 'sqlite') return existsSync(control.path)
  return !(await withControlAt(control, isEmptyDatabase))
}

/** A file is replaced. A database is only filled, because others may use it. */
async function assertReplaceable(address: ControlAddress): Promise<void> {
  if (address.kind === 'sqlite') return
  await withControlAt(address, (control) => assertEmpty(control, nameOfControl(address)))
}

/** Brings the control plane of a promised restore into a database. */
async function fillFrom(copy: string, address: ControlAddress): Promise<void> {
  await withControlAt({ kind: 'sqlite', path: copy }, (source) =>
    withControlAt(address, (target) => fillDatabase(source, target, nameOfControl(address))),
  ).catch((error: unknown) => {
    if (!(error instanceof BackupError)) throw error
    throw new BackupError(
      `${error.message} The restore continues at the next start; to give it up, remove ${dirname(copy)}.`,
      { cause: error },
    )
  })
}

async function assertControlOf(address: ControlAddress, folderSecret: string): Promise<void> {
  const value = await withControlAt(address, folderSecretIn).catch((cause: unknown) => {
    throw new BackupError(
      `The control plane ${nameOfControl(address)} can't be read; take the backup's with --control-plane from-backup.`,
      { cause },
    )
  })
  if (value === folderSecret) return
  throw new BackupError(
    `The control plane ${nameOfControl(address)} belongs to another data folder than the backup.`,
  )
}

/**
 * Ensures that the service will read the journal that is beside the backup. A control plane that is kept
 * knows what was erased since; one from the backup doesn't, so that without a journal erased telemetry would
 * be readable again. Returns the number of entries.
 */
async function bringJournal(
  options: RestoreOptions,
  folderSecret: string,
  isControlKept: boolean,
): Promise<number> {
  const { journalSeal } = instanceOf(folderSecret)
  const beside = journalIn(dirname(options.backup), journalSeal)
  const journal = journalIn(options.backupDir, journalSeal)
  const isLost = !existsSync(beside.path) && !existsSync(journal.path)
  if (isLost && !isControlKept && !options.isJournalLost) {
    throw new BackupError(
      `There is no ${beside.path}: with the backup's control plane nothing records what was erased since, and it would be readable again. Put the journal beside the backup, or accept that with --without-journal.`,
    )
  }
  await journal.ensure()
  if (beside.path !== journal.path) for (const entry of await beside.read()) await journal.append(entry)
  return (await journal.read()).length
}

function journalIn(folder: string, journalSeal: string): ErasureJournal {
  return new ErasureJournal(folder, journalSeal, new DiskCalls(folder))
}

/** Writes everything to swap in, synced, into the folder `building`. */
async function build(options: RestoreOptions, isControlKept: boolean): Promise<Restored['control']> {
  const { backup, dataDir, engineMemoryBytes } = options
  const { building } = pathsOf(dataDir)
  const scratch = join(building, 'scratch')
  await mkdir(scratch, { recursive: true, mode: 0o700 })
  const engine = await openChdb({ folder: scratch, maxMemoryBytes: engineMemoryBytes, backupFolder: backup })
  try {
    await restoreEngine(engine)
  } finally {
    await engine.close()
  }
  await renameSynced(join(scratch, engineFolder), join(building, engineFolder))
  await rm(scratch, { recursive: true })
  let control: Restored['control'] = null
  if (!isControlKept) {
    const path = join(building, controlFile)
    await copyFile(join(backup, controlFile), path)
    control = await withControlAt({ kind: 'sqlite', path }, countAccess)
    await writeFile(join(building, instanceFile), await readFile(join(backup, instanceFile)), { mode: 0o600 })
  }
  await syncTree(building)
  return control
}

async function countAccess(control: Control): Promise<{ organisations: number; liveTokens: number }> {
  const organisations = await control
    .selectFrom('organisations')
    .select((select) => select.fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  const tokens = await control
    .selectFrom('access_tokens')
    .select((select) => select.fn.countAll<number>().as('rows'))
    .where('revoked_at_ms', 'is', null)
    .executeTakeFirstOrThrow()
  return { organisations: Number(organisations.rows), liveTokens: Number(tokens.rows) }
}

async function withControlAt<T>(address: ControlAddress, work: (control: Control) => Promise<T>): Promise<T> {
  const control = openControlAt(address)
  try {
    return await work(control)
  } finally {
    await control.destroy()
  }
}
