// The erasure journal: a file beside the backups that names every erasure that began. A control plane from a
// backup doesn't know what was erased after it; the journal does, and is never part of a restore. Each line
// is sealed with the service's journal seal, a secret, over the seal of the line before it. A line that can't
// be verified stops the start: somebody changed what must be erased.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { mkdir, open, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import canonicalize from 'canonicalize'
import { z } from 'zod'
import { fileBounds, parseBoundedJson } from '../core/input/json-bounds.ts'
import type { DiskCalls } from '../disk/disk-calls.ts'
import { signals } from '../telemetry/schema/tables.ts'
import { isMissing, syncPath } from './files.ts'

/** Name of the journal beside the backups. */
export const journalFile = 'erasures.ndjson'

const nsText = z.string().regex(/^-?\d{1,30}$/)

const JournalEntry = z.strictObject({
  request_id: z.string().min(1),
  tenant_id: z.string().min(1),
  placement: z.int().min(0),
  scope: z.enum(['range', 'all']),
  signals: z.array(z.enum(signals)).min(1),
  /** Nanoseconds; null where the selection has no such bound. */
  range_start_ns: nsText.nullable(),
  range_end_ns: nsText.nullable(),
  requested_by: z.string(),
  created_at_ms: z.int(),
  refuse_late: z.boolean(),
  reason: z.string().nullable(),
  /**
   * Hash of the organisation's first audit entry: distinguishes it from another with the same name. Older
   * lines have none.
   */
  founding_hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
})

/** An erasure as it was requested: enough to repeat it without the control plane that recorded it. */
export type JournalEntry = z.infer<typeof JournalEntry>

const Line = z.strictObject({ entry: JournalEntry, mac: z.string().regex(/^[0-9a-f]{64}$/) })

/** The journal can't be trusted. Nothing may be served before a person has looked at it. */
export class JournalError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JournalError'
  }
}

/** The result of reading the file: complete lines only. */
interface Known {
  readonly entries: ReadonlyMap<string, JournalEntry>
  readonly lastMac: string
  /** Length of the complete lines; anything after it is a line that was not completely written. */
  readonly sizeBytes: number
}

/** Where a line may be added: after everything that was read, or after the last line of this process. */
interface End extends Pick<Known, 'lastMac' | 'sizeBytes'> {
  readonly entries?: ReadonlyMap<string, JournalEntry>
  readonly ids?: Set<string>
}

/** The last line that this process wrote, and the state of the file after it. */
interface Left {
  readonly ids: Set<string>
  readonly lastMac: string
  readonly sizeBytes: number
  readonly stamp: string | null
}

const start: Known = { entries: new Map(), lastMac: '', sizeBytes: 0 }

/** One process appends at a time: the one that has the lock of the telemetry engine. */
export class ErasureJournal {
  readonly path: string
  readonly #seal: string
  /** One call at a time: two that read the end of the file and write there would lose a line. */
  readonly #calls: DiskCalls
  #left: Left | null = null

  /**
   * `seal` is the key of the seals; a backup contains the secret from which it is derived. All journals of
   * the same file in this process must have the same `calls`.
   */
  constructor(backupDir: string, seal: string, calls: DiskCalls) {
    this.path = join(backupDir, journalFile)
    this.#seal = seal
    this.#calls = calls
  }

  /**
   * Returns every erasure that began, oldest first; none where there is no file. Throws JournalError naming
   * the first wrong line.
   */
  async read(): Promise<JournalEntry[]> {
    const { entries } = await this.#calls.run(() => this.#load())
    return [...entries.values()]
  }

  /**
   * Creates an empty journal where there is none, so that a missing journal beside a backup means a lost one.
   */
  async ensure(): Promise<void> {
    await this.#calls.run(async () => {
      if ((await stampOf(this.path)) === null) await this.#write(Buffer.alloc(0), 0)
    })
  }

  /**
   * Returns after the entry is on the disk, so that the erasure may act. Does nothing where the entry exists
   * already. Throws JournalError where the same request exists with another selection, and any error of the
   * file system, also where it does not answer: then the erasure must not act.
   */
  async append(entry: JournalEntry): Promise<void> {
    const text = textOf(JournalEntry.parse(entry))
    await this.#calls.run(() => this.#append(entry, text))
  }

  async #append(entry: JournalEntry, text: string): Promise<void> {
    const end: End = (await this.#endAsWeLeftIt(entry.request_id)) ?? (await this.#load())
    const found = end.entries?.get(entry.request_id)
    if (found !== undefined && isSameErasure(found, entry)) return
    if (found !== undefined) {
      throw new JournalError(`${this.path} has the erasure ${entry.request_id} with another selection.`)
    }
    const mac = this.#mac(end.lastMac, text)
    const line = Buffer.from(`${JSON.stringify({ entry, mac })}\n`)
    const ids = end.ids ?? new Set(end.entries?.keys())
    this.#left = null
    await this.#write(line, end.sizeBytes)
    ids.add(entry.request_id)
    const stamp = await stampOf(this.path)
    this.#left = { ids, lastMac: mac, sizeBytes: end.sizeBytes + line.length, stamp }
  }

  /**
   * Returns the position of the next line without reading those before it: checking every seal takes time in
   * proportion to all erasures, on the event loop. Null where the file isn't as this process left it, or may
   * contain the request already.
   */
  async #endAsWeLeftIt(requestId: string): Promise<End | null> {
    const left = this.#left
    if (left === null || left.ids.has(requestId) || (await stampOf(this.path)) !== left.stamp) return null
    return { lastMac: left.lastMac, sizeBytes: left.sizeBytes, ids: left.ids }
  }

  /** Writes after the complete lines and syncs, also the file's name in its folder. */
  async #write(line: Buffer, atByte: number): Promise<void> {
    const folder = dirname(this.path)
    const isNew = (await stampOf(this.path)) === null
    if (isNew) await mkdir(folder, { recursive: true, mode: 0o700 })
    const file = await open(this.path, isNew ? 'wx+' : 'r+', 0o600)
    try {
      await file.truncate(atByte)
      for (let written = 0; written < line.length; ) {
        const { bytesWritten } = await file.write(line, written, line.length - written, atByte + written)
        written += bytesWritten
      }
      await file.sync()
    } finally {
      await file.close()
    }
    if (isNew) await syncPath(folder)
  }

  async #load(): Promise<Known> {
    if ((await stampOf(this.path)) === null) return start
    // The file on the disk is what counts.
    await assertRegular(this.path)
    const bytes = await readFile(this.path)
    const sizeBytes = bytes.lastIndexOf(0x0a) + 1
    const entries = new Map<string, JournalEntry>()
    let lastMac = ''
    const lines = sizeBytes === 0 ? [] : bytes.toString('utf8', 0, sizeBytes - 1).split('\n')
    for (const [i, text] of lines.entries()) {
      const { entry, mac } = this.#readLine(text, i + 1)
      if (!isSame(mac, this.#mac(lastMac, textOf(entry)))) throw this.#bad(i + 1, 'does not match its seal')
      if (entries.has(entry.request_id)) throw this.#bad(i + 1, 'repeats an erasure')
      entries.set(entry.request_id, entry)
      lastMac = mac
    }
    return { entries, lastMac, sizeBytes }
  }

  #readLine(text: string, number: number): z.infer<typeof Line> {
    let value: unknown
    try {
      value = parseBoundedJson(text, fileBounds)
    } catch {
      throw this.#bad(number, 'is not JSON')
    }
    const line = Line.safeParse(value)
    if (!line.success) throw this.#bad(number, 'is not an entry of this version')
    return line.data
  }

  #bad(line: number, what: string): JournalError {
    return new JournalError(
      `Line ${line} of the erasure journal ${this.path} ${what}. It records what must stay erased after a restore, so the service doesn't start with it: restore the original file, or set LETHE_BACKUP_DIR to the folder that belongs to this data folder.`,
    )
  }

  /** Over the seal of the line before, so that a line removed from the middle is noticed. */
  #mac(previousMac: string, text: string): string {
    return createHmac('sha256', this.#seal).update(`${previousMac}\n${text}`, 'utf8').digest('hex')
  }
}

/** RFC 8785 text: the same entry has one text only. */
function textOf(entry: JournalEntry): string {
  const text = canonicalize(entry)
  if (text === undefined) throw new TypeError('A journal entry must be a JSON object.')
  return text
}

/** A field that one of the two lacks, because it is older, is not compared. */
function isSameErasure(a: JournalEntry, b: JournalEntry): boolean {
  const { founding_hash: foundingA, ...erasureA } = a
  const { founding_hash: foundingB, ...erasureB } = b
  const isSameFounding = foundingA === undefined || foundingB === undefined || foundingA === foundingB
  return isSameFounding && canonicalize(erasureA) === canonicalize(erasureB)
}

function isSame(mac: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(mac, 'hex'), Buffer.from(expected, 'hex'))
}

/** Identifies a file and its last change; null where it doesn't exist. */
async function stampOf(path: string): Promise<string | null> {
  try {
    const found = await stat(path, { bigint: true })
    return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

async function assertRegular(path: string): Promise<void> {
  if (!(await stat(path)).isFile())
    throw new JournalError(`${path} is not a file; the erasure journal has that name.`)
}
