// Reads a page of rows in the order of time at a cost in proportion to what is searched, whatever the rows
// are like. An ordinary page takes one statement. Where that costs too much, because rows are long or many,
// the window is searched slice by slice, a few rows at a time, until the page is full or has searched its
// share; then the cursor says where to continue. So no row makes a search impossible: a row that can't be
// read even alone is left out, as are the attributes of one that is too long with them, and the response says
// so.

import { formatInstant } from '../../contract/values/instant.ts'
import type { AppError } from '../core/app-error.ts'
import { encodeCursor, pageBytes } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { isOutOfTime, isTooExpensive, type ReadShare, type StatementLimits } from '../telemetry/engine.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { jsonBytesInTurns } from './long-items.ts'
import { type Lengths, type Slice, slicesOf } from './search-slices.ts'
import {
  behind,
  behindWindow,
  inTimeOrder,
  type OrderedRow,
  type Position,
  type Stretch,
  type TimeOrder,
  windowBehind,
} from './time-order.ts'
import { positionWithin, type TimeWindow } from './time-window.ts'

/** Limits of a read. */
export interface ReadLimits extends StatementLimits {
  /** JSON of the items of a page. A first item that is longer is returned alone. */
  readonly pageBytes?: number
  /** The most that a page searches in slices: bytes of the columns that the filter reads. */
  readonly searchBytes?: number
  readonly sliceBytes?: number
  /**
   * How long the request has been running, milliseconds; at half of `maxSeconds` a page that is searched in
   * slices ends.
   */
  readonly elapsedMs?: () => number
}

/**
 * About a second of one core. Further pages wait for their turn among all reads, so a long search delays
 * nobody.
 */
const defaultSearchBytes = 512 << 20

/**
 * A statement of 5 ms is large enough to be efficient, and small enough that a failed one wastes a fraction
 * of the page's share.
 */
const defaultSliceBytes = 64 << 20

/** Rows of a slice that are read at once: far fewer than the engine's default, at no noticeable cost. */
export const smallBlockRows = 1_024

/** A person waits no longer, and a few of these at once leave enough memory for the rest. */
export const interactiveLimits: ReadLimits = { maxSeconds: 20, maxMemoryBytes: 512 << 20 }

/**
 * The longest item that is returned with its attributes, JSON bytes. A record within all limits of telemetry
 * may have 90 MB of it, and each page with it would take a second of the event loop. What has no attributes
 * fits: the longest body of a log record takes 6 MiB.
 */
const itemBytesMax = 8 << 20

interface SearchRequest {
  readonly order: TimeOrder
  readonly lengths: Lengths
  readonly window: TimeWindow
  /** The texts of {@link positionTexts}; null for a first page. */
  readonly position: readonly string[] | null
  readonly limit: number
  /** Whether the conditions match hardly more rows than fit into a page. */
  readonly isFew?: boolean
}

export interface SearchPage<Item> {
  readonly items: Item[]
  readonly next_cursor: string | null
  /** The part of the range that this page and those before it have searched. */
  readonly searched: { readonly range_start: string; readonly range_end: string }
  readonly warnings: string[]
}

/** Throws `query_too_expensive` only where not even the lengths of what must be searched can be read. */
export function searchPage<Row extends OrderedRow, Item extends object>(
  reader: TenantReader,
  request: SearchRequest,
  items: Items<Row, Item>,
  limits: ReadLimits = interactiveLimits,
): Promise<SearchPage<Item>> {
  return reader.together(async () => {
    const [time_ns = '', row_hash = '', shown, way] = request.position ?? []
    const position = request.position === null ? null : { time_ns, row_hash, shown: Number(shown) }
    const whole = way === 'sliced' ? null : await readWhole(reader, request, { position, items }, limits)
    if (whole !== null) return whole
    return new SlicedSearch(reader, request, { position, items }, limits).run()
  })
}

/** How rows become items. A long conversion waits for turns of the pace. */
interface Items<Row, Item> {
  readonly of: (row: Row, pace: Pace) => Promise<Item>
  readonly withoutAttributes: (item: Item, pace: Pace) => Item | Promise<Item>
}

interface From<Row, Item> {
  readonly position: Position | null
  readonly items: Items<Row, Item>
}

/**
 * Reads with one statement; null where it costs more than an ordinary page does: half of the time and a
 * quarter of the memory.
 */
async function readWhole<Row extends OrderedRow, Item extends object>(
  reader: TenantReader,
  request: SearchRequest,
  from: From<Row, Item>,
  limits: ReadLimits,
): Promise<SearchPage<Item> | null> {
  const rows = await ifAffordable(
    reader.rows<Row>(
      (tables) => inTimeOrder(tables, request.order, { ...request, position: from.position }, request.isFew),
      {
        maxSeconds: Math.ceil(limits.maxSeconds / 2),
        maxMemoryBytes: Math.floor(limits.maxMemoryBytes / 4),
        maxResultBytes: resultBytes(limits),
      },
    ),
  )
  if (rows === null) return null
  const page = new Page<Row, Item>(reader, request, from, limits)
  const isCut = !(await page.take(rows.slice(0, request.limit)))
  return page.answer(isCut || rows.length > request.limit ? 'whole' : 'done')
}

/** JSON adds base64 and escapes to rows, so a statement may return only little more than a page. */
function resultBytes(limits: ReadLimits): number {
  return 2 * (limits.pageBytes ?? pageBytes) + shortRows
}

/** For short rows nobody counts bytes. */
const shortRows = 64 << 10

/** Returns null where a statement cost too much; with `isLast` throws its refusal instead. */
export async function ifAffordable<T>(read: Promise<T>, isLast = false): Promise<T | null> {
  try {
    return await read
  } catch (error) {
    if (!isLast && isTooExpensive(error)) return null
    throw error
  }
}

/** The items of a page so far, and the position that it has reached. */
class Page<Row extends OrderedRow, Item extends object> {
  readonly items: Item[] = []
  readonly warnings: string[] = []
  position: Position | null
  readonly #turn: ReadShare['turn']
  readonly #request: SearchRequest
  readonly #toItems: Items<Row, Item>
  readonly #bytes: number
  #bytesLeft: number

  constructor(
    reader: TenantReader,
    request: SearchRequest,
    { items, position }: From<Row, Item>,
    limits: ReadLimits,
  ) {
    this.#turn = reader.share.turn
    this.#request = request
    this.position = position
    this.#toItems = items
    this.#bytes = limits.pageBytes ?? pageBytes
    this.#bytesLeft = this.#bytes
  }

  get room(): number {
    return this.#request.limit - this.items.length
  }

  /** How many more items fit where they are as long as those before. */
  get expectedRoom(): number {
    const used = this.#bytes - this.#bytesLeft
    return this.items.length === 0
      ? this.room
      : Math.max(0, Math.floor((this.#bytesLeft * this.items.length) / used))
  }

  /** Adds rows that follow the last one as long as they fit; returns false where one did not. */
  async take(rows: readonly Row[]): Promise<boolean> {
    const pace = new Pace(this.#turn)
    for (const row of rows) {
      if (pace.isOver()) await pace.turn()
      const item = await this.#toItems.of(row, pace)
      const bytes = await jsonBytesInTurns(item, pace, itemBytesMax)
      this.#bytesLeft -= bytes
      if (this.room === 0 || (this.#bytesLeft < 0 && this.items.length > 0)) return false
      if (bytes > itemBytesMax) {
        this.items.push(await this.#toItems.withoutAttributes(item, pace))
        this.warnings.push(tooLong(row))
      } else this.items.push(item)
      this.position = behind(row, this.position)
    }
    return true
  }

  answer(next: 'whole' | 'sliced' | 'done'): SearchPage<Item> {
    const { order, window } = this.#request
    const isDone = next === 'done' || this.position === null
    const reached = isDone ? null : windowBehind(window, this.position, order.first)
    const texts = [
      this.position?.time_ns ?? '',
      this.position?.row_hash ?? '',
      String(this.position?.shown),
      next,
    ]
    return {
      items: this.items,
      next_cursor: reached === null ? null : encodeCursor(positionWithin(window, texts)),
      searched: searchedOf(window, reached, order.first),
      warnings: this.warnings,
    }
  }
}

/** Returns the window without the rest; the instant of the position may be partly in the rest. */
function searchedOf(window: TimeWindow, left: TimeWindow | null, first: TimeOrder['first']) {
  const [startNs, endNs] =
    left === null
      ? [window.startNs, window.endNs]
      : first === 'newest'
        ? [left.endNs, window.endNs]
        : [window.startNs, left.startNs]
  return { range_start: formatInstant(startNs), range_end: formatInstant(endNs) }
}

/** One page, from the first rows of one slice after another. */
class SlicedSearch<Row extends OrderedRow, Item extends object> {
  readonly #reader: TenantReader
  readonly #request: SearchRequest
  readonly #limits: ReadLimits
  readonly #page: Page<Row, Item>
  #bytesLeft: number
  /** Stays smaller after a slice needed that, because rows are often like those before them. */
  #blockRows = smallBlockRows

  constructor(reader: TenantReader, request: SearchRequest, from: From<Row, Item>, limits: ReadLimits) {
    this.#reader = reader
    this.#request = request
    this.#limits = limits
    this.#page = new Page(reader, request, from, limits)
    this.#bytesLeft = limits.searchBytes ?? defaultSearchBytes
  }

  async run(): Promise<SearchPage<Item>> {
    const { lengths, order, window } = this.#request
    const left = windowBehind(window, this.#page.position, order.first)
    if (left === null) return this.#page.answer('done')
    const sliceBytes = this.#limits.sliceBytes ?? defaultSliceBytes
    for await (const slice of slicesOf(
      this.#reader,
      order,
      { window: left, lengths, sliceBytes },
      this.#limits,
    )) {
      if (this.#isSpent) {
        this.#page.warnings.push(
          'This page has searched as much as one page may; continue with next_cursor, or narrow the range or the filter.',
        )
        return this.#page.answer('sliced')
      }
      if (!(await this.#searchSlice(slice))) return this.#page.answer('sliced')
      this.#page.position = behindWindow(slice.window, order.first)
    }
    return this.#page.answer('done')
  }

  /** Only after a slice has been searched, so that every page makes progress. */
  get #isSpent(): boolean {
    const { elapsedMs, maxSeconds, searchBytes = defaultSearchBytes } = this.#limits
    const isLate = this.#bytesLeft < searchBytes && (elapsedMs?.() ?? 0) > maxSeconds * 500
    return this.#bytesLeft <= 0 || isLate
  }

  /**
   * Adds rows of a slice, fewer at a time where they are long; returns false where the page is full before
   * the end of the slice.
   */
  async #searchSlice(slice: Slice): Promise<boolean> {
    const page = this.#page
    const { pageBytes: bytes = pageBytes } = this.#limits
    let rowsAtOnce = Math.max(1, Math.floor(bytes / Math.max(1, slice.widest)))
    for (;;) {
      if (page.room === 0 || rowsAtOnce === 0) return false
      const limit = Math.min(rowsAtOnce, page.room)
      const read = await this.#read({ window: slice.window, position: page.position, limit })
      this.#bytesLeft -= slice.bytes
      if (read instanceof Error) {
        if (isOutOfTime(read) || (limit === 1 && this.#blockRows === 1)) {
          page.warnings.push(leftOut(slice.window, isOutOfTime(read)))
          return true
        }
        if (limit === 1) this.#blockRows = Math.ceil(this.#blockRows / 32)
        rowsAtOnce = Math.ceil(limit / 8)
        continue
      }
      if (!(await page.take(read.slice(0, limit)))) return false
      if (read.length <= limit) return true
      if (this.#isSpent) return false
      rowsAtOnce = Math.min(2 * limit, page.expectedRoom)
    }
  }

  /**
   * Returns a refusal of the engine for cost. A single row is read whatever its size, within the memory of a
   * statement.
   */
  async #read(stretch: Stretch): Promise<Row[] | AppError> {
    const { maxMemoryBytes, maxSeconds } = this.#limits
    try {
      return await this.#reader.rows<Row>((from) => inTimeOrder(from, this.#request.order, stretch), {
        maxSeconds: Math.ceil(maxSeconds / 2),
        maxMemoryBytes,
        maxBlockRows: this.#blockRows,
        ...(stretch.limit > 1 && { maxResultBytes: resultBytes(this.#limits) }),
      })
    } catch (error) {
      if (isTooExpensive(error)) return error
      throw error
    }
  }
}

function tooLong({ time_ns }: OrderedRow): string {
  const time = formatInstant(BigInt(time_ns))
  return `Left out are the attributes of the record at ${time}: with them it has more than ${itemBytesMax >> 20} MiB of JSON.`
}

function leftOut({ startNs, endNs }: TimeWindow, isOutOfTime: boolean): string {
  const range = `from ${formatInstant(startNs)} to before ${formatInstant(endNs)}`
  return isOutOfTime
    ? `Left out is what lies ${range}: it could not be searched in time. Ask for that range again, or for a service in it.`
    : `Left out is what lies ${range}: its rows are too large to be read together. A service, a shorter range or a further filter may find some of them.`
}
