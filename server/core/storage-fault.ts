// Decides from an error whether the disk is at fault. The driver of the control plane, the engine and the
// file system each have codes for a disk that is full or refuses writes; this module maps them to two values.
// It uses codes, never texts, and returns nothing for an error without such a code.

/** `full`: there is no space. `failing`: the disk is read-only, returns errors or does not answer. */
export type StorageFault = 'full' | 'failing'

/** The code of an error of ours: a file system did not answer in time (disk/disk-calls.ts). */
export const diskNotAnswering = 'DISK_NOT_ANSWERING'

/**
 * Codes of the system, as text, and of the engine, as numbers: NOT_ENOUGH_SPACE. A file that can't grow
 * because of a limit or a quota needs the same correction as a full disk.
 */
const codes: ReadonlyMap<unknown, StorageFault> = new Map<unknown, StorageFault>([
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EFBIG', 'full'],
  ['EROFS', 'failing'],
  ['EIO', 'failing'],
  [diskNotAnswering, 'failing'],
  [243, 'full'],
])

/**
 * Extended codes of SQLite: a system call failed because there was no space, which SQLite does not report as
 * FULL.
 */
const sqliteShmSize = 4874

/** Primary codes of SQLite: SQLITE_FULL, SQLITE_READONLY, SQLITE_IOERR. */
const sqliteCodes: ReadonlyMap<number, StorageFault> = new Map([
  [13, 'full'],
  [8, 'failing'],
  [10, 'failing'],
])

/** An error has its cause; no error of ours has more causes than this. */
const causesMax = 8

/** Returns the fault that an error or one of its causes names; null where none does. */
export function storageFaultOf(error: unknown): StorageFault | null {
  return faultyIn(error)?.fault ?? null
}

/** Returns the path of the file whose disk is at fault; null where the error has none. */
export function faultyPathOf(error: unknown): string | null {
  const cause = faultyIn(error)?.cause
  return cause !== undefined && 'path' in cause && typeof cause.path === 'string' ? cause.path : null
}

function faultyIn(error: unknown): { readonly fault: StorageFault; readonly cause: Error } | null {
  let at: unknown = error
  for (let depth = 0; depth < causesMax && at instanceof Error; depth++) {
    const fault = faultNamedBy(at)
    if (fault !== null) return { fault, cause: at }
    at = at.cause
  }
  return null
}

function faultNamedBy(error: Error): StorageFault | null {
  if ('errcode' in error && typeof error.errcode === 'number') {
    return error.errcode === sqliteShmSize ? 'full' : (sqliteCodes.get(error.errcode & 0xff) ?? null)
  }
  return 'code' in error ? (codes.get(error.code) ?? null) : null
}
