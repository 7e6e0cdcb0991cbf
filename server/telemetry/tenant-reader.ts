// Reads on behalf of one organisation. A statement names its tables only through `from`, which adds the
// tenant and excludes everything hidden. So a query without a tenant can't be written here, and a hidden row
// can't be read: a statement that names a table in its own text is refused before it reaches the engine.

import assert from 'node:assert/strict'
import type { ReadShare, StatementLimits, TelemetryEngine, TenantPlace } from './engine.ts'
import { type Coverage, hiddenMeanwhile, type TelemetryGate } from './gate.ts'
import { type TableName, type TableSpec, tables } from './schema/tables.ts'
import { allOf, instant, join, raw, Sql, sql, uint } from './sql.ts'

export interface From {
  /** Used in place of a table, with all its columns. */
  (table: TableName, ...conditions: readonly Sql[]): Sql
  /**
   * A whole SELECT over one table: a statement, or a part of one in parentheses. Each level of a statement
   * costs the engine a millisecond, so frequent reads have one level. No alias in it may be the name of a
   * column.
   */
  select(table: TableName, select: TableSelect): Sql
}

export interface TableSelect {
  readonly columns: Sql
  readonly conditions: readonly Sql[]
  readonly groupBy?: Sql
  /** The definition of the window `w`. */
  readonly window?: Sql
  readonly limit?: number
  /**
   * Whether the conditions are tested in this order, before other columns are read. Otherwise the engine
   * chooses an order by the sizes of columns, which takes longer than reading a window.
   */
  readonly isOrdered?: boolean
}

/** The body of a response. */
export interface TenantAnswer<Body> {
  readonly body: Body
  /** Called when the body is written, and after each hiding until it is sent. */
  readonly requireCurrent: () => void
}

interface AnswerOptions<Body> {
  readonly repeatsMax?: number
  /** Returns what the body contains; absent: anything of the organisation. */
  readonly coverageOf?: (body: Body) => Coverage
}

/** Table names, other databases, and functions that read from elsewhere. */
const outside = /\botel_|\bsystem\s*\.|\b(?:file|url|s3|remote|remoteSecure|cluster|merge|executable)\s*\(/i

interface TenantReaderOptions {
  /** Whether a client waits for the result; `asked` where absent. */
  readonly kind?: ReadShare['kind']
  /** Aborts when the result is no longer needed. */
  readonly signal?: AbortSignal | undefined
  /** Resolves when the organisation may use the event loop; absent: in the next round of the loop. */
  readonly turn?: () => Promise<unknown>
  /** The reader returns no rows at or after this instant. */
  readonly untilNs?: bigint
}

export class TenantReader {
  readonly place: TenantPlace
  readonly gate: TelemetryGate
  readonly #engine: TelemetryEngine
  readonly #options: TenantReaderOptions

  constructor(
    engine: TelemetryEngine,
    place: TenantPlace,
    gate: TelemetryGate,
    options: TenantReaderOptions = {},
  ) {
    this.#engine = engine
    this.place = place
    this.gate = gate
    this.#options = options
  }

  /** Names the organisation for reads of the same operation that do not go through this reader. */
  get share(): ReadShare {
    const { kind = 'asked', signal, turn } = this.#options
    return { tenantId: this.place.tenantId, kind, signal, turn }
  }

  /**
   * Returns a reader that returns no rows at or after the instant: a replay of the past must not read what
   * came later.
   */
  until(instantNs: bigint): TenantReader {
    return new TenantReader(this.#engine, this.place, this.gate, { ...this.#options, untilNs: instantNs })
  }

  /**
   * Returns the rows of a statement. Use `from(table, ...conditions)` in place of a table. Conditions given
   * there reach the sort key, so put the time range there. A read that was running when something was hidden
   * is repeated, so a result never contains what was hidden before it is returned. Whoever reads or waits for
   * something else afterwards does both in {@link together} or {@link answer}.
   */
  rows<T>(build: (from: From) => Sql, limits?: StatementLimits): Promise<T[]> {
    return this.#visible(build, (statement) => this.#engine.select<T>(statement, limits, this.share))
  }

  /** The same in the Native format. */
  bytes(build: (from: From) => Sql, limits?: StatementLimits): Promise<Uint8Array> {
    return this.#visible(build, (statement) => this.#engine.bytes(statement, limits, this.share))
  }

  /** Runs several reads whose results are combined; see {@link TelemetryGate.together}. */
  together<T>(read: () => Promise<T>, repeatsMax?: number): Promise<T> {
    return this.gate.together(this.place.tenantId, read, repeatsMax)
  }

  /**
   * Runs all reads of an HTTP response together. Writing a large body takes time as well, and a client may
   * read it slowly, so `requireCurrent` throws `erasing` where something that the body contains was hidden
   * after the reads.
   */
  async answer<T>(
    read: () => Promise<T>,
    { coverageOf, repeatsMax }: AnswerOptions<T> = {},
  ): Promise<TenantAnswer<T>> {
    const { tenantId } = this.place
    const readAt = async () => ({ body: await read(), hidings: this.gate.hidings(tenantId) })
    const { body, hidings } = await this.together(readAt, repeatsMax)
    const coverage = coverageOf?.(body)
    const requireCurrent = () => {
      if (this.gate.hasHiddenSince(tenantId, hidings, coverage)) throw hiddenMeanwhile()
    }
    return { body, requireCurrent }
  }

  #visible<T>(build: (from: From) => Sql, read: (statement: Sql) => Promise<T>): Promise<T> {
    const from: From = Object.assign(
      (table: TableName, ...conditions: readonly Sql[]) =>
        new TenantTable(sql`(${this.#select(table, { columns: raw('*'), conditions })})`),
      { select: (table: TableName, select: TableSelect) => this.#select(table, select) },
    )
    return this.together(() => {
      const statement = build(from)
      assertOwnText(statement)
      return read(statement)
    })
  }

  /**
   * The conditions that exclude hidden rows name columns with their table, because the engine takes a bare
   * name for an alias of the same SELECT where there is one.
   */
  #select(table: TableName, { columns, conditions, ...rest }: TableSelect): Sql {
    for (const own of [columns, ...conditions, rest.groupBy, rest.window])
      if (own !== undefined) assertOwnText(own)
    const visible = [
      sql`${raw(table)}.Placement = ${uint(this.place.placement)}`,
      sql`${raw(table)}.TenantId = ${this.place.tenantId}`,
      ...this.#hiddenIn(table).map((hidden) => sql`NOT (${hidden})`),
      ...this.#knownIn(table),
      ...conditions,
    ]
    const where = raw(rest.isOrdered === true ? 'PREWHERE' : 'WHERE')
    const clauses = [
      sql`SELECT ${columns} FROM ${raw(table)} ${where} ${allOf(visible)}`,
      ...(rest.groupBy === undefined ? [] : [sql`GROUP BY ${rest.groupBy}`]),
      ...(rest.window === undefined ? [] : [sql`WINDOW w AS (${rest.window})`]),
      ...(rest.limit === undefined ? [] : [sql`LIMIT ${uint(rest.limit)}`]),
    ]
    return new TenantTable(join(clauses, ' '))
  }

  #knownIn(name: TableName): Sql[] {
    const { untilNs } = this.#options
    if (untilNs === undefined) return []
    return [rangeCondition(timeOf(tableOf(name)), { startNs: null, endNs: untilNs })]
  }

  #hiddenIn(name: TableName): Sql[] {
    const table = tableOf(name)
    return this.gate
      .hidden(this.place.tenantId)
      .filter((selection) => selection.signals.includes(table.signal))
      .map(({ range }) => rangeCondition(timeOf(table), range))
  }
}

const timeOf = ({ name, timeColumn }: TableSpec): string => `${name}.${timeColumn}`

function tableOf(name: TableName): TableSpec {
  const table = tables.find((candidate) => candidate.name === name)
  assert(table !== undefined)
  return table
}

/** A `from` that is known to select one tenant. */
class TenantTable extends Sql {
  constructor(text: Sql) {
    super(text.strings, text.parts)
  }
}

/** True exactly for instants inside the range; true for all where both bounds are open. */
export function rangeCondition(
  timeColumn: string,
  range: { readonly startNs: bigint | null; readonly endNs: bigint | null },
): Sql {
  const bounds: Sql[] = []
  if (range.startNs !== null) bounds.push(sql`${raw(timeColumn)} >= ${instant(range.startNs)}`)
  if (range.endNs !== null) bounds.push(sql`${raw(timeColumn)} < ${instant(range.endNs)}`)
  return allOf(bounds)
}

/** Refuses text that reads outside the tenant. Bound values are not text, so they may contain anything. */
function assertOwnText(fragment: Sql): void {
  if (fragment instanceof TenantTable) return
  for (const text of fragment.strings) {
    assert(!outside.test(text), `A tenant's statement names its tables through from(), not as: ${text}`)
  }
  for (const part of fragment.parts) if (part instanceof Sql) assertOwnText(part)
}
