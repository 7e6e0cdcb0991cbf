// Faults of the machine: a clock that steps, and a full disk. The clock is only that of the programs under
// test: a module that is loaded before them returns another wall time, while monotonic time stays correct.
// libfaketime was tried first: reading the clock took ten times as long in a program of many threads, and the
// engine, which has its own C library, kept the machine's time; the service never uses the engine's time.

import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeDisk, missingRequirements } from '../power-cut/disk.ts'

export class SteppedClock {
  /** Environment for programs that use this clock. */
  readonly env: Readonly<Record<string, string>>
  readonly #file: string
  #offsetS = 0

  constructor(folder: string) {
    this.#file = join(folder, 'clock')
    const preload = new URL('stepped-date.mjs', import.meta.url).href
    this.env = { NODE_OPTIONS: `--import=${preload}`, LETHE_JEPSEN_CLOCK: this.#file }
    this.step(0)
  }

  /** Steps by this many seconds; all programs see it a quarter of a second later. */
  step(seconds: number): void {
    this.#offsetS += seconds
    writeFileSync(`${this.#file}.new`, String(this.#offsetS))
    renameSync(`${this.#file}.new`, this.#file)
  }
}

export interface SmallDisk {
  readonly folder: string
  /** Takes every free byte. Returns how many it took. */
  fill(): number
  free(): void
  remove(): void
}

/** Creates a small separate file system; returns a sentence where that is not possible. */
export function makeSmallDisk(root: string, sizeBytes: number): SmallDisk | string {
  const missing = missingRequirements('ext4', [])
  if (missing.length > 0) return missing.join('; ')
  try {
    const disk = makeDisk(root, 'ext4', { imageBytes: sizeBytes, options: ['-m', '0'] })
    return { folder: disk.mount, ...ballastIn(disk.mount), remove: () => disk.remove() }
  } catch (error) {
    return `no file system could be mounted: ${error instanceof Error ? error.message.split('\n')[0] : error}`
  }
}

function ballastIn(folder: string): Pick<SmallDisk, 'fill' | 'free'> {
  const ballast = join(folder, 'ballast')
  return {
    fill() {
      const { bavail, bsize } = statfsSync(folder)
      const bulk = Math.max(0, bavail * bsize - (1 << 20))
      if (bulk > 0) spawnSync('fallocate', ['-l', String(bulk), ballast])
      const file = openSync(ballast, 'a')
      let written = bulk
      try {
        for (const block of [Buffer.alloc(1 << 16), Buffer.alloc(1 << 12)])
          for (;;) {
            try {
              written += writeSync(file, block)
              fsyncSync(file)
            } catch {
              break
            }
          }
      } finally {
        closeSync(file)
      }
      return written
    },
    free() {
      if (existsSync(ballast)) rmSync(ballast)
      execFileSync('sync', ['-f', folder])
    },
  }
}
