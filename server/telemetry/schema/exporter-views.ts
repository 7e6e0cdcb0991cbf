// The tables of the OpenTelemetry Collector's ClickHouse exporter, as views in their own database: its names,
// columns, types and order, with attributes as maps. They store nothing and return the rows of the tables. No
// statement of the service names them, so only users of the views pay for planning and computing maps
// (docs/decisions/0018).

import { createHash } from 'node:crypto'
import type { TelemetryEngine } from '../engine.ts'
import { raw, sql } from '../sql.ts'
import { mapColumnExpression, mapColumnType } from './attribute-pairs.ts'
import { type ColumnSpec, placeColumns, type TableSpec } from './tables.ts'

/**
 * The database of the views. A tool that knows the exporter's tables finds them when it uses this database.
 */
export const exporterDatabase = 'otel'

/**
 * The database of the tables, which is that of the engine's sessions. Views name it, because they are read
 * from any database.
 */
const tableDatabase = 'default'

/**
 * Creates views that are missing and recreates those that another build defined differently. A view that is
 * up to date costs one look at its comment. A view that was dropped to be recreated when the process ended is
 * missing at the next start, and created then.
 */
export async function createViews(engine: TelemetryEngine, tables: readonly TableSpec[]): Promise<void> {
  const found = await engine.select<{ name: string; comment: string }>(
    sql`select name, comment from system.tables where database = ${exporterDatabase}`,
  )
  const comments = new Map(found.map(({ name, comment }) => [name, comment]))
  const lacking = tables.filter((table) => comments.get(table.name) !== viewComment(table))
  if (lacking.length === 0) return
  await engine.command(raw(`CREATE DATABASE IF NOT EXISTS ${exporterDatabase}`))
  for (const table of lacking) {
    // Not replaced: if the name belongs to something else, such as a table with rows, this fails and leaves
    // it.
    await engine.command(raw(`DROP VIEW IF EXISTS ${exporterDatabase}.${table.name} SYNC`))
    await engine.command(raw(`${viewText(table)} COMMENT '${viewComment(table)}'`))
  }
}

/**
 * Placement and tenant come first, the identity of a metric's series last; between them are the exporter's
 * columns.
 */
function viewText(table: TableSpec): string {
  const columns = [...placeColumns, ...table.columns]
  const definitions = columns.map((column) => `  \`${viewName(column)}\` ${viewType(column)}`)
  const expressions = columns.map((column) => `  ${viewExpression(column)}`)
  return `CREATE VIEW ${exporterDatabase}.${table.name} (
${definitions.join(',\n')}
) AS SELECT
${expressions.join(',\n')}
FROM ${tableDatabase}.${table.name}`
}

/** Contains no character that SQL would have to escape. */
function viewComment(table: TableSpec): string {
  const version = createHash('sha256').update(viewText(table)).digest('hex').slice(0, 16)
  return `Computed of ${tableDatabase}.${table.name}, version ${version}`
}

const viewName = ({ map, name }: ColumnSpec) => map?.name ?? name
const viewType = ({ map, type }: ColumnSpec) => (map === undefined ? type : mapColumnType(map))

function viewExpression({ map, name }: ColumnSpec): string {
  return map === undefined ? `\`${name}\`` : `${mapColumnExpression(map, `\`${name}\``)} AS \`${map.name}\``
}
