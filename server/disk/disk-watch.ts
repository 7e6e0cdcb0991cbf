// What the disk allows now. While it is full or failing nothing that grows is begun: senders are told to
// repeat, and `/readyz` says why. Whatever frees space may use the reserve then (reserve.ts). It is looked at
// by writing, because no number a file system gives says whether the next write succeeds, and it recovers by
// itself once there is room for the whole reserve and something besides.

import { mkdirSync, rmSync, statfsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { AppError, storageRetrySeconds } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { type StorageFault, storageFaultOf } from '../core/storage-fault.ts'
import type { Reserve } from './reserve.ts'

/** A file system that the service writes to. */
export interface WatchedDisk {
  readonly reserve: Reserve
  /**
   * Whether telemetry and the control plane are on it; one that only has backups holds up nobody but them.
   */
  readonly isNeeded: boolean
}

interface DiskWatchOptions {
  readonly disks: readonly WatchedDisk[]
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info'>
}

/** Between two looks while all is well; a sync costs about as much as a commit. */
const everyMs = 5000
/** While it is not, so that senders soon go on. */
const everyTroubledMs = 1000

/** What a look writes: more than one block, so that a disk with its last blocks left counts as full. */
const probeBytes = 64 * 1024
const probeName = 'write-probe'

/** The engine drops a partition only where it finds this much free. */
const engineNeedsBytes = 1024 * 1024

const sentences: Readonly<Record<StorageFault, string>> = {
  full: 'The disk is full: telemetry is refused until space is free. Deletions and legal holds are taken as long as the reserve lasts.',
  failing: 'The disk takes no writes: it is read-only or returns errors. The log names the cause.',
}

export class DiskWatch {
  readonly #options: DiskWatchOptions
  #fault: StorageFault | null = null
  /**
   * Whoever may use the reserve now; while there are any it is built again only where there is room for both.
   */
  #users = 0
  readonly #stop = new AbortController()
  #loop: Promise<void> | null = null

  constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  /** Null while the disk takes what it is given. */
  get fault(): StorageFault | null {
    return this.#fault
  }

  /** The fault as a sentence for people; null where there is none. */
  get sentence(): string | null {
    return this.#fault === null ? null : sentences[this.#fault]
  }

  /** Bytes that may still be written, on the fullest disk that is needed. */
  get freeBytes(): number {
    return Math.min(...this.#needed.map(({ reserve }) => freeBytes(reserve.folder)))
  }

  /** Throws `storage_unavailable`, which senders repeat, while the disk is full or failing. */
  requireRoom(): void {
    if (this.#fault === null) return
    throw new AppError('storage_unavailable', {
      sentence: sentences[this.#fault],
      retryAfterSeconds: storageRetrySeconds,
    })
  }

  /**
   * What failed work says of the disk, which is known from then on. Where the error itself doesn't tell, as
   * those of the engine seldom do, the disk is asked.
   */
  async faultBehind(error: unknown): Promise<StorageFault | null> {
    const fault = storageFaultOf(error) ?? (error instanceof AppError ? null : await this.#probe())
    if (fault !== null) this.#enter(fault, error)
    return fault
  }

  /**
   * Work that frees space, or has to be taken on a full disk: where it fails for want of room it is done
   * once more, with the reserve.
   */
  readonly withReserve = async <T>(work: () => Promise<T>): Promise<T> => {
    this.#users++
    try {
      return await work()
    } catch (error) {
      if (storageFaultOf(error) !== 'full') throw error
      this.#enter('full', error)
      if (!this.#release(() => true)) throw error
      return await work()
    } finally {
      this.#users--
    }
  }

  /**
   * As {@link withReserve} for work that deals with its own errors: lets the reserve go first, where there is
   * little room and `isNeeded` answers that there is something to do.
   */
  async withReserveReady<T>(isNeeded: () => Promise<boolean>, work: () => Promise<T>): Promise<T> {
    this.#users++
    try {
      if (this.#options.disks.some(isShort) && (await isNeeded())) this.#release(isShort)
      return await work()
    } finally {
      this.#users--
    }
  }

  /** Before anything is opened: a start needs room too. The caller has the data folder for itself. */
  prepareStart(): void {
    this.#release(isShort)
  }

  /** Looks once: notices a fault, and its end. Never throws. */
  async look(): Promise<void> {
    const fault = await this.#probe()
    const isWhole = await this.#build()
    if (fault !== null) this.#enter(fault, null)
    else if (!isWhole || this.#needed.some(isShort)) this.#enter('full', null)
    else this.#leave()
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

  /** A disk that only has backups is built on where it can be, and never tells anything. */
  async #build(): Promise<boolean> {
    let isWhole = true
    for (const { isNeeded, reserve } of this.#options.disks) {
      // Erasures that go on for long must not keep telemetry out of a disk that has room for both.
      const isAmple = hasRoomTwice(reserve)
      if (this.#users > 0 && !isAmple) isWhole &&= reserve.isWhole || !isNeeded
      else {
        const isBuilt = await reserve.build().catch(() => false)
        isWhole &&= isBuilt || !isNeeded
        // Whoever came meanwhile may have found a disk without room.
        if (this.#users > 0 && this.#fault !== null && !isAmple) reserve.release()
      }
    }
    return isWhole
  }

  async #probe(): Promise<StorageFault | null> {
    for (const { reserve } of this.#needed) {
      try {
        await probe(reserve.folder)
      } catch (error) {
        return storageFaultOf(error) ?? 'failing'
      }
    }
    return null
  }

  #release(isMeant: (disk: WatchedDisk) => boolean): boolean {
    const released = this.#options.disks.filter((disk) => isMeant(disk) && disk.reserve.release())
    if (released.length === 0) return false
    const folders = released.map(({ reserve }) => reserve.folder)
    this.#options.logger.info({ folders }, 'the disk is full; the reserve was let go')
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
    this.#options.logger.info('the disk takes writes again; telemetry is taken')
  }
}

/** Whether less is free than lets anything begin: a quarter of the reserve, and what the engine asks for. */
function isShort({ reserve }: WatchedDisk): boolean {
  return freeBytes(reserve.folder) < Math.max(engineNeedsBytes, reserve.bytes / 4)
}

/** Whether there is room for the whole reserve and as much again for whoever would use it. */
function hasRoomTwice({ bytes, folder, keptBytes }: Reserve): boolean {
  return freeBytes(folder) + keptBytes >= 2 * bytes
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // What isn't there yet has nothing in it either.
    return Number.MAX_SAFE_INTEGER
  }
}

/** Writes, and waits for the disk. */
async function probe(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
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
    rmSync(path, { force: true })
  }
}
