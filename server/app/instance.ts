// The secret of the data folder, and the rule that a control plane and a folder belong together.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { instanceFile } from '../backup/manifest.ts'
import { ConfigError } from '../config.ts'
import { folderSecretIn } from '../control/data-folder.ts'
import type { Control } from '../control/database.ts'
import { newSecret } from '../core/ids.ts'

/** Reads the secret of a data folder; creates it in a new folder. */
export function readFolderSecret(dataDir: string): string {
  const path = join(dataDir, instanceFile)
  if (!existsSync(path)) {
    // On the disk at once, as the control plane's hash of it is: without its content the folder would be a
    // different one.
    writeFileSync(`${path}.new`, newSecret(), { mode: 0o600, flush: true })
    renameSync(`${path}.new`, path)
  }
  return readFileSync(path, 'utf8')
}

/**
 * Checks that control plane and data folder were started together: with another folder's telemetry, an
 * erasure would be verified where it never was, and what was erased here would be readable there. Throws
 * ConfigError.
 */
export async function assertSameFolder(control: Control, folderSecret: string): Promise<void> {
  await control
    .insertInto('instance')
    .values({ key: 'data_folder', value: folderSecret })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .execute()
  if ((await folderSecretIn(control)) === folderSecret) return
  throw new ConfigError(
    'The control-plane database belongs to another data folder; set LETHE_DATA_DIR and LETHE_CONTROL_URL to a pair that was started together.',
  )
}

/**
 * Older versions took leases under the folder's secret. The process that did so has ended, because a folder
 * belongs to one process at a time, so its leases need not expire first.
 */
export async function endLeasesOfOlderVersion(control: Control, folderSecret: string): Promise<void> {
  await control.deleteFrom('leases').where('holder', '=', folderSecret).execute()
}
