// Whether an organisation has telemetry from before a time: a read of a long past need not begin before it.
// Cheap in a large organisation too, because each table stops at the first row.

import type { Ns } from '../../contract/values/instant.ts'
import { type Signal, tablesOf } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import { type From, rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'

/**
 * What is known of the earliest rows of an organisation, for a short time such as a batch of detectors, which
 * ask for many times of the same signals.
 */
export class EarlierRows {
  readonly #reader: Pick<TenantReader, 'rows'>
  /** By signals. */
  readonly #known = new Map<string, Known>()

  constructor(reader: Pick<TenantReader, 'rows'>) {
    this.#reader = reader
  }

  /** False where the organisation has no row of these signals before the time. */
  async areBefore(endNs: Ns, signals: readonly Signal[]): Promise<boolean> {
    const key = signals.toSorted().join(' ')
    const known = this.#known.get(key) ?? {}
    this.#known.set(key, known)
    if (known.noneBeforeNs !== undefined && endNs <= known.noneBeforeNs) return false
    if (known.someBeforeNs !== undefined && endNs >= known.someBeforeNs) return true
    const found = await this.#reader.rows((from) => firstRows(from, signals, { endNs, conditions: [] }))
    if (found.length > 0) known.someBeforeNs = endNs
    else known.noneBeforeNs = endNs
    return found.length > 0
  }
}

/** There is no row before the one time, and there are some before the other. */
interface Known {
  noneBeforeNs?: Ns
  someBeforeNs?: Ns
}

/** One row for each table of the signals that has such rows before the time. */
export function firstRows(
  from: From,
  signals: readonly Signal[],
  { conditions, endNs }: { readonly endNs: Ns; readonly conditions: readonly Sql[] },
): Sql {
  const found = tablesOf(signals).map(
    ({ name, timeColumn }) =>
      sql`(${from.select(name, {
        columns: raw('1 AS earlier'),
        conditions: [rangeCondition(timeColumn, { startNs: null, endNs }), ...conditions],
        limit: 1,
      })})`,
  )
  return join(found, ' UNION ALL ')
}
