// Fills an empty database with the control plane of a backup. All rows arrive in one transaction, so that a
// crash leaves the database empty or complete; doing it again with the same backup then changes nothing. A
// database that contains anything else is refused and not changed.

import { controlTables, copyTable, isEmptyOf, sameDigest } from '../control/copy.ts'
import { folderSecretIn } from '../control/data-folder.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { migrate } from '../control/migrate.ts'
import { migrationsIn } from '../control/migration-history.ts'
import { transact } from '../control/transaction.ts'
import { BackupError } from './manifest.ts'

/** Whether no table has a row. Tables of another program with the name of one of ours count as rows. */
export async function isEmptyDatabase(control: Control): Promise<boolean> {
  const found = await foundIn(control)
  return found === 'nothing'
}

/** Throws BackupError where the database, which is called `name`, contains anything. Changes nothing. */
export async function assertEmpty(control: Control, name: string): Promise<void> {
  const found = await foundIn(control)
  if (found !== 'nothing') throw occupied(found, name)
}

/**
 * Copies every row of `source` into `target`, which is empty or was filled from the same source before.
 * Brings both to the newest schema. Throws BackupError where the target contains anything else.
 */
export async function fillDatabase(source: Control, target: Control, name: string): Promise<void> {
  await migrate(source)
  const found = await foundIn(target)
  if (found !== 'nothing') {
    const isDone = found === 'a control plane' && (await isFilledFrom(source, target))
    if (!isDone) throw occupied(found, name)
    return
  }
  await migrate(target)
  await transact(target, async (trx) => {
    // No service starts on it meanwhile.
    await dialectOf(trx).lockAll(trx)
    const late = await foundIn(trx)
    if (late !== 'nothing') throw occupied(late, name)
    for (const table of controlTables) await copyTable(source, trx, table)
    const differing = await firstDifference(source, trx)
    if (differing !== null) throw new Error(`What arrived in ${name} differs in the table ${differing}.`)
  })
}

type Found = 'nothing' | 'a control plane' | 'the part of a move' | { readonly foreignTable: string }

async function foundIn(control: Control): Promise<Found> {
  const tables = (await control.introspection.getTables()).map(({ name }) => name)
  const ours = controlTables.filter((table) => tables.includes(table))
  const [first] = ours
  if (first === undefined) return 'nothing'
  if ((await migrationsIn(control)).length === 0) return { foreignTable: first }
  if (!(await isEmptyOf(control, ours))) return 'a control plane'
  const isMarked = tables.includes('control_moves') && !(await isEmptyOf(control, ['control_moves']))
  return isMarked ? 'the part of a move' : 'nothing'
}

function occupied(found: Exclude<Found, 'nothing'>, name: string): BackupError {
  const what = typeof found === 'string' ? found : `a table ${found.foreignTable} that is not Lethe’s`
  return new BackupError(
    `${name} contains ${what}; the control plane of a backup goes into an empty database only. Create one and set LETHE_CONTROL_URL to it.`,
  )
}

/** Only a database of the same installation is brought to the newest schema, to be compared. */
async function isFilledFrom(source: Control, target: Control): Promise<boolean> {
  const [expected, found] = [await folderSecretIn(source), await folderSecretIn(target)]
  if (expected === undefined || expected !== found) return false
  await migrate(target)
  return (await firstDifference(source, target)) === null
}

async function firstDifference(
  source: Control,
  target: Control | ControlTransaction,
): Promise<string | null> {
  for (const table of controlTables) {
    if ((await sameDigest(source, target, table)) === null) return table
  }
  return null
}
