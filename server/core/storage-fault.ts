// What an error says of the disk. The driver of the control plane, the engine and the file system each have
// codes of their own for a disk that has no room or takes no writes; here they become two words. It decides
// by codes, never by text, so of an error that has no such code it says nothing.

/** `full`: there is no room. `failing`: the disk is read-only or returns errors. */
export type StorageFault = 'full' | 'failing'

/**
 * Codes of the system, as text, and of the engine, as numbers: NOT_ENOUGH_SPACE. A file that may grow no
 * further, by a limit or a quota, needs the same mend as a full disk.
 */
const codes: ReadonlyMap<unknown, StorageFault> = new Map<unknown, StorageFault>([
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EFBIG', 'full'],
  ['EROFS', 'failing'],
  ['EIO', 'failing'],
  [243, 'full'],
])

/**
 * Extended codes of SQLite: a system call failed because there was no room, which SQLite does not call FULL.
 */
const sqliteShmSize = 4874

/** Primary codes of SQLite: SQLITE_FULL, SQLITE_READONLY, SQLITE_IOERR. */
const sqliteCodes: ReadonlyMap<number, StorageFault> = new Map([
  [13, 'full'],
  [8, 'failing'],
  [10, 'failing'],
])

/** An error wraps the one that caused it; no error of ours wraps more. */
const causesMax = 8

/** The fault that an error or one of its causes names; null where none does. */
export function storageFaultOf(error: unknown): StorageFault | null {
  let at: unknown = error
  for (let depth = 0; depth < causesMax && at instanceof Error; depth++) {
    const found = faultNamedBy(at)
    if (found !== null) return found
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
