// Copies a control plane into a file of SQLite, whatever database it is on, so that a backup has one format
// and can be restored into either. The copy is as of one moment.

import { createWriteStream, existsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { controlTables, copyTable } from './copy.ts'
import type { Control } from './database.ts'
import { dialectOf } from './dialect.ts'
import { migrate } from './migrate.ts'
import { createUnsynced } from './sqlite/sqlite.ts'
import { transactOnce } from './transaction.ts'

/**
 * Writes everything that is stored into the file `path`, which must not exist, and nothing that was deleted.
 * The control plane has the newest schema, and so has the copy. The file is not synced; where this throws, it
 * may be there in part.
 */
export async function copyToFile(control: Control, path: string): Promise<void> {
  const { copyTo, snapshot } = dialectOf(control)
  if (copyTo !== null) return copyTo(control, path)
  if (existsSync(path)) throw new Error(`${path} exists, and a copy replaces no file.`)
  const file = createUnsynced(path)
  try {
    await migrate(file)
    await snapshot(control, (source) =>
      transactOnce(file, async (trx) => {
        for (const table of controlTables) await copyTable(source, trx, table)
      }),
    )
  } finally {
    await file.destroy()
  }
}

/**
 * The same for a `path` on a disk that may not answer: SQLite writes on the event loop, so it writes to the
 * file `scratch` on the service's own disk. That file has no name any more when its bytes are brought to
 * `path`, however long that takes: an erasure may go on in the meantime.
 */
export async function copyThrough(scratch: string, control: Control, path: string): Promise<void> {
  await rm(scratch, { force: true })
  const file = await copyToFile(control, scratch)
    .then(() => open(scratch, 'r'))
    .finally(() => rm(scratch, { force: true }))
  await pipeline(file.createReadStream(), createWriteStream(path, { flags: 'wx', mode: 0o600 }))
}
