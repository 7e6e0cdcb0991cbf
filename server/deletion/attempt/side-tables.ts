// Side tables of erasures: copies of the rows that stay in a partition. A copy is unfinished at first; its
// rows are all still in their table. Once it is complete and counted it is renamed, and a table with the
// second name promises a swap. REPLACE PARTITION is not atomic when the process is killed: the old parts and
// the copy may then both be present. So a promised swap is made again before anything else is written to its
// placement. Repeating it gives the right result however often it is interrupted (docs/decisions/0002).

import type { TelemetryEngine } from '../../telemetry/engine.ts'
import type { LocalEngineFiles } from '../../telemetry/engine-files.ts'
import type { Fences } from '../../telemetry/fences.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { ErasureLocks } from '../../telemetry/placement-locks.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { ErasureError } from './erasure-error.ts'
import { blocksOf, hasReplaced } from './pieces.ts'

/** Start of the name of an unfinished copy; its placement and table follow. */
const copyPrefix = 'erasure_copy_'

/** Start of the name of a complete copy, which promises a swap; its placement and table follow. */
const swapPrefix = 'erasure_swap_'

export function copyName(placement: number, table: string): string {
  return `${copyPrefix}${placement}_${table}`
}

export function swapName(placement: number, table: string): string {
  return `${swapPrefix}${placement}_${table}`
}

/** The engine, and its files where it is on this machine. */
export interface SwapDeps {
  readonly engine: TelemetryEngine
  /** Null where the engine is on another machine, which syncs by itself. */
  readonly files: Pick<LocalEngineFiles, 'partNames' | 'sync'> | null
}

interface SideTableDeps extends SwapDeps {
  readonly gate: TelemetryGate
  readonly fences: Fences
  readonly locks: ErasureLocks
}

/**
 * Makes promised swaps and drops unfinished copies (their rows are all still in place). A placement whose
 * swap fails is closed until a later call makes it; the others are open afterwards. `only` restricts it to
 * one placement, because attempts may be running in the others. Returns the placements that are still closed,
 * with their errors.
 */
export async function recoverSideTables(
  deps: SideTableDeps,
  only?: number,
): Promise<ReadonlyMap<number, unknown>> {
  const { engine, fences, gate } = deps
  const failed = new Map<number, unknown>()
  const isMeant = (placement: number) => only === undefined || placement === only
  for (const { name } of await sideTables(engine)) {
    if (!isMeant(placementIn(name))) continue
    if (name.startsWith(copyPrefix)) await engine.command(raw(`DROP TABLE IF EXISTS ${name} SYNC`))
    else await recoverSwap(deps, name, failed)
  }
  const open = gate.closedPlacements().filter((placement) => isMeant(placement) && !failed.has(placement))
  for (const placement of open) await fences.publish([{ kind: 'closed', placement, isClosed: false }])
  return failed
}

async function recoverSwap(deps: SideTableDeps, name: string, failed: Map<number, unknown>): Promise<void> {
  const { engine, fences, locks } = deps
  const placement = partsOf(name).placement
  await fences.publish([{ kind: 'closed', placement, isClosed: true }])
  try {
    await locks.writes.exclusively([placement], async () =>
      makeSwap(deps, name, await swapPartition(engine, name)),
    )
  } catch (error) {
    failed.set(placement, error)
  }
}

/**
 * A part of an ALTER that removes at once all replaced parts that no statement uses at that moment; the
 * engine itself removes them in rounds, one to two seconds apart. It drops a partition that does not exist.
 * It also ends the merges of the table that are running, so it is used only where an erasure has replaced
 * something.
 */
export const clearingAction = "DROP PARTITION ID '0-00000000'"

/**
 * Makes the promised swap of a partition, also one that was made before, and drops its side table. The swap
 * ends running merges anyway, so the replaced parts are removed before others begin.
 *
 * Where a statement still reads replaced parts they stay, and only an empty part, whose name covers theirs,
 * keeps the engine from loading them at its next start. The engine does not sync that part where commits are
 * synced as a whole. So it is synced before the promise is dropped: otherwise a power loss could bring erased
 * rows back, and leave survivors twice.
 */
export async function makeSwap(
  { engine, files }: SwapDeps,
  name: string,
  partitionId: string,
): Promise<void> {
  const { table } = partsOf(name)
  const swap = `REPLACE PARTITION ID '${partitionId}' FROM ${name}`
  await engine.command(raw(`ALTER TABLE ${table} ${swap}, ${clearingAction}`))
  const stored = (await files?.partNames([table]))?.get(table)?.parts ?? []
  const own = stored.filter((part) => part.startsWith(`${partitionId}_`))
  if (hasReplaced(own.map(blocksOf))) await files?.sync()
  await engine.command(raw(`DROP TABLE ${name} SYNC`))
}

/** Returns the placement of a side table of either kind. */
function placementIn(name: string): number {
  const [, placement] = /^erasure_(?:copy|swap)_(\d+)_/.exec(name) ?? []
  if (placement === undefined) throw new ErasureError(`Not a side table: ${name}`)
  return Number(placement)
}

/**
 * Parses the name of a promised swap. The placement is in the name, so that it can be closed even where the
 * table can't be read.
 */
function partsOf(name: string): { placement: number; table: string } {
  const [, placement, table] = /^erasure_swap_(\d+)_(\w+)$/.exec(name) ?? []
  if (placement === undefined || table === undefined) throw new ErasureError(`Not a promised swap: ${name}`)
  return { placement: Number(placement), table }
}

/** Returns the partition that the copy is for. */
async function swapPartition(engine: TelemetryEngine, name: string): Promise<string> {
  const ids = await engine.select<{ id: string }>(raw(`SELECT DISTINCT _partition_id AS id FROM ${name}`))
  const [only] = ids
  if (only === undefined || ids.length > 1) {
    throw new ErasureError(`The survivors in ${name} lie in ${ids.length} partitions instead of one`)
  }
  return only.id
}

/** Returns the side tables that exist, of both kinds. */
export function sideTables(engine: TelemetryEngine): Promise<{ name: string }[]> {
  return engine.select<{ name: string }>(sql`
    SELECT name FROM system.tables WHERE database = currentDatabase()
      AND (startsWith(name, ${copyPrefix}) OR startsWith(name, ${swapPrefix}))`)
}
