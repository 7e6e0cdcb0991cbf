// The telemetry tables of earlier builds, for tests of what becomes of them: the exporter's maps computed in
// the tables themselves, before that stored, and before that no identity of a series either. Derived from the
// tables of this build, so whoever changes a column of those sees by its hash (backup/manifest.ts) that it
// has to be taken back here.

import { mapColumnExpression, mapColumnType } from './attribute-pairs.ts'
import { columnText } from './column-text.ts'
import { createTableText } from './create-schema.ts'
import { type ColumnSpec, type TableName, type TableSpec, tables } from './tables.ts'

export interface OlderBuild {
  readonly name: string
  /** With the columns that are stored. */
  readonly tables: readonly TableSpec[]
  /** The text of one of its tables, as `createTableText` had it. */
  readonly textOf: (table: TableSpec) => string
}

const ofMap = (hash: string, map: string) =>
  `arraySum((k, v) -> ${hash}(concat(k, char(255), v)), mapKeys(${map}), mapValues(${map}))`
const lane = (hash: string) =>
  `toUInt32(${ofMap(hash, 'Attributes')} + ${ofMap(hash, 'ResourceAttributes')} * 2654435761 + ${hash}(ServiceName) * 2246822519 + ${hash}(ScopeName) * 3266489917 + ${hash}(MetricName) * 668265263)`
const identityBefore = `bitOr(bitShiftLeft(toUInt64(${lane('murmurHash3_32')}), 32), toUInt64(${lane('murmurHash2_32')}))`

/** The build whose tables were filled as the Collector's exporter does it. */
export const buildWithMaps: OlderBuild = {
  name: 'maps',
  tables: tables.map(({ granuleRows: _, ...table }) => ({
    ...table,
    columns: table.columns.map(columnBefore),
  })),
  textOf: textWithStatistics,
}

/** The latest first. */
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

/** The texts of all tables of a build, as backups know them by. */
export function olderText(build: OlderBuild): string {
  return build.tables.map(build.textOf).join('\n')
}

/** Expression of a column of an earlier build over the columns of the same table of this one. */
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
 * The text of a table that keeps statistics of all columns, which is how the engine begins
 * and earlier builds left it.
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
    // A function, because the text after it would be read for signs.
    return text.replace(own, () => `${own},\n  ${computed}`)
  }, textWithStatistics(table))
}
