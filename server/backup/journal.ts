// The erasure journal: a file beside the backups that names every erasure that began. A control plane from a
// backup doesn't know what was erased after it; the journal does, and is never part of a restore. Each line
// is sealed with the service's journal seal, a secret, over the seal of the line before it. A line that can't
// be verified stops the start: somebody changed what must be erased.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { mkdir, open, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import canonicalize from 'canonicalize'
import { z } from 'zod'
import { hashOf } from '../audit/chain.ts'
import { fileBounds, parseBoundedJson } from '../core/input/json-bounds.ts'
import { Pace } from '../core/turns/pace.ts'
import type { DiskCalls } from '../disk/disk-calls.ts'
import { signals } from '../telemetry/schema/tables.ts'
import { isMissing, syncPath } from './files.ts'

/** Name of the journal beside the backups. */
const journalFile = 'erasures.ndjson'

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
  /** Who approved it as the second person, and when. Absent where nobody did, and in older lines. */
  approved_by: z.string().optional(),
  approved_at_ms: z.int().optional(),
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

/** What this process knows of the file: it has verified or written every line. */
interface Left {
  /** Hash of each entry, by the id of its request. */
  readonly hashes: Map<string, string>
  readonly lastMac: string
  /** Length of the complete lines; anything after it is a line that was not completely written. */
  readonly sizeBytes: number
  /** State of the file, see {@link stampOf}. */
  readonly stamp: string | null
  /**
   * Whether every line is known to be on the disk. Lines that were only read may be in the memory of the
   * system alone: their sync may have failed, in this process or in one before.
   */
  readonly isOnDisk: boolean
}

interface ReadJournal {
  readonly entries: ReadonlyMap<string, JournalEntry>
  readonly left: Left
  /** The complete lines. */
  readonly bytes: Buffer
}

/** One process appends at a time: the one that has the lock of the telemetry engine. */
export class ErasureJournal {
  readonly path: string
  readonly #seal: string
  /** One call at a time: two that read the end of the file and write there would lose a line. */
  readonly #calls: DiskCalls
  #left: Left | null = null
  /** Whether the file's name is known to be on the disk. */
  #isNameOnDisk = false

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
   * Returns after the entry is on the disk, so that the erasure may act. Writes nothing where the entry is
   * known to be there already. Throws JournalError where the same request exists with another selection, and
   * any error of the file system, also where it does not answer: then the erasure must not act.
   */
  async append(entry: JournalEntry): Promise<void> {
    const text = textOf(JournalEntry.parse(entry))
    await this.#calls.run(() => this.#append(entry, text))
  }

  async #append(entry: JournalEntry, text: string): Promise<void> {
    const { request_id } = entry
    const hash = hashOf(text)
    let left = await this.#asWeLeftIt()
    if (left?.isOnDisk === true && left.hashes.get(request_id) === hash) return
    // Another text of the same request is either the same erasure in a line of an earlier version, or wrong.
    if (left === null || left.hashes.has(request_id)) {
      const read = await this.#load()
      left = read.left
      const found = read.entries.get(request_id)
      if (found !== undefined && !isSameErasure(found, entry)) {
        throw new JournalError(`${this.path} has the erasure ${request_id} with another selection.`)
      }
      if (found !== undefined) {
        left.hashes.set(request_id, hash)
        return this.#writeAgain(read.bytes, left)
      }
    }
    const mac = this.#mac(left.lastMac, text)
    const line = Buffer.from(`${JSON.stringify({ entry, mac })}\n`)
    this.#left = null
    await this.#write(line, left.sizeBytes)
    const { hashes, isOnDisk, sizeBytes } = left
    hashes.set(request_id, hash)
    const stamp = await stampOf(this.path)
    this.#left = { hashes, lastMac: mac, sizeBytes: sizeBytes + line.length, stamp, isOnDisk }
  }

  /**
   * Writes lines that were read over themselves and syncs them. A sync alone is not enough: after one that
   * failed, the system may count what it could not write as written, and the next one then succeeds. The same
   * bytes in place, so that a crash in between changes nothing.
   */
  async #writeAgain(lines: Buffer, left: Left): Promise<void> {
    this.#left = null
    await this.#write(lines, 0, 'same bytes')
    this.#left = { ...left, stamp: await stampOf(this.path), isOnDisk: true }
  }

  /**
   * Returns what is known of the file without reading it: checking every seal takes time in proportion to all
   * erasures, on the event loop, and each attempt asks. Null where the file isn't as this process left it.
   */
  async #asWeLeftIt(): Promise<Left | null> {
    return this.#left !== null && (await stampOf(this.path)) === this.#left.stamp ? this.#left : null
  }

  /**
   * Writes and syncs, also the file's name in its folder. What is behind the complete lines is cut off before
   * others are written there.
   */
  async #write(bytes: Buffer, atByte: number, what: 'new line' | 'same bytes' = 'new line'): Promise<void> {
    const folder = dirname(this.path)
    const isNew = (await stampOf(this.path)) === null
    if (isNew) this.#isNameOnDisk = false
    if (isNew) await mkdir(folder, { recursive: true, mode: 0o700 })
    const file = await open(this.path, isNew ? 'wx+' : 'r+', 0o600)
    try {
      if (what === 'new line') await file.truncate(atByte)
      for (let written = 0; written < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written, atByte + written)
        written += bytesWritten
      }
      await file.sync()
    } finally {
      await file.close()
    }
    if (this.#isNameOnDisk) return
    await syncPath(folder)
    this.#isNameOnDisk = true
  }

  /** Reads and verifies every line of the file on the disk, which is what counts. */
  async #load(): Promise<ReadJournal> {
    this.#left = null
    // Before the file is read, so that a change meanwhile is noticed the next time.
    const stamp = await stampOf(this.path)
    if (stamp !== null) await assertRegular(this.path)
    const bytes = stamp === null ? Buffer.alloc(0) : await readFile(this.path)
    const sizeBytes = bytes.lastIndexOf(0x0a) + 1
    const entries = new Map<string, JournalEntry>()
    const hashes = new Map<string, string>()
    let lastMac = ''
    const pace = new Pace()
    // Line by line: the text of all of them may be longer than a text can be.
    for (let [at, number] = [0, 1]; at < sizeBytes; number++) {
      const end = bytes.indexOf(0x0a, at)
      const { entry, mac } = this.#readLine(bytes.toString('utf8', at, end), number)
      const text = textOf(entry)
      if (!isSame(mac, this.#mac(lastMac, text))) throw this.#bad(number, 'does not match its seal')
      if (entries.has(entry.request_id)) throw this.#bad(number, 'repeats an erasure')
      entries.set(entry.request_id, entry)
      hashes.set(entry.request_id, hashOf(text))
      lastMac = mac
      at = end + 1
      if (pace.isOver()) await pace.turn()
    }
    const left = { hashes, lastMac, sizeBytes, stamp, isOnDisk: sizeBytes === 0 }
    this.#left = left
    return { entries, left, bytes: bytes.subarray(0, sizeBytes) }
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

/** Optional fields: a line of an earlier version has none of them. */
const laterFields: readonly string[] = [
  'founding_hash',
  'approved_by',
  'approved_at_ms',
] satisfies (keyof JournalEntry)[]

/** A later field that one of the two lacks, because it is older, is not compared. */
function isSameErasure(a: JournalEntry, b: JournalEntry): boolean {
  return canonicalize(comparedWith(b, a)) === canonicalize(comparedWith(a, b))
}

/** Returns the entry without the later fields that the other one lacks. */
function comparedWith(other: JournalEntry, entry: JournalEntry): Partial<JournalEntry> {
  const isCompared = (field: string) => field in other || !laterFields.includes(field)
  return Object.fromEntries(Object.entries(entry).filter(([field]) => isCompared(field)))
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
