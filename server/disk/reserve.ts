// A file that only occupies space. An erasure frees space by writing first: the request and its ledger entry,
// the journal, parts that mark what is dropped. On a full disk it could not begin, so this space is reserved
// for it and released when it is needed. The blocks are allocated in the file system: a sparse file would
// reserve nothing.

import { execFile } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { mkdir, open, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { storageFaultOf } from '../core/storage-fault.ts'
import type { DiskCalls } from './disk-calls.ts'

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
  readonly calls: DiskCalls
  /** Size of the whole reserve; 0 where none is configured. */
  readonly bytes: number
  readonly #path: string

  /** @param calls of a folder on the file system; {@link build} creates the folder where it is absent */
  constructor(calls: DiskCalls, bytes: number) {
    this.calls = calls
    this.bytes = bytes
    this.#path = join(calls.folder, fileName)
  }

  /** Returns the bytes that are reserved now; 0 where the disk does not answer. */
  async keptBytes(): Promise<number> {
    return this.calls
      .run(() => stat(this.#path))
      .then(
        ({ size }) => size,
        () => 0,
      )
  }

  async isWhole(): Promise<boolean> {
    return (await this.keptBytes()) === this.bytes
  }

  /** Releases the space. Returns false where nothing was reserved, or where the disk does not answer. */
  async release(): Promise<boolean> {
    const wasKept = (await this.keptBytes()) > 0
    return this.calls
      .run(() => rm(this.#path, { force: true }))
      .then(
        () => wasKept,
        () => false,
      )
  }

  /**
   * Reserves all of the space, or as many eighths as fit. Returns whether it is complete; throws where the
   * file system fails for another reason than lack of space.
   */
  async build(): Promise<boolean> {
    if (this.bytes === 0 && !(await this.release())) return true
    if (await this.isWhole()) return true
    const freeBytes = await this.calls.run(async () => {
      await mkdir(this.calls.folder, { recursive: true, mode: 0o700 })
      return freeIn(this.calls.folder)
    })
    const eighth = Math.ceil(this.bytes / eighths)
    const most = Math.min(eighths, Math.floor((freeBytes + (await this.keptBytes())) / eighth))
    for (let part = most; part > 0; part--) {
      const bytes = Math.min(this.bytes, part * eighth)
      if ((await this.keptBytes()) === bytes) break
      await this.release()
      if (await this.#take(bytes)) break
    }
    return this.isWhole()
  }

  async #take(bytes: number): Promise<boolean> {
    try {
      await this.calls.during(() => allocate(this.#path, bytes))
      return true
    } catch (error) {
      await this.release()
      if (storageFaultOf(error) === 'full') return false
      throw error
    }
  }
}

/** Returns the bytes that this process may still write to the folder's file system. */
export async function freeIn(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
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
