// Applies all missing migrations to a control-plane database at start, in one transaction. Migrations are
// imported by name and not found in a folder, so that the type checker reports a missing one.

import type { Kysely } from 'kysely'
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration'
import type { Control } from './database.ts'
import { dialectOf } from './dialect.ts'
import { settleHistory } from './migration-history.ts'
import { foundation } from './migrations/0001-foundation.ts'
import { proof } from './migrations/0002-proof.ts'
import { quotas } from './migrations/0003-quotas.ts'
import { quiet } from './migrations/0004-quiet.ts'
import { order } from './migrations/0005-order.ts'
import { trafficByHour } from './migrations/0006-traffic-by-hour.ts'
import { twoPersons } from './migrations/0007-two-persons.ts'
import { heldRecords } from './migrations/0008-held-records.ts'
import { actors } from './migrations/0009-actors.ts'
import { soonerAlarms } from './migrations/0010-sooner-alarms.ts'
import { chainFilters } from './migrations/0011-chain-filters.ts'
import { sessions } from './migrations/0012-sessions.ts'
import { tokenUse } from './migrations/0013-token-use.ts'
import { sameSchema } from './migrations/0014-same-schema.ts'
import { moves } from './migrations/0015-moves.ts'
import { oddTexts } from './migrations/0016-odd-texts.ts'
import { longGroups } from './migrations/0017-long-groups.ts'
import { manyErasures } from './migrations/0018-many-erasures.ts'
import { anomaliesByStart } from './migrations/0019-anomalies-by-start.ts'
import { endedRows } from './migrations/0020-ended-rows.ts'
import { fullErasures } from './migrations/0021-full-erasures.ts'
import { keptHolds } from './migrations/0022-kept-holds.ts'
import { transactOnce } from './transaction.ts'

const migrations = {
  '0001-foundation': foundation,
  '0002-proof': proof,
  '0003-quotas': quotas,
  '0004-quiet': quiet,
  '0005-order': order,
  '0006-traffic-by-hour': trafficByHour,
  '0007-two-persons': twoPersons,
  '0008-held-records': heldRecords,
  '0009-actors': actors,
  '0010-sooner-alarms': soonerAlarms,
  '0011-chain-filters': chainFilters,
  '0012-sessions': sessions,
  '0013-token-use': tokenUse,
  '0014-same-schema': sameSchema,
  '0015-moves': moves,
  '0016-odd-texts': oddTexts,
  '0017-long-groups': longGroups,
  '0018-many-erasures': manyErasures,
  '0019-anomalies-by-start': anomaliesByStart,
  '0020-ended-rows': endedRows,
  '0021-full-erasures': fullErasures,
  '0022-kept-holds': keptHolds,
}

/** Names of all migrations of this program, oldest first. */
export const migrationNames: readonly string[] = Object.keys(migrations).sort()

/**
 * Applies the migrations up to `until`, all of them where that is absent. Throws when one fails; the database
 * is then unchanged. Throws ControlPlaneError where the database is newer than this program.
 */
export async function migrate(control: Control, until?: string): Promise<void> {
  await settleHistory(control, migrationNames)
  const migrator = migratorOf(control, migrations)
  const known = await migrator.getMigrations()
  if (known.some(({ executedAt }) => executedAt === undefined)) {
    await transactOnce(control, (trx) => dialectOf(control).schema.beforeMigrations(trx))
  }
  const { error } = await (until === undefined ? migrator.migrateToLatest() : migrator.migrateTo(until))
  if (error !== undefined) throw error
}

/** Returns a migrator whose migrations leave each database with the types that it needs. */
export function migratorOf(control: Control, given: Readonly<Record<string, Migration>>): Migrator {
  const provided = Object.entries(given).map(([name, migration]) => [name, settled(migration)] as const)
  const provider: MigrationProvider = { getMigrations: async () => Object.fromEntries(provided) }
  // Databases of early versions may have had two neighbouring migrations in the other order.
  return new Migrator({ db: control, provider, allowUnorderedMigrations: true })
}

function settled(migration: Migration): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await migration.up(db)
      await dialectOf(db).schema.afterMigration(db)
    },
  }
}
