// Syncs a whole file system at once instead of every file of a folder: thousands of small files are on the
// disk in the time that a few take one by one. The runtime has no such call, so the system's `sync -f` is
// used.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The command gets no variable of our own environment, which may contain secrets. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
}

/**
 * Returns true when everything that had been written to the file system of the folder is on the disk. Returns
 * false where the system can't sync it or reports an error: then each file must be synced, which shows the
 * one that failed.
 */
export function syncFileSystem(folder: string): Promise<boolean> {
  return promisify(execFile)('sync', ['-f', folder], { env: environment }).then(
    () => true,
    () => false,
  )
}
