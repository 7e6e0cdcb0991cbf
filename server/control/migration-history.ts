// Which migrations a database has had, before the missing ones are applied. A database that a newer program
// has migrated is refused and not changed: this program does not know what its columns mean.

import { sql } from 'kysely'
import { ControlPlaneError } from './control-plane-error.ts'
import type { Control } from './database.ts'

/** Names under which early versions recorded migrations that have another position in the order today. */
const renamed = {
  '0009-traffic-by-hour': '0006-traffic-by-hour',
  '0011-sessions': '0012-sessions',
} as const satisfies Readonly<Record<string, string>>

const historyTable = 'kysely_migration'

/** Returns the names of the migrations that the database has had, in their order; empty where it is new. */
export async function migrationsIn(control: Control): Promise<string[]> {
  const tables = await control.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some(({ name }) => name === historyTable)) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(historyTable)} order by name`.execute(control)
  return rows.map(({ name }) => name)
}

/**
 * Gives renamed migrations their present names. Throws ControlPlaneError where the database has had one that
 * is not in `known`.
 */
export async function settleHistory(control: Control, known: readonly string[]): Promise<void> {
  const names = await migrationsIn(control)
  for (const [before, now] of Object.entries(renamed)) {
    if (!names.includes(before)) continue
    await sql`update ${sql.table(historyTable)} set name = ${now} where name = ${before}`.execute(control)
  }
  const unknown = names.filter((name) => !known.includes(name) && !(name in renamed))
  const newest = unknown.at(-1)
  if (newest === undefined) return
  throw new ControlPlaneError(
    `The control plane has the schema ${newest} of a newer Lethe; this one knows schemas up to ${known.at(-1)}. Start the newer version, or restore a backup that was taken before the upgrade.`,
  )
}
