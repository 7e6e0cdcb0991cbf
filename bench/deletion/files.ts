// What is on disk, seen from outside the store that wrote it: files by inode and birth, because a store may
// link a file under a new name instead of copying it. Bytes count as gone when no name leads to any of the
// files that held them, whatever the store says of itself; the same yardstick for every contender.

import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface HeldFile {
  readonly path: string
  readonly identity: string
  readonly bytes: number
}

/** Regular files under a folder; one that is empty or vanishes meanwhile is left out. */
export function filesUnder(folder: string): HeldFile[] {
  const found: HeldFile[] = []
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

/** Null where there is none, or an empty one: some stores truncate first and unlink later. */
function fileAt(path: string): HeldFile | null {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (stat === undefined || stat.size === 0n) return null
  return { path, identity: `${stat.dev}.${stat.ino}.${stat.birthtimeNs}`, bytes: Number(stat.blocks) * 512 }
}

/** Bytes on disk, a linked file once. */
export function bytesOf(files: readonly HeldFile[]): number {
  const unique = new Map(files.map(({ identity, bytes }) => [identity, bytes]))
  return [...unique.values()].reduce((sum, bytes) => sum + bytes, 0)
}

/**
 * Milliseconds from `sinceMs` (of `performance.now`) until none of the files is on disk under any
 * name, or null where some are there after `limitMs`. It looks at one file at a time, so that
 * looking costs next to nothing.
 */
export async function untilGone(
  folder: string,
  files: readonly HeldFile[],
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
      // Looking everywhere takes a while in a large store; the answer is the moment before
      // it, if it finds nothing.
      waiting = filesUnder(folder).filter(({ identity }) => identities.has(identity))
      if (waiting.length === 0) return nowMs - sinceMs
    }
    if (nowMs - sinceMs > limitMs) return null
    await sleep(everyMs)
  }
}

interface Used {
  /** Bytes of pages dirtied, by the kernel's count. */
  readonly writtenBytes: number
  readonly cpuSeconds: number
}

/** The kernel counts processor time in hundredths of a second for everybody. */
const ticksPerSecond = 100

/** What a process and its children have used so far; children that ended are forgotten. */
export function usedBy(pid: number): Used {
  let writtenBytes = 0
  let ticks = 0
  for (const id of processTree(pid)) {
    writtenBytes += Number(/^write_bytes: (\d+)/m.exec(textAt(`/proc/${id}/io`))?.[1] ?? 0)
    // After the name, which may hold anything, utime and stime are the 12th and 13th field.
    const fields = textAt(`/proc/${id}/stat`)
      .replace(/^.*\)\s/s, '')
      .split(' ')
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  }
  return { writtenBytes, cpuSeconds: ticks / ticksPerSecond }
}

/** A process and all below it that are there now. */
export function processTree(pid: number): number[] {
  const children = textAt(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap(processTree)]
}

function textAt(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
