// Brings tables of earlier builds up to date where the engine can do it by itself: adds a column that it can
// fill, rewrites attributes that were stored as maps into texts of pairs, and removes maps that the table
// computed from such texts, which are in its view. After every step the tables contain the same data, and
// every step can be repeated: if a start is killed in between, the next start continues. Side tables of an
// unfinished erasure end with the name of their table; they are changed too, because only tables with equal
// columns can be swapped.

import type { TelemetryEngine } from '../engine.ts'
import { raw } from '../sql.ts'
import { type MapColumn, pairColumnExpression } from './attribute-pairs.ts'
import { columnText, type FoundColumn, type FoundColumns } from './column-text.ts'
import type { ColumnSpec, TableSpec } from './tables.ts'

/**
 * Brings a table and its side tables up to date; does nothing where they are. Waits until texts of pairs are
 * written, which reads the whole table. Returns whether anything was changed.
 *
 * @param found the columns of all tables
 */
export async function bringUpToDate(
  engine: TelemetryEngine,
  spec: TableSpec,
  found: FoundColumns,
): Promise<boolean> {
  let isChanged = false
  for (const [name, columns] of found) {
    if (name !== spec.name && !name.endsWith(`_${spec.name}`)) continue
    const table = new OlderTable(engine, name, columns)
    const fallbacks = spec.columns.filter(({ fallback }) => fallback !== undefined)
    await table.makePairs(spec.columns.flatMap(pairColumnsOf), fallbacks)
    await table.addFallbacks(fallbacks)
    isChanged ||= table.isChanged
  }
  return isChanged
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
  #isChanged = false

  constructor(engine: TelemetryEngine, name: string, columns: readonly FoundColumn[]) {
    this.#engine = engine
    this.#name = name
    this.#kinds = new Map(columns.map((column) => [column.name, column.kind]))
  }

  get isChanged(): boolean {
    return this.#isChanged
  }

  /**
   * Adds the pairs as columns that are computed from the maps, writes them, and then removes the expression;
   * after that it drops the maps. Maps that were computed from the pairs are not stored, so only the
   * definition of the table changes.
   *
   * @param fallbacks columns that the engine fills, so far from the maps
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

  /** Older rows get the value when they are read, and store it at their next merge. */
  async addFallbacks(columns: readonly ColumnSpec[]): Promise<void> {
    const lacking = columns.filter(({ name }) => !this.#kinds.has(name))
    await this.#alter(lacking.map((column) => `ADD COLUMN ${columnText(column)}`))
  }

  async #alter(steps: readonly string[]): Promise<void> {
    if (steps.length === 0) return
    this.#isChanged = true
    await this.#engine.command(
      raw(`ALTER TABLE ${this.#name} ${steps.join(', ')} SETTINGS mutations_sync = 2`),
    )
  }
}
