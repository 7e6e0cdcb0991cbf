// The telemetry tables of earlier builds, for tests of what becomes of them: attributes stored as the exporter's maps,
// and before that no identity of a series either. Derived from the tables of this build, so whoever changes a column
// of those sees by its hash (backup/manifest.ts) that it has to be taken back here.

import { mapColumnType } from './attribute-pairs.ts'
import { createTableText } from './create-schema.ts'
import { type ColumnSpec, type TableSpec, tables } from './tables.ts'

export interface OlderBuild {
  readonly name: string
  readonly tables: readonly TableSpec[]
}

const ofMap = (hash: string, map: string) =>
  `arraySum((k, v) -> ${hash}(concat(k, char(255), v)), mapKeys(${map}), mapValues(${map}))`
const lane = (hash: string) =>
  `toUInt32(${ofMap(hash, 'Attributes')} + ${ofMap(hash, 'ResourceAttributes')} * 2654435761 + ${hash}(ServiceName) * 2246822519 + ${hash}(ScopeName) * 3266489917 + ${hash}(MetricName) * 668265263)`
const identityBefore = `bitOr(bitShiftLeft(toUInt64(${lane('murmurHash3_32')}), 32), toUInt64(${lane('murmurHash2_32')}))`

const withMaps: readonly TableSpec[] = tables.map(({ granuleRows: _, ...table }) => ({
  ...table,
  columns: table.columns.map(columnBefore),
}))

/** The latest first. */
export const olderBuilds: readonly OlderBuild[] = [
  { name: 'maps', tables: withMaps },
  {
    name: 'maps and no identity of a series',
    tables: withMaps.map((table) => ({
      ...table,
      columns: table.columns.filter(({ name }) => name !== 'SeriesId'),
    })),
  },
]

/** The texts of all tables of a build, as backups know them by. */
export function olderText(build: OlderBuild): string {
  return build.tables.map(createTableText).join('\n')
}

function columnBefore(column: ColumnSpec): ColumnSpec {
  const { map } = column
  if (map !== undefined)
    return { name: map.name, type: mapColumnType(map), codec: map.isList ? 'ZSTD(1)' : 'ZSTD(3)' }
  return column.name === 'SeriesId' ? { ...column, fallback: identityBefore } : column
}
