// Rows in the order of time when many have the same instant. The order is (time, hash of all columns), both
// falling or both rising, and a page ends at a time, a hash and a number of equal rows that were shown: only
// full duplicates have the same hash, they can't be distinguished, and so counting them loses and repeats
// none. Rows that arrive or are erased between two pages do not move others.
//
// Hashing reads every column, so the statement first finds, from the columns of the conditions only, the last
// instant that can be on the page, and hashes only up to there.

import { earliestNs, latestNs } from '../../contract/values/instant.ts'
import { type TableName, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { Bound, instant, raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import type { From } from '../telemetry/tenant-reader.ts'
import { rangeCondition } from '../telemetry/tenant-reader.ts'
import { isCount, type TimeWindow } from './time-window.ts'

/** The columns that define the position of a row in the order. */
export interface OrderedRow {
  /** Nanoseconds since 1970. */
  readonly time_ns: string
  readonly row_hash: string
}

/** Where reading continues: after `shown` rows of that time and hash. */
export interface Position extends OrderedRow {
  readonly shown: number
}

/** The rows to read, and their order. */
export interface TimeOrder {
  readonly table: TableName
  /** The columns to return for each row. */
  readonly columns: Sql
  /** Conditions on columns that are short in every row. */
  readonly conditions: readonly Sql[]
  /** Conditions on columns that may be long, which decide the cost of a search. */
  readonly costly: readonly Sql[]
  readonly first: 'newest' | 'oldest'
}

/** A part of the rows in their order. */
export interface Stretch {
  readonly window: TimeWindow
  readonly position: Position | null
  readonly limit: number
}

/**
 * Selects up to `limit + 1` rows with the requested columns and those of {@link OrderedRow}. `isFew` skips
 * the search for the last instant, where the conditions match hardly more rows than are requested.
 */
export function inTimeOrder(from: From, order: TimeOrder, stretch: Stretch, isFew = false): Sql {
  const spec = specOf(order.table)
  const { after, beyond, direction, last } = words[order.first]
  const time = raw(spec.timeColumn)
  const hash = raw(`cityHash64(${spec.columns.map(({ name }) => `\`${name}\``).join(', ')})`)
  const conditions = [
    rangeCondition(spec.timeColumn, boundsOf(stretch.window)),
    ...order.conditions,
    ...order.costly,
  ]
  const { limit, position } = stretch
  const reached = position === null ? null : instant(BigInt(position.time_ns))
  const behind = reached === null ? [] : [sql`${time} ${after} ${reached}`]
  // For no rows the engine returns 1970, as both the smallest and the largest.
  const found = sql`(SELECT ${last}(${time}) FROM (SELECT ${time} FROM ${from(order.table, ...conditions, ...behind)} ORDER BY ${time} ${direction} LIMIT ${uint(limit + 1)}))`
  const end = order.first === 'oldest' && reached !== null ? sql`greatest(${found}, ${reached})` : found
  const near = [
    ...conditions,
    ...(reached === null ? [] : [sql`${time} ${after}= ${reached}`]),
    ...(isFew ? [] : [sql`${time} ${beyond}= ${end}`]),
  ]
  const columns = sql`${order.columns}, toString(toUnixTimestamp64Nano(${time})) AS time_ns, toString(${hash} AS own_hash) AS row_hash`
  const rest = sql`${time} ${after} ${reached ?? raw('')} OR ${hash} ${after}= ${new Bound('UInt64', position?.row_hash ?? '0')}`
  // Each level less saves a millisecond. Hashes are compared in a level of their own, for rows that matched
  // everything else.
  const rows =
    reached === null
      ? from.select(order.table, { columns, conditions: near })
      : sql`SELECT ${columns} FROM ${from(order.table, ...near)} WHERE ${rest}`
  return sql`${rows} ORDER BY ${time} ${direction}, own_hash ${direction} LIMIT ${uint(position?.shown ?? 0)}, ${uint(limit + 1)}`
}

/** Without bounds where they exclude nothing, because each is compared with every part of the table. */
function boundsOf({ startNs, endNs }: TimeWindow) {
  return { startNs: startNs === earliestNs ? null : startNs, endNs: endNs === latestNs ? null : endNs }
}

const words = {
  newest: { after: raw('<'), beyond: raw('>'), direction: raw('DESC'), last: raw('min') },
  oldest: { after: raw('>'), beyond: raw('<'), direction: raw('ASC'), last: raw('max') },
} as const

export function specOf(table: TableName): TableSpec {
  const spec = tables.find(({ name }) => name === table)
  if (spec === undefined) throw new Error(`No table ${table}`)
  return spec
}

/** Returns the position after a row that follows another position. */
export function behind(row: OrderedRow, before: Position | null): Position {
  const isEqual = before?.time_ns === row.time_ns && before.row_hash === row.row_hash
  return { time_ns: row.time_ns, row_hash: row.row_hash, shown: isEqual ? before.shown + 1 : 1 }
}

const lastHash = ((1n << 64n) - 1n).toString()

/** Returns the position after every row of a window. */
export function behindWindow({ startNs, endNs }: TimeWindow, first: TimeOrder['first']): Position {
  return first === 'newest'
    ? {
        time_ns: (startNs > 0n ? startNs - 1n : 0n).toString(),
        row_hash: startNs > 0n ? lastHash : '0',
        shown: 0,
      }
    : { time_ns: endNs.toString(), row_hash: '0', shown: 0 }
}

/**
 * Returns the part of a window after a position, including the instant of the position; null where none
 * remains.
 */
export function windowBehind(
  window: TimeWindow,
  position: Position | null,
  first: TimeOrder['first'],
): TimeWindow | null {
  if (position === null) return window
  const reached = BigInt(position.time_ns)
  const rest =
    first === 'newest'
      ? { startNs: window.startNs, endNs: reached + 1n < window.endNs ? reached + 1n : window.endNs }
      : { startNs: reached > window.startNs ? reached : window.startNs, endNs: window.endNs }
  return rest.startNs < rest.endNs ? rest : null
}

/** A position in a cursor: its three texts, and whether the search continues in slices. */
export const positionTexts = {
  parts: 4,
  isPosition: ([time, hash, shown, way]: readonly string[]): boolean =>
    isCount(time) &&
    isHash(hash) &&
    isCount(shown) &&
    Number(shown) <= 1_000_000 &&
    (way === 'whole' || way === 'sliced'),
}

function isHash(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,20}$/.test(text) && BigInt(text) < 1n << 64n
}
