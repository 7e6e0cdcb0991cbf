// Applies all missing migrations to a control-plane database at start, in one transaction. Migrations are
// imported by name and not found in a folder, so that the type checker reports a missing one.

import { Migrator } from 'kysely/migration'
import type { Control } from './database.ts'
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
}

/** Names of all migrations of this program, oldest first. */
export const migrationNames: readonly string[] = Object.keys(migrations).sort()

/** Throws when a migration fails; the database is then unchanged. */
export async function migrate(control: Control): Promise<void> {
  const migrator = new Migrator({ db: control, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
}
