// The columns of a table as the engine is told of them and as it tells of them: what is stored, and behind each text of
// attributes the exporter's column that is computed from it.

import { sql } from '../sql.ts'
import type { TelemetryEngine } from '../telemetry.ts'
import { type MapColumn, mapColumnExpression, mapColumnType } from './attribute-pairs.ts'
import type { ColumnSpec, TableSpec } from './tables.ts'

/** Definitions in the order of the table, as they stand in its text. */
export function columnTexts(table: TableSpec): string[] {
  return table.columns.flatMap((column) => [
    columnText(column),
    ...(column.map === undefined ? [] : [mapColumnText(column.map, column)]),
  ])
}

/** Of a stored column. */
export function columnText({ name, type, codec, fallback }: ColumnSpec): string {
  const more = [
    ...(fallback === undefined ? [] : [`DEFAULT ${fallback}`]),
    ...(codec === undefined ? [] : [`CODEC(${codec})`]),
  ]
  return [`\`${name}\``, type, ...more].join(' ')
}

export function mapColumnText(map: MapColumn, { name }: ColumnSpec): string {
  return `\`${map.name}\` ${mapColumnType(map)} ALIAS ${mapColumnExpression(map, `\`${name}\``)}`
}

export interface FoundColumn {
  readonly name: string
  readonly type: string
  readonly kind: '' | 'DEFAULT' | 'ALIAS' | 'MATERIALIZED' | 'EPHEMERAL'
}

/** Columns of a table by whatever name, in their order; none where it isn't there. */
export function foundColumns(engine: TelemetryEngine, table: string): Promise<FoundColumn[]> {
  return engine.select<FoundColumn>(
    sql`select name, type, default_kind as kind from system.columns where database = currentDatabase() and table = ${table} order by position`,
  )
}

/** What {@link foundColumns} answers of a table as it should be, behind placement and tenant. */
export function expectedColumns(table: TableSpec): FoundColumn[] {
  return table.columns.flatMap((column) => {
    const { map } = column
    const own = storedColumn(column)
    return map === undefined ? [own] : [own, { name: map.name, type: mapColumnType(map), kind: 'ALIAS' }]
  })
}

export function storedColumn({ name, type, fallback }: ColumnSpec): FoundColumn {
  return { name, type, kind: fallback === undefined ? '' : 'DEFAULT' }
}
