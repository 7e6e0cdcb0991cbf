// A disk of a few megabytes that a test may fill, make read-only and free again: a file system in memory of its own. To mount
// one takes root, so a test that needs it is skipped, with the reason, where that isn't allowed.

import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './fixtures.ts'

export interface SmallDisk {
  /** Where it is mounted. */
  readonly folder: string
  /** Takes all room but so many bytes, as somebody else's file would. */
  fill(leaveBytes?: number): void
  /** Gives back what {@link fill} has taken. */
  free(): void
  freeBytes(): number
  /** Unmounts it, whoever still has files open in it. */
  remove(): void
}

/** Why there can be no such disk here; null where there can. */
export function whyNoSmallDisk(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'to mount a small disk takes root on Linux'
  try {
    openSmallDisk(1024 * 1024).remove()
    return null
  } catch (error) {
    return `this system mounts no file system: ${error instanceof Error ? error.message : error}`
  }
}

export function openSmallDisk(bytes: number): SmallDisk {
  const parent = temporaryFolder()
  const folder = join(parent, 'disk')
  mkdirSync(folder)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'lethe-test', folder], { stdio: 'pipe' })
  const filler = join(folder, 'filler')
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  }
  const free = () => rmSync(filler, { force: true })
  return {
    folder,
    fill: (leaveBytes = 0) => writeUntil(filler, () => freeBytes() <= leaveBytes),
    free,
    freeBytes,
    remove() {
      spawnSync('umount', ['-l', folder])
      rmSync(parent, { recursive: true, force: true })
    },
  }
}

const block = Buffer.alloc(4096, 1)

function writeUntil(path: string, isEnough: () => boolean): void {
  const file = openSync(path, 'a')
  try {
    while (!isEnough()) writeSync(file, block)
  } catch (error) {
    const isFull = error instanceof Error && 'code' in error && error.code === 'ENOSPC'
    if (!isFull) throw error
  } finally {
    closeSync(file)
  }
}
