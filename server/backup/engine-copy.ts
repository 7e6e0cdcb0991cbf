// The size of the engine's copy of all telemetry, and its restore. The engine runs what the definition of a
// table calls. So a copy is refused where a table is not of this service, or where a definition calls
// anything that no build of this service calls.

import { shortText } from '../core/shortened.ts'
import type { TelemetryEngine } from '../telemetry/engine.ts'
import type { LocalEngine } from '../telemetry/engine-files.ts'
import { completionTable, tables } from '../telemetry/schema/tables.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { BackupError, engineFolder } from './manifest.ts'

/**
 * Restores the content of `engine` in the engine's backup folder into the engine's tables, which must be
 * empty. The tables are restored as they were copied, with the columns of the build that took the backup:
 * rows in tables with other columns would lose those that are missing. The next opening of the folder brings
 * them up to date. Throws BackupError, also where a table of the copy is not one that a build of this service
 * has made; the engine must then not be used any more.
 */
export async function restoreEngine(engine: LocalEngine): Promise<void> {
  if ((await engineBytes(engine)) > 0) throw new BackupError('The tables to restore into are not empty.')
  for (const { name } of tables) await engine.command(raw(`DROP TABLE ${name} SYNC`))
  await engine.files.restoreFrom(engineFolder)
  await assertOwnTables(engine)
}

/** What the definitions of all builds call: types, codecs, functions, and the kind of an index. */
const ownCalls = new Set([
  ...['Array', 'DateTime64', 'LowCardinality', 'Map', 'Nullable', 'Tuple', 'Enum8', 'Nested'],
  ...['CODEC', 'Delta', 'ZSTD', 'BY', 'CAST', 'bloom_filter'],
  ...['arrayFilter', 'arrayMap', 'arrayPopBack', 'arrayPopFront', 'arraySum', 'bitOr', 'bitShiftLeft'],
  ...['char', 'concat', 'mapFromArrays', 'mapKeys', 'mapValues', 'murmurHash2_32', 'murmurHash3_32'],
  ...['notEmpty', 'splitByChar', 'substringIndex', 'toMonday', 'toString', 'toUInt32', 'toUInt64'],
])

async function assertOwnTables(engine: TelemetryEngine): Promise<void> {
  const rows = await engine.select<{ name: string; engine: string; create_table_query: string }>(
    sql`SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase()`,
  )
  const names = new Set<string>([completionTable, ...tables.map(({ name }) => name)])
  for (const { name, engine: kind, create_table_query: text } of rows) {
    if (!names.has(name)) {
      throw new BackupError(
        `The backup has a table ${shortText(name, 60)}, which is not one of Lethe's. It can't be restored.`,
      )
    }
    // The columns follow the name of the table.
    const body = text.slice(text.indexOf('('))
    const called = [...body.matchAll(/([\w.`"]+)\s*\(/g)].map(([, word = '']) => word)
    const foreign = kind === 'MergeTree' ? called.find((word) => !ownCalls.has(word)) : `ENGINE = ${kind}`
    if (foreign === undefined && !/\bSELECT\b/i.test(body)) continue
    throw new BackupError(
      `The table ${name} in the backup is not one that Lethe has made: it has ${shortText(foreign ?? 'SELECT', 60)}. It can't be restored.`,
    )
  }
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
