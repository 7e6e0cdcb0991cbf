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

/** Columns in their order, by table. */
export type FoundColumns = ReadonlyMap<string, readonly FoundColumn[]>

/** Returns the columns of every table that exists. */
export async function foundColumns(engine: TelemetryEngine): Promise<FoundColumns> {
  const found = await engine.select<FoundColumn & { of: string }>(
    sql`select table as of, name, type, default_kind as kind from system.columns where database = currentDatabase() order by table, position`,
  )
  const ofTable = Map.groupBy(found, ({ of }) => of)
  return new Map(
    [...ofTable].map(([of, columns]) => [of, columns.map(({ kind, name, type }) => ({ name, type, kind }))]),
  )
}

/** Returns what {@link foundColumns} reports of a column that is as declared. */
export function expectedColumn({ name, type, fallback }: ColumnSpec): FoundColumn {
  return { name, type, kind: fallback === undefined ? '' : 'DEFAULT' }
}
