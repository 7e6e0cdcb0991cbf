// Tables of earlier builds, made like those of this one where the engine can do it by itself: a column that
// it can fill is added, attributes that were stored as maps are rewritten as texts of pairs, and maps that
// were computed of such texts in the table itself are left to its view. Every step leaves tables that hold
// the same and can be repeated, so a start that is killed in between is made up for by the next. The side
// tables of an erasure that did not end bear the name of their table at the end; they can only be swapped
// in with the same columns.

import type { TelemetryEngine } from '../engine.ts'
import { raw, sql } from '../sql.ts'
import { type MapColumn, pairColumnExpression } from './attribute-pairs.ts'
import { columnText, type FoundColumn, foundColumns } from './column-text.ts'
import type { ColumnSpec, TableSpec } from './tables.ts'

/**
 * Does nothing where there is nothing to do. Texts of pairs are made before it resolves,
 * which reads all there is.
 */
export async function bringUpToDate(engine: TelemetryEngine, spec: TableSpec): Promise<void> {
  const tables = await engine.select<{ name: string }>(
    sql`select name from system.tables where database = currentDatabase() and (name = ${spec.name} or endsWith(name, ${`_${spec.name}`}))`,
  )
  for (const { name } of tables) {
    const table = new OlderTable(engine, name, await foundColumns(engine, name))
    const fallbacks = spec.columns.filter(({ fallback }) => fallback !== undefined)
    await table.makePairs(spec.columns.flatMap(pairColumnsOf), fallbacks)
    await table.addFallbacks(fallbacks)
  }
}

interface PairColumn extends ColumnSpec {
  readonly map: MapColumn
}

function pairColumnsOf(column: ColumnSpec): PairColumn[] {
  const { map } = column
  return map === undefined ? [] : [{ ...column, map }]
}

class OlderTable {
  readonly #engine: TelemetryEngine
  readonly #name: string
  readonly #kinds: ReadonlyMap<string, FoundColumn['kind']>

  constructor(engine: TelemetryEngine, name: string, columns: readonly FoundColumn[]) {
    this.#engine = engine
    this.#name = name
    this.#kinds = new Map(columns.map((column) => [column.name, column.kind]))
  }

  /**
   * The pairs are added as what is computed of the maps, written down, and only then on their own;
   * then the maps go. Of maps that were computed of the pairs nothing is stored, so only the
   * definition of the table changes.
   *
   * @param fallbacks columns that the engine fills, until now from the maps
   */
  async makePairs(columns: readonly PairColumn[], fallbacks: readonly ColumnSpec[]): Promise<void> {
    const stored = columns.filter(({ map }) => this.#kinds.get(map.name) === '')
    const computed = stored.filter(({ name }) => this.#kinds.get(name) !== '')
    const added = computed.filter(({ name }) => !this.#kinds.has(name))
    const maps = columns.filter(({ map }) => this.#kinds.has(map.name))
    await this.#alter(
      added.map((column) => {
        const text = columnText({ ...column, fallback: pairColumnExpression(column.map) })
        return `ADD COLUMN ${text} AFTER \`${column.map.name}\``
      }),
    )
    await this.#alter(computed.map(({ name }) => `MATERIALIZE COLUMN \`${name}\``))
    await this.#alter(computed.map(({ name }) => `MODIFY COLUMN \`${name}\` REMOVE DEFAULT`))
    const refilled = stored.length === 0 ? [] : fallbacks.filter(({ name }) => this.#kinds.has(name))
    await this.#alter(refilled.map(({ name, fallback }) => `MODIFY COLUMN \`${name}\` DEFAULT ${fallback}`))
    await this.#alter(maps.map(({ map }) => `DROP COLUMN \`${map.name}\``))
  }

  /** Rows of before get their value when they are read, and keep it from their next merge on. */
  async addFallbacks(columns: readonly ColumnSpec[]): Promise<void> {
    const lacking = columns.filter(({ name }) => !this.#kinds.has(name))
    await this.#alter(lacking.map((column) => `ADD COLUMN ${columnText(column)}`))
  }

  async #alter(steps: readonly string[]): Promise<void> {
    if (steps.length === 0) return
    await this.#engine.command(
      raw(`ALTER TABLE ${this.#name} ${steps.join(', ')} SETTINGS mutations_sync = 2`),
    )
  }
}
