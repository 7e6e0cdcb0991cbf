// One sync of a whole file system in place of one for every file: a commit is a thousand small files, and
// whoever asks the disk for each of them waits a thousand times for what it does at once in a few
// milliseconds (docs/decisions/0022). The runtime has no such call, so a shell that lives as long as this
// runs the system's `sync -f`. What it keeps: a call resolves only after a sync that began after the call,
// and that the system reported as done. When a sync began is kept on the disk too, as the time of a file: all
// that is older has arrived. Only such a file is renamed into place whose sync is done, so what a cut of
// power leaves is at worst too early a time.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Two files by turns, so that one sync can begin while the time of the one before is being put in place. */
const turns = 2
const markName = 'synced'
const begunName = (turn: number) => `sync-begun-${turn}`

/**
 * `$0` is the folder; it reads a file's name a line and answers each with a line. The file's
 * time is when it is emptied.
 */
const script = `cd "$0" || exit 1
while read -r begun; do
  if : > "$begun" && sync -f . ; then echo done; else echo failed; fi
done`

/** Nothing of our own environment, which may hold secrets, is handed on. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
}

export class DiskSync {
  readonly #folder: string
  #shell: Shell | null = null
  #running: Promise<void> | null = null
  #next: Promise<void> | null = null
  #turn = 0
  /** The last renaming of each turn's file. */
  readonly #marking: Promise<void>[] = Array.from({ length: turns }, () => Promise.resolve())

  /** @param folder on the file system that is to be synced; the files of this are in it */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
  }

  /**
   * Resolves when everything that had been written to the file system is on the disk; callers share a sync
   * where they can. Rejects where the system couldn't do it: what was written may then never arrive, also
   * if a later call resolves.
   */
  sync(): Promise<void> {
    if (this.#next !== null) return this.#next
    if (this.#running === null) return this.#begin()
    // What is under way may have passed by what the caller wrote.
    const begin = () => this.#begin()
    this.#next = this.#running.then(begin, begin)
    return this.#next
  }

  /** Waits for what runs, then ends the shell. */
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
    // Whoever waits for the sync doesn't wait for this, and where it fails the older time is still true.
    this.#marking[turn] = rename(join(this.#folder, begun), join(this.#folder, markName)).catch(
      () => undefined,
    )
  }
}

/** One shell, which is asked for one thing at a time. */
class Shell {
  #hasEnded = false
  readonly #child: ChildProcess
  #said = ''
  #answer: ((line: string) => void) | null = null

  constructor(folder: string) {
    // In a process group of its own: what a terminal sends to end the service would end this
    // in the middle of a commit.
    this.#child = spawn('sh', ['-c', script, folder], { env: environment, detached: true, stdio: 'pipe' })
    const { stdin, stdout, stderr } = this.#child
    const end = () => {
      this.#hasEnded = true
      this.#answer?.('ended')
    }
    this.#child.on('error', end).on('close', end)
    // A shell that has ended takes nothing more; its end is what is told.
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
 * Nanoseconds since 1970 by the file system's clock: what had been written by then is on the disk.
 * Null where nobody knows.
 */
export async function syncedUntilNs(folder: string): Promise<bigint | null> {
  const mark = await stat(join(folder, markName), { bigint: true }).catch(() => null)
  return mark?.mtimeNs ?? null
}

/** From here on nobody says until when all is on the disk. */
export async function forgetSyncs(folder: string): Promise<void> {
  const names = [markName, ...Array.from({ length: turns }, (_, turn) => begunName(turn))]
  await Promise.all(names.map((name) => rm(join(folder, name), { force: true })))
}
