// The half-open time range of one reading request: the requested one or, without one, the last hour. The
// cursor of a first page contains its range, because the hour before now would be another one for every page.

import { earliestNs, instantOf, type Moment, type Ns, nsPerMinute } from '../../contract/values/instant.ts'
import { emptyRange } from '../core/input/asked-range.ts'
import { decodeCursor, invalidCursor } from '../core/input/cursor.ts'

export interface TimeWindow {
  readonly startNs: Ns
  readonly endNs: Ns
}

const defaultSpanNs = 60n * nsPerMinute

/** The bounds of a query as they were requested. */
interface AskedRange {
  readonly range_start?: Moment | undefined
  readonly range_end?: Moment | undefined
}

/** Throws InvalidInput at `query.range_end` where the range is empty. */
export function timeWindow(query: AskedRange, nowNs: Ns): TimeWindow {
  const endNs = instantOf(query.range_end ?? nowNs, nowNs)
  const startNs = instantOf(
    query.range_start ?? (endNs - defaultSpanNs > earliestNs ? endNs - defaultSpanNs : earliestNs),
    nowNs,
  )
  if (startNs < endNs) return { startNs, endNs }
  throw emptyRange(endNs)
}

/** A page's range and, from the second page on, the end of the previous page. */
export interface PageStart {
  readonly window: TimeWindow
  readonly position: readonly string[] | null
}

/**
 * Parses a cursor of {@link positionWithin} with `parts` texts of position; `isPosition` says whether they
 * are valid. Instants in the query have priority over those of the cursor. A time relative to now would
 * differ for every page, so for it the cursor's is used. Throws InvalidInput.
 */
export function pageStart(
  query: AskedRange & { readonly cursor?: string | undefined },
  nowNs: Ns,
  position: { readonly parts: number; readonly isPosition: (texts: readonly string[]) => boolean },
): PageStart {
  const texts = decodeCursor(query.cursor, position.parts + 2)
  if (texts === null) return { window: timeWindow(query, nowNs), position: null }
  const own = texts.slice(0, position.parts)
  const [start, end] = texts.slice(position.parts)
  if (!isCount(start) || !isCount(end) || !position.isPosition(own)) {
    throw invalidCursor(query.cursor)
  }
  const pinned = {
    range_start: pinnedTo(query.range_start, start),
    range_end: pinnedTo(query.range_end, end),
  }
  return { window: timeWindow(pinned, nowNs), position: own }
}

function pinnedTo(asked: Moment | undefined, pinned: string): Ns {
  return typeof asked === 'bigint' ? asked : BigInt(pinned)
}

/** Returns the texts of a cursor: the position, then its range. */
export function positionWithin(window: TimeWindow, position: readonly string[]): string[] {
  return [...position, window.startNs.toString(), window.endNs.toString()]
}

/** Whether a text of a cursor is an unsigned integer of 63 bits or fewer, or a hash of 64. */
export function isCount(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,19}$/.test(text) && BigInt(text) < 1n << 63n
}
