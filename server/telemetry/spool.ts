// Lends bytes to the engine as a file without a name: the library accepts binary rows in no other way. The
// name is removed before the first byte is written, so that neither a crash nor an erasure leaves the bytes
// in any folder. A file is emptied as soon as the engine has read it, and used again, because creating one
// takes three turns of the event loop, for which a commit would wait. Where there is no /proc the names of
// empty files stay, until the spool is closed or the folder is opened again.

import { mkdirSync, rmSync } from 'node:fs'
import { type FileHandle, open, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Whether a descriptor can be opened again by its path after the name is removed. */
const hasNamelessFiles = process.platform === 'linux'

/** Empty files that are kept; more are in use at once only where many commits fail slowly. */
const idleMax = 32

interface SpoolFile {
  readonly handle: FileHandle
  /** The path that the engine opens. */
  readonly path: string
}

export class Spool {
  readonly #folder: string
  readonly #idle: SpoolFile[] = []
  /** Files that are being emptied or closed. */
  readonly #settling = new Set<Promise<void>>()
  #made = 0
  #closed = false

  /** @param folder a folder for this spool alone; its content is removed */
  constructor(folder: string) {
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /**
   * Runs `use` with the path of a file that contains the chunks one after another. Empties the file
   * afterwards.
   */
  async lend<T>(chunks: readonly Buffer[], use: (path: string) => Promise<T>): Promise<T> {
    const file = this.#idle.pop() ?? (await this.#make())
    try {
      await writeAll(file.handle, chunks)
      return await use(file.path)
    } finally {
      this.#settle(file)
    }
  }

  /** Closes idle files. Call it when nothing is lent. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#settling)
    await Promise.all(this.#idle.splice(0).map((file) => discard(file)))
  }

  async #make(): Promise<SpoolFile> {
    const name = join(this.#folder, `rows-${++this.#made}`)
    const handle = await open(name, 'wx+', 0o600)
    if (!hasNamelessFiles) return { handle, path: name }
    try {
      await unlink(name)
    } catch (error) {
      await handle.close()
      throw error
    }
    return { handle, path: `/proc/self/fd/${handle.fd}` }
  }

  /** Runs in the background: the caller of `use` does not wait for it. */
  #settle(file: SpoolFile): void {
    const settled = this.#empty(file).finally(() => this.#settling.delete(settled))
    this.#settling.add(settled)
  }

  async #empty(file: SpoolFile): Promise<void> {
    const isEmpty = await file.handle.truncate(0).then(
      () => true,
      () => false,
    )
    if (isEmpty && !this.#closed && this.#idle.length < idleMax) this.#idle.push(file)
    else await discard(file)
  }
}

/** The descriptor was the last reference to the bytes, so they are freed even where closing fails. */
async function discard({ handle, path }: SpoolFile): Promise<void> {
  await handle.close().catch(() => undefined)
  if (!hasNamelessFiles) await rm(path, { force: true })
}

/** Writes into an empty file. The system may write less than it was given. */
async function writeAll(file: FileHandle, chunks: readonly Buffer[]): Promise<void> {
  let left = chunks.filter((chunk) => chunk.length > 0)
  let position = 0
  while (left.length > 0) {
    const { bytesWritten } = await file.writev(left, position)
    position += bytesWritten
    left = withoutFirst(left, bytesWritten)
  }
}

function withoutFirst(chunks: readonly Buffer[], bytes: number): Buffer[] {
  let passed = bytes
  return chunks.flatMap((chunk) => {
    const skipped = Math.min(passed, chunk.length)
    passed -= skipped
    return skipped === chunk.length ? [] : [chunk.subarray(skipped)]
  })
}
