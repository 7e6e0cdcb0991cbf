// The erasure journal: a file beside the backups that names every erasure that began. A control plane that is
// restored from a backup doesn't know what was erased after it; the journal does, and is never part of a
// restore. Each line is sealed with the service's journal seal, a secret, over the seal of the line before
// it. What can't be read back exactly stops the start: somebody changed what must be erased.

import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import canonicalize from 'canonicalize'
import { z } from 'zod'
import { fileBounds, parseBoundedJson } from '../core/json-bounds.ts'
import { signals } from '../telemetry/schema/tables.ts'

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
   * Hash of the organisation's first audit entry: tells it from another that bears its
   * name. Older lines have none.
   */
  founding_hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
})

/** An erasure as it was asked for: enough to carry it out again without the control plane that took it. */
export type JournalEntry = z.infer<typeof JournalEntry>

const Line = z.strictObject({ entry: JournalEntry, mac: z.string().regex(/^[0-9a-f]{64}$/) })

/** The journal can't be trusted. Nothing may be served before a person has looked. */
export class JournalError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JournalError'
  }
}

/** What was read of the file: whole lines only. */
interface Known {
  readonly entries: ReadonlyMap<string, JournalEntry>
  readonly lastMac: string
  /** Length of the whole lines; what follows is a line whose writing was cut short. */
  readonly sizeBytes: number
}

/** Where a line may be added: after all that was read, or after what this process wrote last. */
interface End extends Pick<Known, 'lastMac' | 'sizeBytes'> {
  readonly entries?: ReadonlyMap<string, JournalEntry>
  readonly ids?: Set<string>
}

/** What this process wrote last, and the file as it was then. */
interface Left {
  readonly ids: Set<string>
  readonly lastMac: string
  readonly sizeBytes: number
  readonly stamp: string | null
}

const start: Known = { entries: new Map(), lastMac: '', sizeBytes: 0 }

/** One process appends at a time: the one that holds the telemetry engine. */
export class ErasureJournal {
  readonly path: string
  readonly #seal: string
  #left: Left | null = null

  /** `seal` is the key of the seals; a backup carries what it comes from. */
  constructor(backupDir: string, seal: string) {
    this.path = join(backupDir, journalFile)
    this.#seal = seal
  }

  /**
   * Every erasure that began, oldest first; none where there is no file. Throws JournalError
   * naming the first bad line.
   */
  read(): JournalEntry[] {
    return [...this.#load().entries.values()]
  }

  /** Makes an empty journal where there is none, so that a missing one beside a backup means a lost one. */
  ensure(): void {
    if (!existsSync(this.path)) this.#write(Buffer.alloc(0), 0)
  }

  /**
   * Returns once the entry is on disk, so that the erasure may act. Does nothing where it is there already;
   * throws JournalError where the same request is there with another selection, and whatever the file system
   * throws: then the erasure must not act.
   */
  append(entry: JournalEntry): void {
    const text = textOf(JournalEntry.parse(entry))
    const end: End = this.#endAsWeLeftIt(entry.request_id) ?? this.#load()
    const found = end.entries?.get(entry.request_id)
    if (found !== undefined && isSameErasure(found, entry)) return
    if (found !== undefined) {
      throw new JournalError(`${this.path} has the erasure ${entry.request_id} with another selection.`)
    }
    const mac = this.#mac(end.lastMac, text)
    const line = Buffer.from(`${JSON.stringify({ entry, mac })}\n`)
    const ids = end.ids ?? new Set(end.entries?.keys())
    this.#left = null
    this.#write(line, end.sizeBytes)
    ids.add(entry.request_id)
    this.#left = { ids, lastMac: mac, sizeBytes: end.sizeBytes + line.length, stamp: stampOf(this.path) }
  }

  /**
   * Where the next line goes, without reading those before it: to check every seal takes as long as there are
   * erasures, in the thread that everybody shares. Null where the file isn't as this process left it, or may
   * hold the request already.
   */
  #endAsWeLeftIt(requestId: string): End | null {
    const left = this.#left
    if (left === null || left.ids.has(requestId) || stampOf(this.path) !== left.stamp) return null
    return { lastMac: left.lastMac, sizeBytes: left.sizeBytes, ids: left.ids }
  }

  /** Writes at the end of the whole lines and waits for the disk, also for the file's name in its folder. */
  #write(line: Buffer, atByte: number): void {
    const folder = dirname(this.path)
    const isNew = !existsSync(this.path)
    if (isNew) mkdirSync(folder, { recursive: true, mode: 0o700 })
    const file = openSync(this.path, isNew ? 'wx+' : 'r+', 0o600)
    try {
      ftruncateSync(file, atByte)
      for (let written = 0; written < line.length; ) {
        written += writeSync(file, line, written, line.length - written, atByte + written)
      }
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (isNew) syncFolder(folder)
  }

  #load(): Known {
    if (!existsSync(this.path)) return start
    // What matters is what the disk has.
    assertRegular(this.path)
    const bytes = readFileSync(this.path)
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
      `Line ${line} of the erasure journal ${this.path} ${what}. It says what must stay erased after a restore, so the service doesn't start on it: bring the file back as it was, or set LETHE_BACKUP_DIR to the folder that belongs to this data folder.`,
    )
  }

  /** Over the seal before it, so that a line taken out of the middle is missed. */
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

/** What one of the two doesn't say of the organisation, because it is older, doesn't tell them apart. */
function isSameErasure(a: JournalEntry, b: JournalEntry): boolean {
  const { founding_hash: foundingA, ...erasureA } = a
  const { founding_hash: foundingB, ...erasureB } = b
  const isSameFounding = foundingA === undefined || foundingB === undefined || foundingA === foundingB
  return isSameFounding && canonicalize(erasureA) === canonicalize(erasureB)
}

function isSame(mac: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(mac, 'hex'), Buffer.from(expected, 'hex'))
}

/** Tells a file from every other, and from itself before it was last written; null where there is none. */
function stampOf(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined
    ? null
    : [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ')
}

function assertRegular(path: string): void {
  if (!statSync(path).isFile())
    throw new JournalError(`${path} is not a file; the erasure journal has that name.`)
}

/** A new name in a folder is on disk only when the folder is. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
