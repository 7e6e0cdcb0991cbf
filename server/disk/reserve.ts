// A file that only occupies space. An erasure frees space by writing first: the request and its ledger entry,
// the journal, parts that mark what is dropped. On a full disk it could not begin, so this space is reserved
// for it and released when it is needed. The blocks are allocated in the file system: a sparse file would
// reserve nothing.

import { execFile } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { mkdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { storageFaultOf } from '../core/storage-fault.ts'

const fileName = 'reserve'

/** Where not all of it fits, it is built in steps of this fraction. */
const eighths = 8

/** Written at once where the file system can't allocate blocks itself. */
const chunkBytes = 1024 * 1024

/** The command gets no variable of our own environment, which may contain secrets. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
}

export class Reserve {
  readonly folder: string
  /** Size of the whole reserve; 0 where none is configured. */
  readonly bytes: number
  readonly #path: string

  /** @param folder a folder on the file system; created by the first {@link build} where absent */
  constructor(folder: string, bytes: number) {
    this.folder = folder
    this.bytes = bytes
    this.#path = join(folder, fileName)
  }

  /** Bytes that are reserved now; 0 where the disk does not answer. */
  get keptBytes(): number {
    try {
      return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
    } catch {
      return 0
    }
  }

  get isWhole(): boolean {
    return this.keptBytes === this.bytes
  }

  /** Releases the space. Returns false where nothing was reserved, or where the disk does not answer. */
  release(): boolean {
    const wasKept = this.keptBytes > 0
    try {
      rmSync(this.#path, { force: true })
    } catch {
      return false
    }
    return wasKept
  }

  /**
   * Reserves all of the space, or as many eighths as fit. Returns whether it is complete; throws where the
   * file system fails for another reason than lack of space.
   */
  async build(): Promise<boolean> {
    if (this.bytes === 0 && !this.release()) return true
    if (this.isWhole) return true
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    const { bavail, bsize } = statfsSync(this.folder)
    const eighth = Math.ceil(this.bytes / eighths)
    const most = Math.min(eighths, Math.floor((bavail * bsize + this.keptBytes) / eighth))
    for (let part = most; part > 0; part--) {
      const bytes = Math.min(this.bytes, part * eighth)
      if (this.keptBytes === bytes) break
      this.release()
      if (await this.#take(bytes)) break
    }
    return this.isWhole
  }

  async #take(bytes: number): Promise<boolean> {
    try {
      await allocate(this.#path, bytes)
      return true
    } catch (error) {
      this.release()
      if (storageFaultOf(error) === 'full') return false
      throw error
    }
  }
}

/**
 * Allocates with the system's `fallocate`, which writes nothing; by writing where the file system or the
 * system doesn't have it.
 */
async function allocate(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    const isAllocated = await promisify(execFile)('fallocate', ['-l', String(bytes), path], {
      env: environment,
    }).then(
      () => true,
      () => false,
    )
    if (!isAllocated) await fill(file, bytes)
  } finally {
    await file.close()
  }
}

/** Random bytes, because a file system that compresses would reserve no space for zeros. */
async function fill(file: Awaited<ReturnType<typeof open>>, bytes: number): Promise<void> {
  const chunk = randomFillSync(Buffer.alloc(Math.min(chunkBytes, bytes)))
  await file.truncate(0)
  for (let written = 0; written < bytes; ) {
    const { bytesWritten } = await file.write(chunk, 0, Math.min(chunk.length, bytes - written), written)
    written += bytesWritten
  }
}
