// Files on disk, seen from outside the store that wrote them: identified by inode and birth time, because a
// store may link a file under a new name instead of copying it. Bytes are gone when no name refers to any of
// the files that had them, whatever the store reports; the same rule for every store.

import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface WatchedFile {
  readonly path: string
  readonly identity: string
  readonly bytes: number
}

/** Regular files below a folder; empty files and files that vanish meanwhile are left out. */
export function filesUnder(folder: string): WatchedFile[] {
  const found: WatchedFile[] = []
  const visit = (at: string): void => {
    for (const entry of entriesOf(at)) {
      const path = join(at, entry.name)
      if (entry.isDirectory()) visit(path)
      else if (entry.isFile()) {
        const file = fileAt(path)
        if (file !== null) found.push(file)
      }
    }
  }
  visit(folder)
  return found
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

/** Null for a missing or empty file: some stores truncate first and unlink later. */
function fileAt(path: string): WatchedFile | null {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (stat === undefined || stat.size === 0n) return null
  return { path, identity: `${stat.dev}.${stat.ino}.${stat.birthtimeNs}`, bytes: Number(stat.blocks) * 512 }
}

/** Bytes on disk; a linked file counts once. */
export function bytesOf(files: readonly WatchedFile[]): number {
  const unique = new Map(files.map(({ identity, bytes }) => [identity, bytes]))
  return [...unique.values()].reduce((sum, bytes) => sum + bytes, 0)
}

/**
 * Returns the milliseconds from `sinceMs` (of `performance.now`) until none of the files is on disk under any
 * name, or null if some are still there after `limitMs`. It checks one file at a time, so that checking costs
 * almost nothing.
 */
export async function untilGone(
  folder: string,
  files: readonly WatchedFile[],
  sinceMs: number,
  { limitMs, everyMs }: { readonly limitMs: number; readonly everyMs: number },
): Promise<number | null> {
  const identities = new Set(files.map(({ identity }) => identity))
  let waiting = [...files]
  for (;;) {
    for (let last = waiting.at(-1); last !== undefined; last = waiting.at(-1)) {
      if (fileAt(last.path)?.identity === last.identity) break
      waiting.pop()
    }
    const nowMs = performance.now()
    if (waiting.length === 0) {
      // Searching the whole folder takes a while in a large store; if nothing is found, the result is the
      // time before the search.
      waiting = filesUnder(folder).filter(({ identity }) => identities.has(identity))
      if (waiting.length === 0) return nowMs - sinceMs
    }
    if (nowMs - sinceMs > limitMs) return null
    await sleep(everyMs)
  }
}
