// Names of attributes, and values of one, to complete what a person types. They are read from the newest rows
// of the range only, because nobody waits seconds for a completion; nothing is stored, so an erased name is
// gone with its rows.

import type { z } from 'zod'
import type { AttributeNames, AttributeQuery } from '../../contract/telemetry/queries.ts'
import { attributesColumn } from '../series/event-series.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import { pairKey, pairsIn, pairValue } from '../telemetry/schema/attribute-pairs.ts'
import { type TableSpec, tablesOf } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import { type From, rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { ifAffordable } from './search.ts'
import { type TimeWindow, timeWindow } from './time-window.ts'

type Query = z.output<typeof AttributeQuery>

/** Rows of a table that are read; fewer where rows are so long that this many would cost too much. */
const [rowsRead, fewRows] = [5_000, 100]

/** In characters. Longer texts are not offered. */
const textMax = 200

interface NameRow {
  readonly text: string
  readonly total: string
  readonly read: string
}

/** Throws InvalidInput for an empty range. */
export async function listAttributes(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<z.output<typeof AttributeNames>> {
  const window = timeWindow(query, nowNs)
  const read = (rows: number) =>
    reader.rows<NameRow>((from) => statementOf(from, query, window, rows), limits)
  const found = (await ifAffordable(read(rowsRead))) ?? (await read(fewRows))
  return {
    key: query.key ?? null,
    items: found
      .filter(({ total }) => total !== '0')
      .map(({ text, total }) => ({ text, rows: Number(total) })),
    rows_read: Math.max(0, ...found.map(({ read: rows }) => Number(rows))),
  }
}

/** One row has an empty text and only the number of rows that were read. */
function statementOf(from: From, query: Query, window: TimeWindow, rows: number): Sql {
  const { key, limit, prefix = '', signal } = query
  const newest = join(
    tablesOf([signal]).map((table) => newestOf(from, table, query, window, rows)),
    ' UNION ALL ',
  )
  const pairs = raw(
    `arrayConcat(${pairsIn(attributesColumn({ signal }))}, ${pairsIn('ResourceAttributesPairs')})`,
  )
  const texts =
    key === undefined
      ? sql`arrayMap(pair -> ${raw(pairKey)}, ${pairs})`
      : sql`arrayMap(pair -> ${raw(pairValue)}, arrayFilter(pair -> ${raw(pairKey)} = ${key}, ${pairs}))`
  return sql`SELECT '' AS text, '0' AS total, toString(count()) AS read FROM (${newest})
UNION ALL SELECT * FROM (SELECT text, toString(count()) AS total, '0' AS read
FROM (SELECT arrayJoin(arrayDistinct(${texts})) AS text FROM (${newest}))
WHERE text != '' AND lengthUTF8(text) <= ${uint(textMax)} AND startsWith(text, ${prefix})
GROUP BY text ORDER BY count() DESC, text LIMIT ${uint(limit)})`
}

function newestOf(from: From, table: TableSpec, query: Query, window: TimeWindow, rows: number): Sql {
  const { service } = query
  const own = attributesColumn(table)
  const conditions = [
    rangeCondition(table.timeColumn, window),
    ...(service === undefined ? [] : [sql`ServiceName = ${service}`]),
  ]
  return sql`SELECT * FROM (SELECT toString(${raw(own)}) AS ${raw(own)}, toString(ResourceAttributesPairs) AS ResourceAttributesPairs
FROM ${from(table.name, ...conditions)} ORDER BY ${raw(table.timeColumn)} DESC LIMIT ${uint(rows)})`
}
