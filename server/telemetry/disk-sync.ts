// Syncs a whole file system at once instead of file by file: a commit is a thousand small files, and syncing
// each of them waits a thousand times for work that the disk does at once in a few milliseconds
// (docs/decisions/0022). The runtime has no such call, so a shell that lives as long as this object runs the
// system's `sync -f`. The invariant: a call resolves only after a sync that began after the call and that the
// system reported as done. The start of each sync is also kept on the disk, as the time of a file: everything
// older is on the disk. Such a file is renamed into place only after its sync is done, so after a power loss
// the time is at worst too early.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * Two files in turn, so that one sync can begin while the time of the previous one is being renamed into
 * place.
 */
const turns = 2
const markName = 'synced'
const begunName = (turn: number) => `sync-begun-${turn}`

/**
 * `$0` is the folder. Reads the name of a file from each line and answers each with a line. The time of the
 * file is the time at which it is emptied.
 */
const script = `cd "$0" || exit 1
while read -r begun; do
  if : > "$begun" && sync -f . ; then echo done; else echo failed; fi
done`

/** The shell gets no variable of our own environment, which may contain secrets. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
}

export class DiskSync {
  readonly #folder: string
  #shell: Shell | null = null
  #running: Promise<void> | null = null
  #next: Promise<void> | null = null
  #turn = 0
  /** The last renaming of the file of each turn. */
  readonly #marking: Promise<void>[] = Array.from({ length: turns }, () => Promise.resolve())

  /** @param folder a folder on the file system to sync; the files of this object are in it */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
  }

  /**
   * Resolves when everything that was written to the file system before the call is on the disk. Callers
   * share a sync where they can. Rejects where the system could not sync: what was written may then never
   * reach the disk, even if a later call resolves.
   */
  sync(): Promise<void> {
    if (this.#next !== null) return this.#next
    if (this.#running === null) return this.#begin()
    // A sync that is running may have missed what the caller wrote. Where it fails, it may have been the one
    // that should have written it, and the system reports each such error only once.
    this.#next = this.#running.then(
      () => this.#begin(),
      async (cause) => {
        await this.#begin().catch(() => {})
        throw cause
      },
    )
    return this.#next
  }

  /** Waits for the sync that is running, then ends the shell. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next])
    await Promise.all(this.#marking)
    await this.#shell?.close()
  }

  #begin(): Promise<void> {
    this.#next = null
    this.#running = this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #run(): Promise<void> {
    const turn = this.#turn++ % turns
    const begun = begunName(turn)
    await this.#marking[turn]
    this.#shell ??= new Shell(this.#folder)
    try {
      await this.#shell.run(begun)
    } catch (cause) {
      const shell = this.#shell
      this.#shell = null
      await shell.close()
      throw cause
    }
    // Callers wait for the sync and not for the renaming: where that fails, the older time is still correct.
    this.#marking[turn] = rename(join(this.#folder, begun), join(this.#folder, markName)).catch(
      () => undefined,
    )
  }
}

/** One shell, which runs one command at a time. */
class Shell {
  #hasEnded = false
  readonly #child: ChildProcess
  #said = ''
  #answer: ((line: string) => void) | null = null

  constructor(folder: string) {
    // In a process group of its own: a signal that a terminal sends to end the service would end the shell in
    // the middle of a commit.
    this.#child = spawn('sh', ['-c', script, folder], { env: environment, detached: true, stdio: 'pipe' })
    const { stdin, stdout, stderr } = this.#child
    const end = () => {
      this.#hasEnded = true
      this.#answer?.('ended')
    }
    this.#child.on('error', end).on('close', end)
    // Writing to a shell that has ended fails; its end is reported instead.
    stdin?.on('error', () => undefined)
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = text.trim()
    })
    if (stdout !== null) createInterface({ input: stdout }).on('line', (line) => this.#answer?.(line))
  }

  async run(begun: string): Promise<void> {
    const answer = await new Promise<string>((resolve) => {
      this.#answer = resolve
      if (this.#hasEnded) resolve('ended')
      else this.#child.stdin?.write(`${begun}\n`)
    })
    this.#answer = null
    if (answer !== 'done') throw new Error(`The file system could not be synced: ${this.#said || answer}`)
  }

  async close(): Promise<void> {
    if (this.#hasEnded) return
    const closed = once(this.#child, 'close')
    this.#child.stdin?.end()
    await closed
  }
}

/**
 * Returns nanoseconds since 1970 by the clock of the file system: everything written before is on the disk.
 * Null where this is unknown.
 */
export async function syncedUntilNs(folder: string): Promise<bigint | null> {
  const mark = await stat(join(folder, markName), { bigint: true }).catch(() => null)
  return mark?.mtimeNs ?? null
}

/** Forgets the time: until the next sync it is unknown what is on the disk. */
export async function forgetSyncs(folder: string): Promise<void> {
  const names = [markName, ...Array.from({ length: turns }, (_, turn) => begunName(turn))]
  await Promise.all(names.map((name) => rm(join(folder, name), { force: true })))
}
