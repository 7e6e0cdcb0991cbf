// One sync of a whole file system in place of one for every file of a folder: thousands of small files
// are on the disk in the time that a few take one by one. The runtime has no such call, so the
// system's `sync -f` makes it.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Nothing of our own environment, which may hold secrets, is handed on. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
}

/**
 * True when everything that had been written to the file system of the folder is on the disk. False where the
 * system can't do that or reports an error: then each file has to be synced, which says which of them failed.
 */
export function syncFileSystem(folder: string): Promise<boolean> {
  return promisify(execFile)('sync', ['-f', folder], { env: environment }).then(
    () => true,
    () => false,
  )
}
