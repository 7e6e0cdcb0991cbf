// Side tables of erasures: copies of the rows that survive in a partition. A copy is first an unfinished one, whose rows
// are all still in place. Once it is whole and counted it is renamed, and a table under the second name is a promise to
// swap it in. REPLACE PARTITION is not atomic when the process is killed: the old parts and the survivors may then both be
// there. So a promised swap is made again before anything else is written to its placement, which ends right however
// often it is interrupted (docs/decisions/0002).

import type { TelemetryEngine } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { ErasureError } from './erasure-error.ts'

/** An unfinished copy is named by this, its placement and its table. */
const copyPrefix = 'erasure_copy_'

/** A whole copy, which is to be swapped in, is named by this, its placement and its table. */
const swapPrefix = 'erasure_swap_'

export function copyName(placement: number, table: string): string {
  return `${copyPrefix}${placement}_${table}`
}

export function swapName(placement: number, table: string): string {
  return `${swapPrefix}${placement}_${table}`
}

/**
 * Ends what an interrupted erasure began: makes promised swaps, and drops unfinished copies (their rows are all still in
 * place). A placement whose swap can't be made is closed, and stays so until a later call makes it; the others are open
 * afterwards. With `only` this is about that one placement: attempts may be at work in the others. Returns the placements
 * that are still closed, with what went wrong.
 */
export async function recoverSideTables(
  { engine, gate }: { readonly engine: TelemetryEngine; readonly gate: TelemetryGate },
  only?: number,
): Promise<ReadonlyMap<number, unknown>> {
  const failed = new Map<number, unknown>()
  const isMeant = (placement: number) => only === undefined || placement === only
  for (const { name } of await sideTables(engine)) {
    if (!isMeant(placementIn(name))) continue
    if (name.startsWith(copyPrefix)) await engine.command(raw(`DROP TABLE IF EXISTS ${name} SYNC`))
    else await recoverSwap(engine, gate, name, failed)
  }
  for (const placement of gate.closedPlacements())
    if (isMeant(placement) && !failed.has(placement)) gate.openPlacement(placement)
  return failed
}

async function recoverSwap(
  engine: TelemetryEngine,
  gate: TelemetryGate,
  name: string,
  failed: Map<number, unknown>,
): Promise<void> {
  const placement = partsOf(name).placement
  gate.closePlacement(placement)
  try {
    await gate.exclusively([placement], () => makeSwap(engine, name))
  } catch (error) {
    failed.set(placement, error)
  }
}

/** Makes a promised swap, also one that was made before; then drops its side table. */
export async function makeSwap(engine: TelemetryEngine, name: string): Promise<void> {
  const { table } = partsOf(name)
  const partitionId = await swapPartition(engine, name)
  await engine.command(raw(`ALTER TABLE ${table} REPLACE PARTITION ID '${partitionId}' FROM ${name}`))
  await engine.command(raw(`DROP TABLE ${name} SYNC`))
}

/** The placement that a side table of either kind belongs to. */
function placementIn(name: string): number {
  const [, placement] = /^erasure_(?:copy|swap)_(\d+)_/.exec(name) ?? []
  if (placement === undefined) throw new ErasureError(`Not a side table: ${name}`)
  return Number(placement)
}

/** What the name of a promised swap says; the placement can be closed even where the table can't be read. */
function partsOf(name: string): { placement: number; table: string } {
  const [, placement, table] = /^erasure_swap_(\d+)_(\w+)$/.exec(name) ?? []
  if (placement === undefined || table === undefined) throw new ErasureError(`Not a promised swap: ${name}`)
  return { placement: Number(placement), table }
}

/** The one partition whose survivors wait to be swapped in. */
async function swapPartition(engine: TelemetryEngine, name: string): Promise<string> {
  const ids = await engine.select<{ id: string }>(raw(`SELECT DISTINCT _partition_id AS id FROM ${name}`))
  const [only] = ids
  if (only === undefined || ids.length > 1) {
    throw new ErasureError(`The survivors in ${name} lie in ${ids.length} partitions instead of one`)
  }
  return only.id
}

/** Tables of erasures that haven't ended, of both kinds. */
export function sideTables(engine: TelemetryEngine): Promise<{ name: string }[]> {
  return engine.select<{ name: string }>(sql`
    SELECT name FROM system.tables WHERE database = currentDatabase()
      AND (startsWith(name, ${copyPrefix}) OR startsWith(name, ${swapPrefix}))`)
}
