// The statements of the eraser on one telemetry table, with the selection of one organisation. Each that
// changes a table checks the lock before.

import { type TenantPlace, usualLimits } from '../../telemetry/engine.ts'
import type { PlacementLock } from '../../telemetry/placement-locks.ts'
import { tables } from '../../telemetry/schema/tables.ts'
import { allOf, Bound, join, raw, render, type Sql, sql, uint } from '../../telemetry/sql.ts'
import { underLock } from '../../telemetry/statement-settings.ts'
import type { ErasureTarget } from '../requests/selection.ts'
import { ErasureError, ErasureStopped } from './erasure-error.ts'
import { selectedIn } from './planner.ts'
import { copyName, makeSwap, type SwapDeps, swapName } from './side-tables.ts'

export interface SurvivalCounts {
  readonly selected: number
  /** Rows of the organisation. */
  readonly own: number
  readonly total: number
}

/** Counts of a partition that does not exist. */
export const noRows: SurvivalCounts = { selected: 0, own: 0, total: 0 }

interface ErasedTableOptions {
  readonly target: ErasureTarget
  /** The name of the table. */
  readonly store: string
  /** No statement changes the table after this lock is lost. */
  readonly lock: PlacementLock
  /** Whether the placement is locked, so that commits wait for each statement. */
  readonly isLocked: boolean
}

export class ErasedTable {
  readonly name: string
  /** The condition of the selection, as text: where it is another one, other rows survive. */
  readonly selectedText: string
  readonly #deps: SwapDeps
  readonly #lock: PlacementLock
  readonly #isLocked: boolean
  readonly #copy: string
  /** The name of the complete copy, which promises the swap. */
  readonly #swapName: string
  readonly #tenantId: string
  readonly #selected: Sql
  #isPromised = false

  constructor(deps: SwapDeps, place: TenantPlace, { target, store, lock, isLocked }: ErasedTableOptions) {
    const spec = tables.find(({ name }) => name === store)
    if (spec === undefined) throw new ErasureError(`There is no table ${store}`)
    this.#deps = deps
    this.#lock = lock
    this.#isLocked = isLocked
    this.name = spec.name
    this.#tenantId = place.tenantId
    this.#copy = copyName(place.placement, spec.name)
    this.#swapName = swapName(place.placement, spec.name)
    this.#selected = selectedIn(spec, place.tenantId, target)
    this.selectedText = render(this.#selected)
  }

  /** Whether the copy has become a promised swap. */
  get isPromised(): boolean {
    return this.#isPromised
  }

  /** Counts rows per partition; a partition without rows is absent. */
  counts(partitionIds: readonly string[]): Promise<ReadonlyMap<string, SurvivalCounts>> {
    const ids = partitionIds.map(checkedId)
    return this.#countBy(raw('_partition_id'), sql`_partition_id IN ${new Bound('Array(String)', ids)}`)
  }

  /** Counts the rows of a partition for which each of the conditions is true. No two are true of one row. */
  async countEach(partitionId: string, conditions: readonly Sql[]): Promise<readonly SurvivalCounts[]> {
    if (conditions.length === 0) return []
    const cases = conditions.map((condition, i) => sql`${condition}, ${uint(i)}`)
    const any = join(
      conditions.map((condition) => sql`(${condition})`),
      ' OR ',
    )
    const found = await this.#countBy(
      sql`toString(multiIf(${join(cases, ', ')}, ${uint(conditions.length)}))`,
      sql`_partition_id = ${checkedId(partitionId)} AND (${any})`,
    )
    return conditions.map((_, i) => found.get(String(i)) ?? noRows)
  }

  /** Counts the rows of parts of a partition, by name; a part that is not active any more is absent. */
  countParts(partitionId: string, names: readonly string[]): Promise<ReadonlyMap<string, SurvivalCounts>> {
    const isPart = sql`_part IN ${new Bound('Array(String)', names)}`
    return this.#countBy(raw('_part'), sql`_partition_id = ${checkedId(partitionId)} AND ${isPart}`)
  }

  async #countBy(key: Sql, which: Sql): Promise<ReadonlyMap<string, SurvivalCounts>> {
    const counts = await this.#deps.engine.select<Record<'id' | keyof SurvivalCounts, string>>(
      sql`
      SELECT ${key} AS id, countIf(${this.#selected}) AS selected, countIf(TenantId = ${this.#tenantId}) AS own, count() AS total
      FROM ${raw(this.name)} WHERE ${which} GROUP BY id`,
      { ...usualLimits, isUnderLock: this.#isLocked },
    )
    return new Map(
      counts.map(({ id, own, selected, total }) => [
        id,
        { selected: Number(selected), own: Number(own), total: Number(total) },
      ]),
    )
  }

  async drop(partitionIds: readonly string[]): Promise<void> {
    const drops = partitionIds.map((id) => `DROP PARTITION ID '${checkedId(id)}'`)
    this.requireLock()
    await this.#deps.engine.command(raw(`ALTER TABLE ${this.name} ${drops.join(', ')}`))
  }

  /** Adds survivors of a partition to its copy: those for which the condition is true. */
  async copySurvivors(partitionId: string, condition: Sql): Promise<void> {
    const which = allOf([
      sql`_partition_id = ${checkedId(partitionId)}`,
      condition,
      sql`NOT (${this.#selected})`,
    ])
    const insert = sql`INSERT INTO ${raw(this.#copy)} SELECT * FROM ${raw(this.name)} WHERE ${which}`
    this.requireLock()
    await this.#deps.engine.command(this.#isLocked ? sql`${insert} SETTINGS ${raw(underLock)}` : insert)
  }

  /**
   * Adds all parts of a partition to its copy, selected rows included, by links to the same files instead of
   * copies of them.
   */
  async linkParts(partitionId: string): Promise<void> {
    this.requireLock()
    await this.#deps.engine.command(
      raw(`ALTER TABLE ${this.#copy} ATTACH PARTITION ID '${checkedId(partitionId)}' FROM ${this.name}`),
    )
  }

  /** After this the swap is made, now or after a crash, so the copy must be on the disk. */
  async promiseSwap(): Promise<void> {
    this.requireLock()
    await this.#deps.engine.command(raw(`RENAME TABLE ${this.#copy} TO ${this.#swapName}`))
    this.#isPromised = true
  }

  /** Makes the promised swap of the partition that was copied. */
  async makeSwap(partitionId: string): Promise<void> {
    this.requireLock()
    await makeSwap(this.#deps, this.#swapName, checkedId(partitionId))
  }

  /** Throws ErasureStopped where the lock was lost. */
  requireLock(): void {
    requireLock(this.#lock)
  }
}

/** Throws ErasureStopped where the lock was lost. */
export function requireLock({ signal }: PlacementLock): void {
  if (signal.aborted) throw new ErasureStopped(signal)
}

/**
 * The id becomes part of a statement where it can't be bound, so it must have the form of the engine's own
 * ids.
 */
function checkedId(partitionId: string): string {
  if (!/^\d+-\d{8}$/.test(partitionId)) throw new ErasureError(`Not a partition id: ${partitionId}`)
  return partitionId
}
