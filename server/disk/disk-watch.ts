// Watches whether the disk accepts writes. While it is full or failing, nothing that needs space is begun:
// senders are refused and should retry, and `/readyz` says why. Work that frees space may then use the
// reserve (reserve.ts). The check writes, because no number from a file system shows whether the next write
// succeeds. The state recovers by itself when there is space for the whole reserve and more.

import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { AppError, storageRetrySeconds } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { type StorageFault, storageFaultOf } from '../core/storage-fault.ts'
import { DiskNotAnswering } from './disk-calls.ts'
import { freeIn, type Reserve } from './reserve.ts'

/** A file system that the service writes to. */
export interface WatchedDisk {
  readonly reserve: Reserve
  /** Whether telemetry and the control plane are on it; a disk with only backups affects nothing else. */
  readonly isNeeded: boolean
}

interface DiskWatchOptions {
  readonly disks: readonly WatchedDisk[]
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info'>
}

/** Interval of the checks while the disk works; a sync costs about as much as a commit. */
const everyMs = 5000
/** Interval while it does not, so that senders can soon continue. */
const everyTroubledMs = 1000

/** What a check writes: more than one block, so that a disk with only its last blocks free counts as full. */
const probeBytes = 64 * 1024
const probeName = 'write-probe'

/** The engine drops a partition only where this much is free. */
const engineNeedsBytes = 1024 * 1024

const sentences: Readonly<Record<StorageFault, string>> = {
  full: 'The disk is full: telemetry is refused until space is free. Deletions and legal holds are accepted as long as the reserve lasts.',
  failing:
    'The disk refuses writes: it is read-only, returns errors or does not answer. The log names the cause.',
}

export class DiskWatch {
  readonly #options: DiskWatchOptions
  #fault: StorageFault | null = null
  #freeBytes = Number.NaN
  /**
   * Number of operations that may use the reserve now; while there are any, the reserve is built only where
   * there is space for both.
   */
  #users = 0
  readonly #stop = new AbortController()
  #loop: Promise<void> | null = null

  constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  /** Null while the disk accepts writes. */
  get fault(): StorageFault | null {
    return this.#fault
  }

  /** The fault as a sentence for people; null where there is none. */
  get sentence(): string | null {
    return this.#fault === null ? null : sentences[this.#fault]
  }

  /**
   * Bytes that could still be written at the last check, on the fullest disk that is needed; NaN before the
   * first one.
   */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Throws `storage_unavailable` while the disk is full or failing; senders retry. */
  requireRoom(): void {
    if (this.#fault === null) return
    throw new AppError('storage_unavailable', {
      sentence: sentences[this.#fault],
      retryAfterSeconds: storageRetrySeconds,
    })
  }

  /**
   * Returns the fault of the disk that an error proves, and remembers it. Where the error itself does not
   * show it, as with most errors of the engine, the disk is checked. That a disk with only backups does not
   * answer is not remembered.
   */
  async faultBehind(error: unknown): Promise<StorageFault | null> {
    const fault = storageFaultOf(error) ?? (error instanceof AppError ? null : await this.#probe())
    if (fault !== null && !this.#isBesideNeeded(error)) this.#enter(fault, error)
    return fault
  }

  /**
   * Runs work that frees space, or that must be accepted on a full disk: where it fails for lack of space it
   * is repeated once with the reserve.
   */
  readonly withReserve = async <T>(work: () => Promise<T>): Promise<T> => {
    this.#users++
    try {
      return await work()
    } catch (error) {
      if (storageFaultOf(error) !== 'full') throw error
      this.#enter('full', error)
      if (!(await this.#release(async () => true))) throw error
      return await work()
    } finally {
      this.#users--
    }
  }

  /**
   * Like {@link withReserve} for work that handles its own errors: releases the reserve before the work,
   * where little space is free and `isNeeded` returns true.
   */
  async withReserveReady<T>(isNeeded: () => Promise<boolean>, work: () => Promise<T>): Promise<T> {
    this.#users++
    try {
      if ((await anyIs(this.#options.disks, isShort)) && (await isNeeded())) await this.#release(isShort)
      return await work()
    } finally {
      this.#users--
    }
  }

  /**
   * Call it before anything is opened: a start needs space too. The caller has the data folder for itself.
   */
  async prepareStart(): Promise<void> {
    await this.#release(isShort)
  }

  /** Checks once: notices a fault, and its end. Never throws. */
  async look(): Promise<void> {
    const fault = await this.#probe()
    const isWhole = await this.#build()
    if (fault !== null) this.#enter(fault, null)
    else if (!isWhole || (await anyIs(this.#needed, isShort))) this.#enter('full', null)
    else this.#leave()
    const free = await Promise.all(this.#needed.map(freeBytes))
    if (!free.includes(unknownBytes)) this.#freeBytes = Math.min(...free)
  }

  start(): void {
    this.#loop ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  get #needed(): readonly WatchedDisk[] {
    return this.#options.disks.filter(({ isNeeded }) => isNeeded)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.#options.clock.sleep(this.#fault === null ? everyMs : everyTroubledMs, signal)
      if (!signal.aborted) await this.look()
    }
  }

  /**
   * On a disk with only backups the reserve is built where possible, and its faults are not reported. One
   * disk does not wait for another, which may not answer.
   */
  async #build(): Promise<boolean> {
    const built = await Promise.all(
      this.#options.disks.map(async (disk) => (await this.#buildOn(disk)) || !disk.isNeeded),
    )
    return built.every((isBuilt) => isBuilt)
  }

  async #buildOn(disk: WatchedDisk): Promise<boolean> {
    const { reserve } = disk
    // Long erasures must not keep telemetry from a disk that has space for both.
    const isAmple = await hasRoomTwice(disk)
    if (this.#users > 0 && !isAmple) return reserve.isWhole()
    const isBuilt = await reserve.build().catch(() => false)
    // Work that began meanwhile may have found a full disk.
    if (this.#users > 0 && this.#fault !== null && !isAmple) await reserve.release()
    return isBuilt
  }

  async #probe(): Promise<StorageFault | null> {
    for (const { calls } of this.#needed.map(({ reserve }) => reserve)) {
      try {
        await calls.run(() => probe(calls.folder))
      } catch (error) {
        return storageFaultOf(error) ?? 'failing'
      }
    }
    return null
  }

  /** Whether the error says that a disk with only backups does not answer. */
  #isBesideNeeded(error: unknown): boolean {
    return (
      error instanceof DiskNotAnswering &&
      this.#needed.every(({ reserve }) => reserve.calls.folder !== error.path)
    )
  }

  async #release(isMeant: (disk: WatchedDisk) => Promise<boolean>): Promise<boolean> {
    const folders: string[] = []
    await Promise.all(
      this.#options.disks.map(async (disk) => {
        if ((await isMeant(disk)) && (await disk.reserve.release())) folders.push(disk.reserve.calls.folder)
      }),
    )
    if (folders.length === 0) return false
    this.#options.logger.info({ folders }, 'the disk is full; the reserve was released')
    return true
  }

  #enter(fault: StorageFault, cause: unknown): void {
    if (this.#fault === fault) return
    this.#fault = fault
    this.#options.logger.error({ ...(cause !== null && { err: cause }), fault }, sentences[fault])
  }

  #leave(): void {
    if (this.#fault === null) return
    this.#fault = null
    this.#options.logger.info('the disk accepts writes again; telemetry is accepted')
  }
}

async function anyIs(
  disks: readonly WatchedDisk[],
  test: (disk: WatchedDisk) => Promise<boolean>,
): Promise<boolean> {
  return (await Promise.all(disks.map(test))).some((is) => is)
}

/**
 * Whether too little is free for anything to begin: less than a quarter of the reserve, or than the engine
 * needs.
 */
async function isShort(disk: WatchedDisk): Promise<boolean> {
  return (await freeBytes(disk)) < Math.max(engineNeedsBytes, disk.reserve.bytes / 4)
}

/** Whether there is space for the whole reserve and as much again for the work that uses it. */
async function hasRoomTwice(disk: WatchedDisk): Promise<boolean> {
  return (await freeBytes(disk)) + (await disk.reserve.keptBytes()) >= 2 * disk.reserve.bytes
}

/** A folder that doesn't exist is empty, and one that does not answer must not count as full. */
const unknownBytes = Number.MAX_SAFE_INTEGER

function freeBytes({ reserve: { calls } }: WatchedDisk): Promise<number> {
  return calls.run(() => freeIn(calls.folder)).catch(() => unknownBytes)
}

/** Writes, and waits for the disk. */
async function probe(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, probeName)
  try {
    const file = await open(path, 'w', 0o600)
    try {
      await file.writeFile(Buffer.alloc(probeBytes))
      await file.sync()
    } finally {
      await file.close()
    }
  } finally {
    await rm(path, { force: true })
  }
}
