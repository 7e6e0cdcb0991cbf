// Removes selected rows from partitions; removed-parts.ts waits until their bytes have left the disk. A
// partition that has no other rows is dropped, a metadata operation. Otherwise the remaining rows are copied
// to a side table and swapped in by REPLACE PARTITION, which leaves no mutation file and rewrites only that
// partition. Of a large one most are copied before the placement is locked (survivor-copy.ts). side-tables.ts
// completes interrupted swaps.

import type { TenantPlace } from '../../telemetry/engine.ts'
import type { LocalEngineFiles } from '../../telemetry/engine-files.ts'
import type { Fences } from '../../telemetry/fences.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { type PartitionSize, type PartitionSizes, partitionSizes } from '../../telemetry/partitions.ts'
import type { ErasureLocks, PlacementLock } from '../../telemetry/placement-locks.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { copyMs, largeCopyMs, rowsCopiedIn } from './copy-cost.ts'
import { ErasedTable, noRows, type SurvivalCounts } from './erased-table.ts'
import { ErasureStopped } from './erasure-error.ts'
import type { PartitionTurns } from './partition-queue.ts'
import type { SwapDeps } from './side-tables.ts'
import { type CopyEngines, type LinkRule, SurvivorCopy } from './survivor-copy.ts'

/** Called with the name of a place where a test may end the process. */
export type Failpoint = (name: string) => Promise<void>

/** What a test with small partitions changes. */
export interface ErasingLimits {
  /**
   * So many rows may be copied under the lock; absent: as many as take {@link shortCopyMs}. A test with small
   * partitions sets 0.
   */
  readonly fewRows?: number
  /** When parts are linked instead of copied; absent: only large ones. A test with small parts sets zeros. */
  readonly linkRule?: LinkRule
  /**
   * Returns how long the copy of a slice may take of a piece that takes so long, milliseconds; absent:
   * {@link usualSliceMs}. A test with small pieces sets less.
   */
  readonly sliceMsOf?: (pieceMs: number) => number
  /** So many partitions are dropped in one piece; absent: {@link partitionsDroppedAtOnce}. A test sets 1. */
  readonly droppedAtOnce?: number
}

interface EraserDeps extends ErasingLimits, SwapDeps {
  readonly copyEngines: CopyEngines
  /** Null where the engine is on another machine, which syncs by itself. */
  readonly files: Pick<LocalEngineFiles, 'partNames' | 'sync' | 'syncsAtOnce'> | null
  readonly fences: Fences
  readonly locks: ErasureLocks
  /** The lock of the attempt; steps stop where it is lost. */
  readonly attempt: PlacementLock
  readonly failpoint: Failpoint
  readonly turns: PartitionTurns
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
  /** Selected rows, as they were planned. */
  readonly rows: number
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
 * Erases the selection from partitions: first the partitions of a table that have no other rows, many
 * together, then the others one by one. After it the rows are gone from the tables; their old parts may stay
 * on the disk a little longer (removed-parts.ts). Throws ErasureStopped between two pieces when `signal`
 * aborts, and before the next statement that changes a table when a lock is lost: another process may then
 * be at work there.
 *
 * Nobody can commit to the placement while it is locked, so a lock covers only what depends on the rows of
 * that moment: partitions that were planned as whole are counted again under it, and survivors of large ones
 * are counted and copied before, as far as they are the same under it.
 */
export async function erasePartitions<Step extends PartitionStep>(
  deps: EraserDeps,
  place: TenantPlace,
  selection: DeletionSelection,
  steps: readonly Step[],
  record: ErasureRecord<Step>,
  signal: AbortSignal,
): Promise<void> {
  const sizes = await partitionSizes(deps.engine, place.placement)
  for (const [store, ofStore] of Map.groupBy(steps, (step) => step.store)) {
    if (signal.aborted) throw new ErasureStopped(signal)
    const eraser = new TableEraser(deps, place, selection, store, record, sizes)
    const dropped = await eraser.dropWhole(ofStore, signal)
    for (const step of ofStore) {
      if (dropped.has(step)) continue
      if (signal.aborted) throw new ErasureStopped(signal)
      await eraser.erase(step)
      await deps.failpoint('step recorded')
    }
  }
}

/**
 * Partitions that are dropped in one piece: a year of weeks. The placement is locked meanwhile and no other
 * organisation gets its turn. A thousand take about a second, and a table may have nine thousand.
 */
const partitionsDroppedAtOnce = 64

/**
 * How often survivors are copied before the lock. Each pass copies what has arrived or was merged during the
 * one before, so it is shorter, unless rows arrive as fast as they are copied; then the lock covers the rest.
 */
const passesMax = 4

/**
 * A copy under the lock may take this long, milliseconds, as copy-cost.ts estimates it; a free core takes
 * less than half of that. It is not much more than what a copy ahead adds (docs/decisions/0067).
 */
const shortCopyMs = 600

const emptyPartition: PartitionSize = { rows: 0, bytes: 0 }

/** What the lock of a step covers. */
interface LockedStep<Step> {
  readonly copy: SurvivorCopy
  readonly holds: readonly ActiveHold[]
  readonly step: Step
  /** Syncs the copy before its swap is promised; null where each of its inserts was synced. */
  readonly syncs: Pick<LocalEngineFiles, 'sync'> | null
}

/** Erases from the partitions of one table. */
class TableEraser<Step extends PartitionStep> {
  readonly #deps: EraserDeps
  readonly #place: TenantPlace
  readonly #selection: DeletionSelection
  readonly #store: string
  readonly #record: ErasureRecord<Step>
  readonly #sizes: PartitionSizes

  constructor(
    deps: EraserDeps,
    place: TenantPlace,
    selection: DeletionSelection,
    store: string,
    record: ErasureRecord<Step>,
    sizes: PartitionSizes,
  ) {
    this.#deps = deps
    this.#place = place
    this.#selection = selection
    this.#store = store
    this.#record = record
    this.#sizes = sizes
  }

  /**
   * Drops the partitions that have only selected rows, some at a time, and returns them. Only those are
   * counted of which the plan has every row; the others are counted one by one. A crash may leave some
   * dropped and some not.
   */
  async dropWhole(steps: readonly Step[], signal: AbortSignal): Promise<ReadonlySet<Step>> {
    const { droppedAtOnce = partitionsDroppedAtOnce, failpoint, turns } = this.#deps
    const whole = steps.filter((step) => step.rows === this.#sizeOf(step).rows)
    const dropped = new Set<Step>()
    for (let at = 0; at < whole.length; at += droppedAtOnce) {
      if (signal.aborted) throw new ErasureStopped(signal)
      const piece = whole.slice(at, at + droppedAtOnce)
      const gone = await turns.inTurn(() => this.#locked((table, holds) => this.#drop(table, piece, holds)))
      for (const step of gone) dropped.add(step)
      if (gone.length > 0) await failpoint('step recorded')
    }
    return dropped
  }

  /** Returns the size of the partition, of all organisations, as it was without a lock. */
  #sizeOf({ partitionId, store }: Step): PartitionSize {
    return this.#sizes.get(`${store} ${partitionId}`) ?? emptyPartition
  }

  async #drop(table: ErasedTable, steps: readonly Step[], holds: readonly ActiveHold[]): Promise<Step[]> {
    const { failpoint } = this.#deps
    const counts = await table.counts(steps.map(({ partitionId }) => partitionId))
    const rowsOf = wholeIn(counts, steps)
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
    const { turns } = this.#deps
    const isLarge = copyMs(this.#sizeOf(step)) > largeCopyMs
    await (isLarge ? turns.withLargeCopy(() => this.#rewrite(step)) : this.#rewrite(step))
  }

  async #rewrite(step: Step): Promise<void> {
    const { attempt, copyEngines, engine, files, turns } = this.#deps
    const size = this.#sizeOf(step)
    const fewRows = this.#deps.fewRows ?? rowsCopiedIn(shortCopyMs, size)
    const isShort = size.rows <= fewRows
    const syncs = isShort && files?.syncsAtOnce ? files : null
    const copy = new SurvivorCopy(engine, this.#place.placement, this.#store, step.partitionId)
    await turns.inTurn(() => copy.create(attempt, copyEngines, syncs !== null))
    if (!isShort) await this.#copyAhead(copy, fewRows)
    await turns.inTurn(async () => {
      const isSwapped = await this.#locked(async (lockedTable, holds) => {
        const action = await this.#eraseLocked(lockedTable, { copy, holds, step, syncs })
        await this.#record.done([step], action)
        return lockedTable.isPromised
      })
      if (!isSwapped) await copy.drop(attempt)
    })
  }

  /** Copies survivors while commits continue. The step has not begun: nothing of it is recorded. */
  async #copyAhead(copy: SurvivorCopy, fewRows: number): Promise<void> {
    const { activeHolds, attempt, failpoint, linkRule, sliceMsOf, turns } = this.#deps
    const options = { fewRows, linkRule, sliceMsOf, inTurn: turns.inTurn }
    for (let pass = 1; pass <= passesMax; pass++) {
      const table = this.#table(await activeHolds(this.#place.tenantId), attempt, false)
      const isLittleLeft = await copy.copyAhead(table, options)
      await failpoint('survivors copied ahead')
      if (isLittleLeft) return
    }
  }

  async #eraseLocked(
    table: ErasedTable,
    { copy, holds, step, syncs }: LockedStep<Step>,
  ): Promise<ErasureAction> {
    const { failpoint, fences } = this.#deps
    const { placement } = this.#place
    const { partitionId } = step
    const counts = await copy.counts(table)
    const { own, selected, total } = counts
    if (selected === 0) return 'none'
    await this.#record.begin(new Map([[step, selected]]), holds)
    await failpoint('before partition step')
    if (selected === total) {
      await table.drop([partitionId])
      await failpoint('partition dropped')
      return 'dropped'
    }
    await copy.complete(table, counts)
    await syncs?.sync()
    await failpoint('survivors copied')
    await this.#record.promise(step, selected, holds)
    await fences.publish([{ kind: 'closed', placement, isClosed: true }])
    await table.promiseSwap()
    await failpoint('swap promised')
    await table.makeSwap(partitionId)
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
        return work(this.#table(holds, lock, true), holds)
      },
      attempt.signal,
    )
  }

  /** The table, with what the holds leave of the selection. */
  #table(holds: readonly ActiveHold[], lock: PlacementLock, isLocked: boolean): ErasedTable {
    const target = { ...this.#selection, held: holds }
    return new ErasedTable(this.#deps, this.#place, { target, store: this.#store, lock, isLocked })
  }
}

/** Returns the steps whose partitions have only selected rows, with the number of these. */
function wholeIn<Step extends PartitionStep>(
  counts: ReadonlyMap<string, SurvivalCounts>,
  steps: readonly Step[],
): Map<Step, number> {
  const rowsOf = new Map<Step, number>()
  for (const step of steps) {
    const { selected, total } = counts.get(step.partitionId) ?? noRows
    if (selected > 0 && selected === total) rowsOf.set(step, selected)
  }
  return rowsOf
}
