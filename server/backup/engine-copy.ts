// The size of the engine's copy of all telemetry, and its restore.

import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { LocalEngine } from '../telemetry/engine-files.ts'
import { tables } from '../telemetry/schema/tables.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { BackupError, engineFolder } from './manifest.ts'

/**
 * Restores the content of `engine` in the engine's backup folder into the engine's tables, which must be
 * empty. The tables are restored as they were copied, with the columns of the build that took the backup:
 * rows in tables with other columns would lose those that are missing. The next opening of the folder brings
 * them up to date. Throws BackupError.
 */
export async function restoreEngine(engine: LocalEngine): Promise<void> {
  if ((await engineBytes(engine)) > 0) throw new BackupError('The tables to restore into are not empty.')
  for (const { name } of tables) await engine.command(raw(`DROP TABLE ${name} SYNC`))
  await engine.files.restoreFrom(engineFolder)
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
