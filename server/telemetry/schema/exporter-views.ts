// The tables of the OpenTelemetry Collector's ClickHouse exporter, as views in a database of their own: its
// names, columns, types and order, with attributes as maps. They hold nothing and answer what the tables
// hold, and no statement of the service names them, so what maps cost to plan and to compute is paid by
// whoever asks for them (docs/decisions/0018).

import { createHash } from 'node:crypto'
import type { TelemetryEngine } from '../engine.ts'
import { raw, sql } from '../sql.ts'
import { mapColumnExpression, mapColumnType } from './attribute-pairs.ts'
import { type ColumnSpec, placeColumns, type TableSpec } from './tables.ts'

/** Of the views. A tool that knows the exporter's tables finds them when this is its database. */
export const exporterDatabase = 'otel'

/** Of the tables: where the sessions of the engine are. Named in the views, which are read from anywhere. */
const tableDatabase = 'default'

/**
 * Makes the views that are missing, and anew those that another build made otherwise. One that is there as it
 * should be costs nothing but a look at what it says of itself. One that was dropped to be made anew when the
 * process ended is missing at the next start.
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
    // Not replaced: whatever else has that name, a table with somebody's rows say, makes this fail and stays.
    await engine.command(raw(`DROP VIEW IF EXISTS ${exporterDatabase}.${table.name} SYNC`))
    await engine.command(raw(`${viewText(table)} COMMENT '${viewComment(table)}'`))
  }
}

/**
 * Placement and tenant stand first, the identity of a metric's series last; what is
 * between is the exporter's.
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

/** Has no character that a text of SQL would have to escape. */
function viewComment(table: TableSpec): string {
  const version = createHash('sha256').update(viewText(table)).digest('hex').slice(0, 16)
  return `Computed of ${tableDatabase}.${table.name}, version ${version}`
}

const viewName = ({ map, name }: ColumnSpec) => map?.name ?? name
const viewType = ({ map, type }: ColumnSpec) => (map === undefined ? type : mapColumnType(map))

function viewExpression({ map, name }: ColumnSpec): string {
  return map === undefined ? `\`${name}\`` : `${mapColumnExpression(map, `\`${name}\``)} AS \`${map.name}\``
}
