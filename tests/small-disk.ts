// A disk of a few megabytes that a test can fill, make read-only and free again: a separate file system in
// memory. Mounting it requires root, so a test that needs it is skipped with the reason where that isn't
// allowed.

import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { temporaryFolder } from './fixtures.ts'

interface SmallDisk {
  /** Where it is mounted. */
  readonly folder: string
  /** Takes all room except this many bytes, as another user's file would. */
  fill(leaveBytes?: number): void
  /** Frees what {@link fill} has taken. */
  free(): void
  freeBytes(): number
  /** Unmounts it, even if files in it are still open. */
  remove(): void
}

/** Why such a disk is not possible here; null where it is. */
export function whyNoSmallDisk(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'mounting a small disk requires root on Linux'
  try {
    openSmallDisk(1024 * 1024).remove()
    return null
  } catch (error) {
    return `this system cannot mount a file system: ${error instanceof Error ? error.message : error}`
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

/** A disk that breaks on demand: from then on it is read-only, also for open files. */
interface BreakingDisk {
  readonly folder: string
  break(): void
  remove(): void
}

/** Why it is not possible here; null where it is. */
export function whyNoBreakingDisk(): string | null {
  const why = whyNoSmallDisk()
  if (why !== null) return why
  if (!existsSync('/dev/loop-control')) return 'there are no loop devices'
  const isMissing = ['mkfs.ext4', 'findmnt'].some(
    (tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0,
  )
  return isMissing ? 'mkfs.ext4 or findmnt is missing' : null
}

/** An ext4 in a file, which the kernel treats as damaged on request. */
export function openBreakingDisk(bytes: number): BreakingDisk {
  const parent = temporaryFolder()
  const [image, folder] = [join(parent, 'image'), join(parent, 'disk')]
  mkdirSync(folder)
  writeFileSync(image, '')
  truncateSync(image, bytes)
  execFileSync('mkfs.ext4', ['-q', image], { stdio: 'pipe' })
  execFileSync('mount', ['-o', 'loop,errors=remount-ro', image, folder], { stdio: 'pipe' })
  const device = basename(execFileSync('findmnt', ['-no', 'SOURCE', folder]).toString().trim())
  return {
    folder,
    break: () => writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, 'a test'),
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
