// Columns of a table: as text for the engine, and as the engine reports them. All of them are stored.

import type { TelemetryEngine } from '../engine.ts'
import { sql } from '../sql.ts'
import type { ColumnSpec } from './tables.ts'

/** Returns the definition of a column in the text of its table. */
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

/** Returns the columns of a table of any name, in their order; none where the table doesn't exist. */
export function foundColumns(engine: TelemetryEngine, table: string): Promise<FoundColumn[]> {
  return engine.select<FoundColumn>(
    sql`select name, type, default_kind as kind from system.columns where database = currentDatabase() and table = ${table} order by position`,
  )
}

/** Returns what {@link foundColumns} reports of a column that is as declared. */
export function expectedColumn({ name, type, fallback }: ColumnSpec): FoundColumn {
  return { name, type, kind: fallback === undefined ? '' : 'DEFAULT' }
}
