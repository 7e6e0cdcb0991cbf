// The telemetry tables of earlier builds, for tests that bring them up to date: with the exporter's maps
// computed in the tables; before that with stored maps; and before that also without the identity of a
// series. They are derived from the tables of this build, so a change of a column there changes their hash
// (backup/manifest.ts) and must be undone here.

import { mapColumnExpression, mapColumnType } from './attribute-pairs.ts'
import { columnText } from './column-text.ts'
import { createTableText } from './create-schema.ts'
import { type ColumnSpec, type TableName, type TableSpec, tables } from './tables.ts'

export interface OlderBuild {
  readonly name: string
  /** With the columns that are stored. */
  readonly tables: readonly TableSpec[]
  /** Returns the text of one of its tables, as its `createTableText` wrote it. */
  readonly textOf: (table: TableSpec) => string
}

const ofMap = (hash: string, map: string) =>
  `arraySum((k, v) -> ${hash}(concat(k, char(255), v)), mapKeys(${map}), mapValues(${map}))`
const lane = (hash: string) =>
  `toUInt32(${ofMap(hash, 'Attributes')} + ${ofMap(hash, 'ResourceAttributes')} * 2654435761 + ${hash}(ServiceName) * 2246822519 + ${hash}(ScopeName) * 3266489917 + ${hash}(MetricName) * 668265263)`
const identityBefore = `bitOr(bitShiftLeft(toUInt64(${lane('murmurHash3_32')}), 32), toUInt64(${lane('murmurHash2_32')}))`

/** The build that filled its tables as the Collector's exporter does. */
export const buildWithMaps: OlderBuild = {
  name: 'maps',
  tables: tables.map(({ granuleRows: _, ...table }) => ({
    ...table,
    columns: table.columns.map(columnBefore),
  })),
  textOf: textWithStatistics,
}

/** The latest build first. */
export const olderBuilds: readonly OlderBuild[] = [
  { name: 'maps computed in its tables', tables, textOf: textWithComputedMaps },
  buildWithMaps,
  {
    name: 'maps and no identity of a series',
    tables: buildWithMaps.tables.map((table) => ({
      ...table,
      columns: table.columns.filter(({ name }) => name !== 'SeriesId'),
    })),
    textOf: textWithStatistics,
  },
]

/** Returns the texts of all tables of a build, by which backups identify them. */
export function olderText(build: OlderBuild): string {
  return build.tables.map(build.textOf).join('\n')
}

/** Expression of a column of an earlier build from the columns of the same table of this build. */
export function olderValue(table: TableName, { name }: ColumnSpec): string {
  const now = tables.find((one) => one.name === table)?.columns ?? []
  const pairs = now.find(({ map }) => map?.name === name)
  return pairs?.map === undefined ? `\`${name}\`` : mapColumnExpression(pairs.map, `\`${pairs.name}\``)
}

function columnBefore(column: ColumnSpec): ColumnSpec {
  const { map } = column
  if (map !== undefined)
    return { name: map.name, type: mapColumnType(map), codec: map.isList ? 'ZSTD(1)' : 'ZSTD(3)' }
  return column.name === 'SeriesId' ? { ...column, fallback: identityBefore } : column
}

/**
 * Returns the text of a table that keeps statistics of all columns, which is the engine's default and that of
 * earlier builds.
 */
export function textWithStatistics(table: TableSpec): string {
  return createTableText(table).replace(`, auto_statistics_types = ''`, '')
}

function textWithComputedMaps(table: TableSpec): string {
  return table.columns.reduce((text, column) => {
    const { map, name } = column
    if (map === undefined) return text
    const computed = `\`${map.name}\` ${mapColumnType(map)} ALIAS ${mapColumnExpression(map, `\`${name}\``)}`
    const own = columnText(column)
    // A function, because `replace` would interpret `$` in a text.
    return text.replace(own, () => `${own},\n  ${computed}`)
  }, textWithStatistics(table))
}
