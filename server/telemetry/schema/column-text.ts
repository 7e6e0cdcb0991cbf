// The columns of a table as the engine is told of them and as it tells of them. All of them are stored.

import type { TelemetryEngine } from '../engine.ts'
import { sql } from '../sql.ts'
import type { ColumnSpec } from './tables.ts'

/** Of a column, as it stands in the text of its table. */
export function columnText({ name, type, codec, fallback }: ColumnSpec): string {
  const more = [
    ...(fallback === undefined ? [] : [`DEFAULT ${fallback}`]),
    ...(codec === undefined ? [] : [`CODEC(${codec})`]),
  ]
  return [`\`${name}\``, type, ...more].join(' ')
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

/** What {@link foundColumns} answers of a column as it should be. */
export function expectedColumn({ name, type, fallback }: ColumnSpec): FoundColumn {
  return { name, type, kind: fallback === undefined ? '' : 'DEFAULT' }
}
