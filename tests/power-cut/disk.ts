// A separate file system whose power can be cut: an image file that is formatted, mounted through a loop
// device, shut down without flushing its log, and mounted again, which replays its journal. What had reached
// the image stays; data that was never synced, or the last seconds of the journal, is lost. The image itself
// is a disk that keeps all writes in order: a disk with an unreliable cache is not tested.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const filesystems = ['ext4', 'xfs'] as const
type Filesystem = (typeof filesystems)[number]

/** Sparse, so it uses only what is written. XFS needs at least 300 MB. */
const usualImageBytes = 4 * 2 ** 30

/**
 * Returns sentences about what this machine lacks; empty where such a disk can be made and the programs in
 * `others` exist.
 */
export function missingRequirements(
  filesystem: Filesystem,
  others: readonly string[] = ['xfs_io'],
): string[] {
  const tools = [`mkfs.${filesystem}`, 'mount', 'umount', ...others]
  const lacking = tools.filter((tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0)
  return [
    ...(process.getuid?.() === 0 ? [] : ['it must run as root']),
    ...(existsSync('/dev/loop-control') ? [] : ['there are no loop devices']),
    ...(lacking.length === 0 ? [] : [`these programs are missing: ${lacking.join(', ')}`]),
  ]
}

export interface Disk {
  /** Where it is mounted. */
  readonly mount: string
  /** Writes everything to the image, as the operating system does within half a minute. */
  settle(): void
  /** Cuts the power. Every later write fails. */
  cut(): void
  /** Mounts it as the next start of the machine would; all processes that had files open must have ended. */
  remount(): Promise<void>
  /** Unmounts it and removes the image, whatever its state. Idempotent. */
  remove(): void
}

interface DiskOptions {
  readonly imageBytes?: number
  /** More arguments of `mkfs`. */
  readonly options?: readonly string[]
}

export function makeDisk(
  root: string,
  filesystem: Filesystem,
  { imageBytes = usualImageBytes, options = [] }: DiskOptions = {},
): Disk {
  const folder = mkdtempSync(join(root, 'lethe-power-'))
  const [image, mount] = [join(folder, 'image'), join(folder, 'mount')]
  const attach = () => execFileSync('mount', ['-o', 'loop', '-t', filesystem, image, mount])
  const remove = () => {
    // Lazily, because a process that was just killed may still have files open.
    spawnSync('umount', ['-l', mount])
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    mkdirSync(mount)
    writeFileSync(image, '')
    truncateSync(image, imageBytes)
    execFileSync(`mkfs.${filesystem}`, ['-q', ...options, image])
    attach()
  } catch (error) {
    remove()
    throw error
  }
  return {
    mount,
    settle: () => void execFileSync('sync', ['-f', mount]),
    cut: () => void execFileSync('xfs_io', ['-x', '-c', 'shutdown', mount]),
    async remount() {
      for (let tries = 0; spawnSync('umount', [mount]).status !== 0; tries++) {
        if (tries === 100) throw new Error('The file system is still in use.')
        await sleep(100)
      }
      attach()
    },
    remove,
  }
}
