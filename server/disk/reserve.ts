// A file that only takes up room. An erasure frees space by writing first: the request and its ledger
// entry, the journal, parts that say what is dropped. On a full disk it could not begin, so this room is
// kept for it and let go when it is needed. The blocks are taken from the file system, not only named: a
// sparse file would keep nothing.

import { execFile } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { mkdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { storageFaultOf } from '../core/storage-fault.ts'

const fileName = 'reserve'

/** Where there is no room for all of it, it is built in steps of this part. */
const eighths = 8

/** Written at once where the file system can't set blocks aside by itself. */
const chunkBytes = 1024 * 1024

/** Nothing of our own environment, which may hold secrets, is handed on. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
}

export class Reserve {
  readonly folder: string
  /** Of the whole reserve; 0 where none is kept. */
  readonly bytes: number
  readonly #path: string

  /**
   * @param folder on the file system whose room is kept; created where absent, with the first {@link build}
   */
  constructor(folder: string, bytes: number) {
    this.folder = folder
    this.bytes = bytes
    this.#path = join(folder, fileName)
  }

  /** Bytes that are kept now. */
  get keptBytes(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
  }

  get isWhole(): boolean {
    return this.keptBytes === this.bytes
  }

  /** Lets the room go. False where there was none. */
  release(): boolean {
    const wasKept = this.keptBytes > 0
    rmSync(this.#path, { force: true })
    return wasKept
  }

  /**
   * Keeps all of the room, or as many eighths of it as there are. Answers whether it is whole; throws where
   * the file system refuses for another reason than a lack of room.
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
 * By the system's `fallocate`, which writes nothing; by writing where the file system or the system hasn't
 * that.
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

/** Chance, because a file system that compresses would keep no room for zeros. */
async function fill(file: Awaited<ReturnType<typeof open>>, bytes: number): Promise<void> {
  const chunk = randomFillSync(Buffer.alloc(Math.min(chunkBytes, bytes)))
  await file.truncate(0)
  for (let written = 0; written < bytes; ) {
    const { bytesWritten } = await file.write(chunk, 0, Math.min(chunk.length, bytes - written), written)
    written += bytesWritten
  }
}
