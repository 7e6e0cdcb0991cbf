// Pages of rows, newest first, when many rows share one instant. The order is (time, hash of all columns), both
// falling, and a page ends at a time, a hash and how many equal rows were shown: only full duplicates have the
// same hash, they can't be told apart, and so counting them loses and doubles none. Rows that arrive or are
// erased between two pages move nobody else.
//
// Hashing reads every column, so the statement first finds, from the time column alone, the oldest instant that
// can be on the page, and hashes only from there on.

import { encodeCursor } from '../http/cursor.ts'
import { type TableName, tables } from '../telemetry/schema/tables.ts'
import { allOf, Bound, instant, raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import type { From } from '../telemetry/tenant-reader.ts'
import { rangeCondition } from '../telemetry/tenant-reader.ts'
import { isCount, positionWithin, type TimeWindow } from './time-window.ts'

/** What every row of a page says about its place in the order. */
export interface Placed {
  /** Nanoseconds since 1970. */
  readonly time_ns: string
  readonly row_hash: string
}

/** Position: time, hash, and how many rows of just that time and hash were shown. */
export const newestFirstPosition = {
  parts: 3,
  isPosition: ([time, hash, shown]: readonly string[]): boolean =>
    isCount(time) && isHash(hash) && isCount(shown) && Number(shown) <= 1_000_000,
}

function isHash(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,20}$/.test(text) && BigInt(text) < 1n << 64n
}

export interface NewestFirst {
  readonly table: TableName
  readonly columns: Sql
  readonly conditions: readonly Sql[]
  readonly window: TimeWindow
  readonly position: readonly string[] | null
  readonly limit: number
}

/** Up to `limit + 1` rows with the columns asked for and those of {@link Placed}. */
export function newestFirst(from: From, page: NewestFirst): Sql {
  const spec = tables.find(({ name }) => name === page.table)
  if (spec === undefined) throw new Error(`No table ${page.table}`)
  const time = raw(spec.timeColumn)
  const hash = raw(`cityHash64(${spec.columns.map(({ name }) => `\`${name}\``).join(', ')})`)
  const conditions = [rangeCondition(spec.timeColumn, page.window), ...page.conditions]
  const upTo = page.position === null ? null : BigInt(page.position[0] ?? '')
  const older = upTo === null ? [] : [sql`${time} < ${instant(upTo)}`]
  const oldest = sql`(SELECT min(${time}) FROM (SELECT ${time} FROM ${from(page.table, ...conditions, ...older)} ORDER BY ${time} DESC LIMIT ${uint(page.limit + 1)}))`
  const candidates = from(
    page.table,
    ...conditions,
    ...(upTo === null ? [] : [sql`${time} <= ${instant(upTo)}`]),
    sql`${time} >= ${oldest}`,
  )
  const rest =
    upTo === null
      ? []
      : [sql`${time} < ${instant(upTo)} OR ${hash} <= ${new Bound('UInt64', page.position?.[1])}`]
  return sql`SELECT ${page.columns}, toString(toUnixTimestamp64Nano(${time})) AS time_ns, toString(${hash} AS own_hash) AS row_hash
FROM ${candidates} WHERE ${allOf(rest)} ORDER BY ${time} DESC, own_hash DESC LIMIT ${uint(Number(page.position?.[2] ?? 0))}, ${uint(page.limit + 1)}`
}

/** Cuts the page and says where it ended. */
export function newestFirstPage<Row extends Placed, Item>(
  page: Pick<NewestFirst, 'window' | 'position' | 'limit'>,
  rows: readonly Row[],
  toItem: (row: Row) => Item,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, page.limit)
  const last = shown.at(-1)
  if (last === undefined || rows.length <= page.limit) return { items: shown.map(toItem), next_cursor: null }
  const isLast = (row: Placed) => row.time_ns === last.time_ns && row.row_hash === last.row_hash
  const [time, hash, before] = page.position ?? []
  const earlier = time === last.time_ns && hash === last.row_hash ? Number(before) : 0
  const equal = shown.filter(isLast).length + earlier
  const position = [last.time_ns, last.row_hash, String(equal)]
  return { items: shown.map(toItem), next_cursor: encodeCursor(positionWithin(page.window, position)) }
}
