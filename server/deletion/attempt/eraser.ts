// Removes selected rows from partitions; removed-parts.ts waits until their bytes have left the disk. A
// partition that has no other rows is dropped, a metadata operation. Otherwise the remaining rows are copied
// to a side table and swapped in by REPLACE PARTITION, which leaves no mutation file and rewrites only that
// partition. side-tables.ts completes interrupted swaps.

import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { Fences } from '../../telemetry/fences.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import type { ErasureLocks, PlacementLock } from '../../telemetry/placement-locks.ts'
import { tables } from '../../telemetry/schema/tables.ts'
import { Bound, raw, type Sql, sql } from '../../telemetry/sql.ts'
import type { DeletionSelection, ErasureTarget } from '../requests/selection.ts'
import { ErasureError, ErasureStopped } from './erasure-error.ts'
import { selectedIn } from './planner.ts'
import { copyName, makeSwap, swapName } from './side-tables.ts'

/** Called with the name of a place where a test may end the process. */
export type Failpoint = (name: string) => Promise<void>

interface EraserDeps {
  readonly engine: TelemetryEngine
  readonly fences: Fences
  readonly locks: ErasureLocks
  /** The lock of the attempt; steps stop where it is lost. */
  readonly attempt: PlacementLock
  readonly failpoint: Failpoint
  /** Runs work when it is the organisation's turn. Never called while a placement is locked. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Returns the legal holds in force. */
  readonly activeHolds: (tenantId: string) => Promise<readonly ActiveHold[]>
}

/**
 * What happened to the organisation's own rows: `dropped` where none of them is left in the partition,
 * `rewritten` where some are. Rows of neighbours have no influence on it.
 */
export type ErasureAction = 'none' | 'dropped' | 'rewritten'

/** A partition of a table to erase from. */
interface PartitionStep {
  readonly store: string
  readonly partitionId: string
}

/** Records what happens to the partitions. */
interface ErasureRecord<Step extends PartitionStep> {
  /**
   * Called with the rows that are about to be erased and the holds that are kept; nothing is erased before it
   * resolves.
   */
  readonly begin: (rows: ReadonlyMap<Step, number>, holds: readonly ActiveHold[]) => Promise<void>
  /** Called before a swap is promised; nothing is promised before it resolves. */
  readonly promise: (step: Step, rows: number, holds: readonly ActiveHold[]) => Promise<void>
  readonly done: (steps: readonly Step[], action: ErasureAction) => Promise<void>
}

/**
 * Erases the selection from partitions: first the partitions of a table that have no other rows, together,
 * then the others one by one. After it the rows are gone from the tables; their old parts may stay on the
 * disk a little longer (removed-parts.ts). Throws ErasureStopped between two partitions when `signal` aborts,
 * and before the next statement that changes a table when a lock is lost: another process may then be at work
 * there.
 *
 * Nobody can commit to the placement while it is locked, so a lock covers only what depends on the rows: what
 * is counted before it is counted again under it, and the table of a copy is created before.
 */
export async function erasePartitions<Step extends PartitionStep>(
  deps: EraserDeps,
  place: TenantPlace,
  selection: DeletionSelection,
  steps: readonly Step[],
  record: ErasureRecord<Step>,
  signal: AbortSignal,
): Promise<void> {
  for (const [store, ofStore] of Map.groupBy(steps, (step) => step.store)) {
    if (signal.aborted) throw new ErasureStopped(signal)
    const eraser = new TableEraser(deps, place, selection, store, record)
    const dropped = await eraser.dropWhole(ofStore)
    for (const step of ofStore) {
      if (dropped.includes(step)) continue
      if (signal.aborted) throw new ErasureStopped(signal)
      await eraser.erase(step)
      await deps.failpoint('step recorded')
    }
  }
}

/** Counts of a partition that does not exist. */
const nothing = { selected: 0, own: 0, total: 0 }

/** Erases from the partitions of one table. */
class TableEraser<Step extends PartitionStep> {
  readonly #deps: EraserDeps
  readonly #place: TenantPlace
  readonly #selection: DeletionSelection
  readonly #store: string
  readonly #record: ErasureRecord<Step>

  constructor(
    deps: EraserDeps,
    place: TenantPlace,
    selection: DeletionSelection,
    store: string,
    record: ErasureRecord<Step>,
  ) {
    this.#deps = deps
    this.#place = place
    this.#selection = selection
    this.#store = store
    this.#record = record
  }

  /**
   * Drops the partitions that have only selected rows, and returns them. Counting partitions together costs
   * little more than counting one. A crash may leave some dropped and some not.
   */
  async dropWhole(steps: readonly Step[]): Promise<readonly Step[]> {
    const { activeHolds, attempt, failpoint, inTurn } = this.#deps
    const whole = await inTurn(async () => {
      const table = this.#table(await activeHolds(this.#place.tenantId), attempt)
      return [...(await wholeIn(table, steps)).keys()]
    })
    if (whole.length === 0) return []
    const dropped = await inTurn(() => this.#locked((table, holds) => this.#drop(table, whole, holds)))
    if (dropped.length > 0) await failpoint('step recorded')
    return dropped
  }

  async #drop(table: ErasedTable, steps: readonly Step[], holds: readonly ActiveHold[]): Promise<Step[]> {
    const { failpoint } = this.#deps
    const rowsOf = await wholeIn(table, steps)
    if (rowsOf.size === 0) return []
    await this.#record.begin(rowsOf, holds)
    await failpoint('before partition step')
    const dropped = [...rowsOf.keys()]
    await table.drop(dropped.map(({ partitionId }) => partitionId))
    await failpoint('partition dropped')
    await this.#record.done(dropped, 'dropped')
    return dropped
  }

  /** Erases the selected rows of a partition, and records what happened. */
  async erase(step: Step): Promise<void> {
    const { attempt, engine, inTurn } = this.#deps
    const copy = new EmptyCopy(engine, this.#place.placement, this.#store, attempt)
    await inTurn(async () => {
      await copy.create()
      const isSwapped = await this.#locked(async (lockedTable, holds) => {
        const action = await this.#eraseLocked(lockedTable, step, holds)
        await this.#record.done([step], action)
        return lockedTable.isPromised
      })
      if (!isSwapped) await copy.drop()
    })
  }

  async #eraseLocked(table: ErasedTable, step: Step, holds: readonly ActiveHold[]): Promise<ErasureAction> {
    const { failpoint, fences } = this.#deps
    const { placement } = this.#place
    const { partitionId } = step
    const { own, selected, total } = (await table.counts([partitionId])).get(partitionId) ?? nothing
    if (selected === 0) return 'none'
    await this.#record.begin(new Map([[step, selected]]), holds)
    await failpoint('before partition step')
    if (selected === total) {
      await table.drop([partitionId])
      await failpoint('partition dropped')
      return 'dropped'
    }
    await table.copySurvivors(partitionId, total - selected)
    await failpoint('survivors copied')
    await this.#record.promise(step, selected, holds)
    await fences.publish([{ kind: 'closed', placement, isClosed: true }])
    await table.promiseSwap()
    await failpoint('swap promised')
    await table.makeSwap()
    await fences.publish([{ kind: 'closed', placement, isClosed: false }])
    await failpoint('partition replaced')
    return selected === own ? 'dropped' : 'rewritten'
  }

  #locked<T>(work: (table: ErasedTable, holds: readonly ActiveHold[]) => Promise<T>): Promise<T> {
    const { activeHolds, attempt, locks } = this.#deps
    const { placement, tenantId } = this.#place
    return locks.writes.exclusively(
      [placement],
      async (lock) => {
        // Read under the lock: a hold that was placed before is kept, whatever the plan says.
        const holds = await activeHolds(tenantId)
        return work(this.#table(holds, lock), holds)
      },
      attempt.signal,
    )
  }

  /** The table under a lock, with what the holds leave of the selection. */
  #table(holds: readonly ActiveHold[], lock: PlacementLock): ErasedTable {
    const target = { ...this.#selection, held: holds }
    return new ErasedTable(this.#deps.engine, this.#place, target, this.#store, lock)
  }
}

/** Returns the steps whose partitions have only selected rows, with the number of these. */
async function wholeIn<Step extends PartitionStep>(
  table: ErasedTable,
  steps: readonly Step[],
): Promise<Map<Step, number>> {
  const counts = await table.counts(steps.map(({ partitionId }) => partitionId))
  const rowsOf = new Map<Step, number>()
  for (const step of steps) {
    const { selected, total } = counts.get(step.partitionId) ?? nothing
    if (selected > 0 && selected === total) rowsOf.set(step, selected)
  }
  return rowsOf
}

/** The table that a copy of survivors goes into, while it is empty. No other attempt has it. */
class EmptyCopy {
  readonly #engine: TelemetryEngine
  readonly #table: string
  readonly #name: string
  readonly #attempt: PlacementLock

  constructor(engine: TelemetryEngine, placement: number, table: string, attempt: PlacementLock) {
    this.#engine = engine
    this.#table = table
    this.#name = copyName(placement, table)
    this.#attempt = attempt
  }

  async create(): Promise<void> {
    requireLock(this.#attempt)
    await this.#engine.command(raw(`CREATE TABLE ${this.#name} AS ${this.#table}`))
    // The copy must be on the disk before the original leaves it.
    await this.#engine.command(
      raw(`ALTER TABLE ${this.#name} MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1`),
    )
  }

  /** Drops it where no swap needed it. */
  async drop(): Promise<void> {
    requireLock(this.#attempt)
    await this.#engine.command(raw(`DROP TABLE ${this.#name} SYNC`))
  }
}

/** Throws ErasureStopped where the lock was lost. */
function requireLock({ signal }: PlacementLock): void {
  if (signal.aborted) throw new ErasureStopped(signal)
}

/** One table with the selection of one organisation. */
class ErasedTable {
  readonly table: string
  readonly #engine: TelemetryEngine
  readonly #lock: PlacementLock
  readonly #copy: string
  /** The name of the complete copy, which promises the swap. */
  readonly #swapName: string
  readonly #tenantId: string
  readonly #selected: Sql
  #isPromised = false

  constructor(
    engine: TelemetryEngine,
    place: TenantPlace,
    target: ErasureTarget,
    store: string,
    lock: PlacementLock,
  ) {
    const spec = tables.find(({ name }) => name === store)
    if (spec === undefined) throw new ErasureError(`There is no table ${store}`)
    this.#engine = engine
    this.#lock = lock
    this.table = spec.name
    this.#tenantId = place.tenantId
    this.#copy = copyName(place.placement, spec.name)
    this.#swapName = swapName(place.placement, spec.name)
    this.#selected = selectedIn(spec, place.tenantId, target)
  }

  /** Whether the copy has become a promised swap. */
  get isPromised(): boolean {
    return this.#isPromised
  }

  /** Counts rows per partition; a partition without rows is absent. */
  async counts(
    partitionIds: readonly string[],
  ): Promise<ReadonlyMap<string, { selected: number; own: number; total: number }>> {
    const ids = partitionIds.map(checkedId)
    const counts = await this.#engine.select<{
      id: string
      selected: string
      own: string
      total: string
    }>(sql`
      SELECT _partition_id AS id, countIf(${this.#selected}) AS selected, countIf(TenantId = ${this.#tenantId}) AS own, count() AS total
      FROM ${raw(this.table)} WHERE _partition_id IN ${new Bound('Array(String)', ids)} GROUP BY id`)
    return new Map(
      counts.map(({ id, own, selected, total }) => [
        id,
        { selected: Number(selected), own: Number(own), total: Number(total) },
      ]),
    )
  }

  async drop(partitionIds: readonly string[]): Promise<void> {
    const drops = partitionIds.map((id) => `DROP PARTITION ID '${checkedId(id)}'`)
    requireLock(this.#lock)
    await this.#engine.command(raw(`ALTER TABLE ${this.table} ${drops.join(', ')}`))
  }

  async copySurvivors(partitionId: string, expected: number): Promise<void> {
    requireLock(this.#lock)
    await this.#engine.command(
      sql`INSERT INTO ${raw(this.#copy)} SELECT * FROM ${raw(this.table)} WHERE _partition_id = ${checkedId(partitionId)} AND NOT (${this.#selected})`,
    )
    const [copied] = await this.#engine.select<{ rows: string }>(
      sql`SELECT count() AS rows FROM ${raw(this.#copy)}`,
    )
    if (Number(copied?.rows) !== expected) {
      throw new ErasureError(`The copy of what survives in ${this.table} is not complete`)
    }
  }

  /** After this the swap is made, now or after a crash. */
  async promiseSwap(): Promise<void> {
    requireLock(this.#lock)
    await this.#engine.command(raw(`RENAME TABLE ${this.#copy} TO ${this.#swapName}`))
    this.#isPromised = true
  }

  async makeSwap(): Promise<void> {
    requireLock(this.#lock)
    await makeSwap(this.#engine, this.#swapName)
  }
}

/**
 * The id becomes part of a statement where it can't be bound, so it must have the form of the engine's own
 * ids.
 */
function checkedId(partitionId: string): string {
  if (!/^\d+-\d{8}$/.test(partitionId)) throw new ErasureError(`Not a partition id: ${partitionId}`)
  return partitionId
}
