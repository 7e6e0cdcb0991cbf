// `lethe backup`: creates, lists, removes and restores backups. A running service has the telemetry engine
// open, so the command writes a request into the register and waits until the service has taken the backup.
// Without a service the command takes it itself. This is decided once: if the service stops meanwhile, the
// command waits for it, because opening the data folder would make the service fail at its next start.
// Restoring requires a stopped service.

import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { namesIn, removeFolder } from '../backup/files.ts'
import { isVisible, removeBackup } from '../backup/left-backups.ts'
import { BackupError, backupIdPattern, bytesOf, type Manifest, readManifest } from '../backup/manifest.ts'
import { BackupRegister, type BackupRow } from '../backup/register.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { instantText, systemClock } from '../core/clock.ts'
import { EngineError } from '../telemetry/engine.ts'
import { lockFolder } from '../telemetry/folder-lock.ts'
import { hasControl, operator, withControl } from './open-control.ts'
import { type JsonOption, print, printJson, say } from './print.ts'

/**
 * Interval of reading the register; after several of them the command checks whether a service is running.
 */
const pollMs = 250
const pollsPerCheck = 20

/**
 * The command gives up after this many checks without a service: a minute, in which a supervisor would have
 * restarted it.
 */
const missedChecksMax = 12

export async function createBackup(
  config: Config,
  options: JsonOption & { keepDays?: string },
): Promise<void> {
  const keepDays = options.keepDays === undefined ? config.backupKeepDays : Number(options.keepDays)
  if (!(Number.isInteger(keepDays) && keepDays >= 1 && keepDays <= 3650)) {
    throw new ConfigError('--keep-days must be an integer from 1 to 3650.')
  }
  await withRegister(config, async (register) => {
    const isAlone = !isServed(config)
    const backupId = await register.request(config.backupDir, keepDays, operator)
    if (isAlone) await takeHere(config).catch((error: unknown) => waitForService(config, error))
    let missedChecks = 0
    for (let poll = 1; ; poll++) {
      const row = await register.find(backupId)
      if (row?.status === 'ready') return report(wireForm(row), options)
      if (row?.status === 'failed') throw new BackupError(`The backup ${backupId} failed: ${row.error}`)
      if (poll % pollsPerCheck === 0) {
        missedChecks = isServed(config) ? 0 : missedChecks + 1
        if (missedChecks === 1) say('The service has stopped; waiting for it to come back.')
        if (missedChecks === missedChecksMax) throw new BackupError(missingServiceSentence(backupId))
      }
      await systemClock.sleep(pollMs)
    }
  })
}

export async function listBackups(config: Config, options: JsonOption): Promise<void> {
  const rows = hasControl(config) ? await withRegister(config, (register) => register.list()) : []
  const found = await unregistered(config, rows)
  const items = [...rows.map(wireForm), ...found.map(foundForm)]
  if (options.json) printJson({ items })
  else for (const item of items) print(lineOf(item))
}

interface RemoveCommand extends JsonOption {
  /** Records as removed what can't be seen: the operator says that it is gone. */
  readonly gone?: boolean
}

export async function removeBackupById(
  config: Config,
  backupId: string,
  options: RemoveCommand,
): Promise<void> {
  await withRegister(config, async (register) => {
    const row = await register.find(backupId)
    if (row !== null) await removeRegistered(register, row, options)
    else await removeFolder((await requireFound(config, backupId)).folder)
    if (options.json) printJson({ backup_id: backupId, status: 'removed' })
    else print(`${backupId} removed`)
  })
}

/** Throws ConfigError where nothing of it is there and the operator has not said that it is gone. */
async function removeRegistered(
  register: BackupRegister,
  row: BackupRow,
  { gone = false }: RemoveCommand,
): Promise<void> {
  const { backup_id: backupId, folder, status } = row
  if (status === 'requested' || (status === 'running' && row.error === null)) {
    throw new ConfigError(`The backup ${backupId} is being taken; remove it when it is ready.`)
  }
  const isThere = await isVisible(row)
  if (isThere && (gone || status === 'running')) {
    throw new ConfigError(
      status === 'running'
        ? `Something of the backup ${backupId} is in ${dirname(folder)}; a running service ends it within two minutes, or says in "lethe backup list" why it can't.`
        : `The backup ${backupId} is in ${dirname(folder)}; remove it without --gone.`,
    )
  }
  if (!isThere && !gone && (status === 'ready' || status === 'running')) {
    throw new ConfigError(
      `Nothing of the backup ${backupId} is in ${dirname(folder)}. Mount its disk and repeat; if it was deleted or its disk is lost, add --gone.`,
    )
  }
  await removeBackup(register, row)
}

interface RestoreCommand extends JsonOption {
  readonly into?: string
  readonly controlPlane: string
  readonly withoutJournal?: boolean
}

export async function restore(
  env: Readonly<Record<string, string | undefined>>,
  backup: string,
  options: RestoreCommand,
): Promise<void> {
  const source = readConfig(env)
  const target = options.into === undefined ? source : readConfig({ ...env, LETHE_DATA_DIR: options.into })
  const folder = backupIdPattern.test(backup) ? await folderOf(source, backup) : resolve(backup)
  const { restoreBackup } = await import('../backup/restore.ts')
  const { manifest, control, journalled } = await restoreBackup({
    backup: folder,
    dataDir: target.dataDir,
    control: target.control,
    backupDir: target.backupDir,
    isControlReplaced: options.controlPlane === 'from-backup',
    isJournalLost: options.withoutJournal === true,
    engineMemoryBytes: target.engineMemoryBytes,
    failpoint: async () => {},
  })
  if (options.json) {
    return printJson({
      backup_id: manifest.backup_id,
      taken_at: instantText(manifest.taken_at_ms),
      data_dir: target.dataDir,
      control_plane: options.controlPlane,
      organisations: control?.organisations ?? null,
      live_tokens: control?.liveTokens ?? null,
      journalled_erasures: journalled,
    })
  }
  print(`${manifest.backup_id} of ${instantText(manifest.taken_at_ms)} was restored into ${target.dataDir}.`)
  print('The previous telemetry was removed.')
  if (control === null) print('The control plane was not changed.')
  else {
    print(
      `The control plane is that of the backup. It has ${control.organisations} organisations and ${control.liveTokens} valid access tokens. Tokens that were revoked after the backup are valid again: check them with token list.`,
    )
    print(
      'Legal holds placed after the backup are unknown, and the next start erases again what they kept: place them first, with hold place.',
    )
  }
  print(
    `The journal has ${journalled} erasures. Those that are newer than the backup are repeated at the next start, before the service is ready.`,
  )
}

/**
 * Returns if a service started at the same moment, because that service takes the backup. Throws any other
 * error.
 */
function waitForService(config: Config, error: unknown): void {
  if (!(error instanceof EngineError && isServed(config))) throw error
}

function missingServiceSentence(backupId: string): string {
  return `The service that should take the backup ${backupId} has stopped and did not start again. It takes the backup at its next start. Without a service, run the command again.`
}

/**
 * Whether a service has the telemetry engine of this data folder open. A service that starts at this moment
 * waits until the check has ended.
 */
function isServed(config: Config): boolean {
  try {
    lockFolder(join(config.dataDir, 'telemetry')).close()
    return false
  } catch (error) {
    if (error instanceof EngineError) return true
    throw error
  }
}

/**
 * Takes the backup as a service would, with everything that a service does before it is ready. Only here the
 * program of the service is loaded: a second of work that other commands and a running service save.
 */
async function takeHere(config: Config): Promise<void> {
  const [{ createApp }, { createLogger }] = await Promise.all([import('../app.ts'), import('./serve.ts')])
  const logger = createLogger({ ...config, logLevel: 'silent' })
  const app = await createApp({ config, clock: systemClock, logger, command: 'lethe backup create' })
  try {
    await app.takeBackups()
  } finally {
    await app.close()
  }
}

function withRegister<T>(config: Config, work: (register: BackupRegister) => Promise<T>): Promise<T> {
  return withControl(config, (control) => work(new BackupRegister(control, systemClock)))
}

interface Found {
  readonly folder: string
  readonly manifest: Manifest
}

/**
 * Returns complete backups in the folder that are not in the register, because there is no register or it is
 * older than they are.
 */
async function unregistered(config: Config, known: readonly BackupRow[]): Promise<Found[]> {
  const found: Found[] = []
  for (const name of await namesIn(config.backupDir)) {
    if (!backupIdPattern.test(name) || known.some((row) => row.backup_id === name)) continue
    const folder = join(config.backupDir, name)
    const manifest = await readManifest(folder).catch(() => null)
    if (manifest !== null) found.push({ folder, manifest })
  }
  return found
}

async function requireFound(config: Config, backupId: string): Promise<Found> {
  const found = (await unregistered(config, [])).find(({ manifest }) => manifest.backup_id === backupId)
  if (found !== undefined) return found
  throw new ConfigError(`There is no backup ${backupId} in ${config.backupDir}; see backup list.`)
}

async function folderOf(config: Config, backupId: string): Promise<string> {
  return (await requireFound(config, backupId)).folder
}

interface BackupForm {
  readonly backup_id: string
  /**
   * `found`: in the folder, but not in the register; `missing`: in the register, but not in the folder;
   * `unknown`: nobody takes it any more, and `error` says why it could not be ended.
   */
  readonly status: string
  readonly taken_at: string | null
  readonly expires_at: string
  readonly bytes: number
  readonly folder: string
  readonly error: string | null
}

function wireForm(row: BackupRow): BackupForm {
  const isGone = row.status === 'ready' && !existsSync(row.folder)
  const isUnknown = row.status === 'running' && row.error !== null
  return {
    backup_id: row.backup_id,
    status: isGone ? 'missing' : isUnknown ? 'unknown' : row.status,
    taken_at: row.taken_at_ms === null ? null : instantText(row.taken_at_ms),
    expires_at: instantText(row.expires_at_ms),
    bytes: row.bytes ?? 0,
    folder: row.folder,
    error: row.error,
  }
}

function foundForm({ folder, manifest }: Found): BackupForm {
  return {
    backup_id: manifest.backup_id,
    status: 'found',
    taken_at: instantText(manifest.taken_at_ms),
    expires_at: instantText(manifest.expires_at_ms),
    bytes: bytesOf(manifest.files),
    folder,
    error: null,
  }
}

function report(backup: BackupForm, { json }: JsonOption): void {
  if (json) printJson(backup)
  else print(lineOf(backup))
}

function lineOf({ backup_id, bytes, error, expires_at, folder, status, taken_at }: BackupForm): string {
  const taken = taken_at === null ? 'not taken'.padEnd(30) : `taken ${taken_at}`
  const line = `${backup_id}  ${status.padEnd(9)}  ${taken}  expires ${expires_at}  ${String(bytes).padStart(12)} bytes  ${folder}`
  return error === null ? line : `${line}  ${error}`
}
