// Lends bytes to the engine as a file that has no name: the library takes binary rows in no other way. The name is
// removed before the first byte is written, so that neither a crash nor an erasure finds the bytes under any folder;
// the kernel frees them when the last descriptor is closed, and the process's end closes it. Where there is no /proc
// the name is kept until the engine has read it, and files left behind are removed when the folder is opened.

import { mkdirSync, rmSync } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Whether a descriptor can be opened again by path after its name is gone. */
const hasNamelessFiles = process.platform === 'linux'

export class Spool {
  readonly #folder: string
  #lent = 0

  /** @param folder for this alone; what is in it is removed */
  constructor(folder: string) {
    this.#folder = folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** Runs `use` with the path of a file that holds the chunks one after another, and that is gone afterwards. */
  async lend<T>(chunks: readonly Buffer[], use: (path: string) => Promise<T>): Promise<T> {
    const name = join(this.#folder, `rows-${++this.#lent}`)
    const file = await open(name, 'wx+', 0o600)
    try {
      if (hasNamelessFiles) await unlink(name)
      await writeAll(file, chunks)
      return await use(hasNamelessFiles ? `/proc/self/fd/${file.fd}` : name)
    } finally {
      await file.close()
      if (!hasNamelessFiles) await unlink(name)
    }
  }
}

/** The system may write less than it was given. */
async function writeAll(file: FileHandle, chunks: readonly Buffer[]): Promise<void> {
  let left = chunks.filter((chunk) => chunk.length > 0)
  while (left.length > 0) {
    const { bytesWritten } = await file.writev(left)
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
