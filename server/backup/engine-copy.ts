// Backs up and restores all telemetry by the engine's own BACKUP. It runs in the background, because waiting
// for a BACKUP blocks every other statement (docs/backup.md has the measurement). Parts that a merge replaces
// meanwhile stay until they are copied, so the copy of each table is of one moment.

import type { Clock } from '../core/clock.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import { tables } from '../telemetry/schema/tables.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { BackupError, backupIdPattern } from './manifest.ts'

const pollMs = 50

/**
 * Copies all tables into `<id>.taking/engine` below the engine's backup folder; resolves when the copy is
 * complete. Throws BackupError when `signal` aborts, after the engine has ended it.
 */
export async function copyEngine(
  { engine, clock }: { engine: TelemetryEngine; clock: Clock },
  backupId: string,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  // Both become part of a statement that can't have bound values.
  if (!backupIdPattern.test(backupId) || !/^[\w./]+$/.test(path)) {
    throw new BackupError(`Not the id of a backup: ${backupId}`)
  }
  await engine.command(raw(`BACKUP DATABASE default TO File('${path}') SETTINGS id = '${backupId}' ASYNC`))
  for (;;) {
    const { status, error, query_id } = await findCopy(engine, backupId)
    if (status === 'BACKUP_CREATED') return
    if (status !== 'CREATING_BACKUP') throw new BackupError(firstLine(error))
    if (signal.aborted) await engine.command(sql`KILL QUERY WHERE query_id = ${query_id} SYNC`)
    await clock.sleep(pollMs)
  }
}

interface RunningCopy {
  readonly status: string
  readonly error: string
  readonly query_id: string
}

async function findCopy(engine: TelemetryEngine, backupId: string): Promise<RunningCopy> {
  const [copy] = await engine.select<RunningCopy>(
    sql`SELECT status, error, query_id FROM system.backups WHERE id = ${backupId}`,
  )
  if (copy === undefined)
    throw new BackupError('The telemetry engine does not know the backup that it was told to take.')
  return copy
}

/** Errors of the engine have a stack trace after the first line. */
function firstLine(error: string): string {
  return error.split(/\n|, Stack trace/)[0] ?? error
}

/**
 * Restores the content of `engine` in the engine's backup folder into the engine's tables, which must be
 * empty. The tables are restored as they were copied, with the columns of the build that took the backup:
 * rows in tables with other columns would lose those that are missing. The next opening of the folder brings
 * them up to date. Throws BackupError.
 */
export async function restoreEngine(engine: TelemetryEngine): Promise<void> {
  if ((await engineBytes(engine)) > 0) throw new BackupError('The tables to restore into are not empty.')
  for (const { name } of tables) await engine.command(raw(`DROP TABLE ${name} SYNC`))
  await engine.command(raw("RESTORE DATABASE default FROM File('engine')"))
}

/** Returns the bytes of everything to copy. */
export async function engineBytes(engine: TelemetryEngine): Promise<number> {
  const [parts] = await engine.select<{ bytes: string }>(
    sql`SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE database = currentDatabase() AND active`,
  )
  return Number(parts?.bytes ?? 0)
}

export async function engineVersion(engine: TelemetryEngine): Promise<string> {
  const [row] = await engine.select<{ version: string }>(sql`SELECT version() AS version`)
  return row?.version ?? 'unknown'
}
