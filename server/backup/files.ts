// Folders of a backup on disk: every file is sealed with its size and hash, private, and synced before
// anything reports that it exists. A folder equals its seals, file by file, or it is refused.

import { createHash } from 'node:crypto'
import { chmod, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { z } from 'zod'
import { syncFileSystem } from '../disk/sync-file-system.ts'

const FileSeal = z.strictObject({ bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) })

/** Files by their path below the folder, with `/` between its parts. */
export const FileSeals = z.record(z.string(), FileSeal)
export type FileSeals = z.infer<typeof FileSeals>

/**
 * Reads every file below a folder, makes it readable by its owner only, and syncs it and every folder, all at
 * once where the system can. Throws where there is anything but files and folders, and when `signal` aborts.
 */
export async function sealFolder(
  folder: string,
  signal: AbortSignal,
  syncAll: (folder: string) => Promise<boolean> = syncFileSystem,
): Promise<FileSeals> {
  const seals: [string, z.infer<typeof FileSeal>][] = []
  for (const { path, isFolder } of await entriesBelow(folder)) {
    await chmod(path, isFolder ? 0o700 : 0o600)
    if (!isFolder) seals.push([relative(folder, path), await sealFile(path, signal)])
  }
  await chmod(folder, 0o700)
  await syncTree(folder, signal, syncAll)
  return Object.fromEntries(seals.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Returns the first difference between a folder and its seals, as the end of a sentence; null where there is
 * none.
 */
export async function findDifference(
  folder: string,
  seals: FileSeals,
  isCounted: (path: string) => boolean,
): Promise<string | null> {
  const missing = new Set(Object.keys(seals))
  for (const { path, isFolder } of await entriesBelow(folder)) {
    const name = relative(folder, path)
    if (isFolder || !isCounted(name)) continue
    const expected = seals[name]
    if (expected === undefined) return `has a file ${name} that was not in it`
    missing.delete(name)
    if ((await stat(path)).size !== expected.bytes) return `has another length of ${name}`
    const found = await sealFile(path, new AbortController().signal)
    if (found.sha256 !== expected.sha256) return `has other bytes in ${name}`
  }
  const [lost] = missing
  return lost === undefined ? null : `lacks ${lost}`
}

/**
 * Syncs every file and folder below, and the folder itself. The engine's own folder contains links, whose
 * targets are synced by themselves.
 */
export async function syncTree(
  folder: string,
  signal: AbortSignal = new AbortController().signal,
  syncAll: (folder: string) => Promise<boolean> = syncFileSystem,
): Promise<void> {
  if (await syncAll(folder)) return
  for (const { path } of await entriesBelow(folder, true)) {
    signal.throwIfAborted()
    await syncPath(path)
  }
  await syncPath(folder)
}

/** Renames within one file system; the new name is on the disk afterwards. */
export async function renameSynced(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncPath(dirname(to))
}

/** The name of a folder from when its removal begins until its end. */
export function removingOf(folder: string): string {
  return `${folder}.removing`
}

/**
 * Removes a folder so that a partly removed one never has its old name. Continues a removal that was
 * interrupted. `record` is called when the content is gone from the disk and the name is not yet, so that it
 * is seen from the name whether it was recorded. Where nothing is there, only `record` is called.
 */
export async function removeFolder(
  folder: string,
  record: () => Promise<void> = async () => {},
): Promise<void> {
  const doomed = removingOf(folder)
  const names = await namesIn(dirname(folder))
  if (names.includes(basename(folder))) {
    await rm(doomed, { recursive: true, force: true })
    await renameSynced(folder, doomed)
  } else if (!names.includes(basename(doomed))) return record()
  for (const name of await namesIn(doomed)) await rm(join(doomed, name), { recursive: true, force: true })
  await syncPath(doomed)
  await record()
  await rm(doomed, { recursive: true, force: true })
  await syncPath(dirname(folder))
}

/** Returns the bytes that this process may still write to the folder's file system. */
async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** Besides the size of the copy, so that the service can continue. */
const reserveBytes = 64 * 1024 * 1024

/** Returns a sentence where a folder has no space for a copy of `neededBytes`; null where it has. */
export async function findLackOfSpace(folder: string, neededBytes: number): Promise<string | null> {
  const free = await freeBytes(folder)
  if (free >= neededBytes + reserveBytes) return null
  const megabytes = (bytes: number) => Math.ceil(bytes / 1_000_000)
  return `${folder} has ${megabytes(free)} MB free and ${megabytes(neededBytes + reserveBytes)} MB are needed.`
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** Returns the names in a folder; none where it doesn't exist. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** Returns the text of a file; null where it doesn't exist. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Yields everything below a folder, deepest first, so that a folder is synced after its content. */
async function entriesBelow(
  folder: string,
  hasLinks = false,
): Promise<{ path: string; isFolder: boolean }[]> {
  const found: { path: string; isFolder: boolean }[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (hasLinks && entry.isSymbolicLink()) continue
    if (!entry.isDirectory() && !entry.isFile()) throw new Error(`${path} is neither a file nor a folder.`)
    if (entry.isDirectory()) found.push(...(await entriesBelow(path, hasLinks)))
    found.push({ path, isFolder: entry.isDirectory() })
  }
  return found
}

async function sealFile(path: string, signal: AbortSignal): Promise<z.infer<typeof FileSeal>> {
  const file = await open(path, 'r')
  try {
    const hash = createHash('sha256')
    let bytes = 0
    for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: 1 << 20 })) {
      signal.throwIfAborted()
      hash.update(chunk)
      bytes += chunk.length
    }
    return { bytes, sha256: hash.digest('hex') }
  } finally {
    await file.close()
  }
}

export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
