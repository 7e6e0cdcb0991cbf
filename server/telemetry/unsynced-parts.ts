// Removes broken parts of commits that were never acknowledged, after a power loss. Where a commit is synced
// as a whole, its parts have their names before their bytes are on the disk, so the parts of the last moment
// may be broken. They were not acknowledged, and they are in the way of queries, of merges, and of erasures,
// which wait until nothing of their selection is left. A part is removed only if an insert made it (never a
// merge) after the last known sync, and only if it is broken. Every other broken part is damage: it stays
// where the engine put it, and is named.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { TelemetryEngine } from './engine.ts'
import { instant, raw, sql } from './sql.ts'

/** Names of parts, each with its table. */
interface BrokenParts {
  /** Removed parts of commits that were not acknowledged. */
  readonly removed: readonly string[]
  /** Parts whose rows may have been acknowledged; they stay among the detached parts of their table. */
  readonly damaged: readonly string[]
}

interface Part {
  readonly table: string
  readonly name: string
  readonly path: string
}

/**
 * The name of a part that an insert writes: one block of rows, never merged and never changed. A detached
 * part has the reason before it.
 */
const insertedPart = /^(?:broken-on-start_)?\d+-\d{8}_(\d+)_\1_0(?:_try\d+)?$/

/**
 * Call it before anything else reads or writes. `syncedNs` is from `syncedUntilNs`; where it is null nothing
 * is removed.
 */
export async function removeUnsyncedParts(
  engine: TelemetryEngine,
  syncedNs: bigint | null,
): Promise<BrokenParts> {
  const detached = await engine.select<Part>(
    sql`SELECT table, name, path FROM system.detached_parts
      WHERE database = currentDatabase() AND startsWith(table, 'otel_') AND reason = 'broken-on-start' ORDER BY table, name`,
  )
  const removed: string[] = []
  const damaged: string[] = []
  for (const part of detached) {
    const isUnsynced = await isInsertedAfter(part, syncedNs)
    if (isUnsynced) await engine.command(dropDetached(part))
    const told = isUnsynced ? removed : damaged
    told.push(`${part.table} ${part.name}`)
  }
  if (syncedNs !== null) removed.push(...(await removeUnreadable(engine, syncedNs)))
  return { removed, damaged }
}

/**
 * A file system that does not keep the order of bytes and names can leave files of the right size with wrong
 * bytes.
 */
async function removeUnreadable(engine: TelemetryEngine, syncedNs: bigint): Promise<string[]> {
  const young = await engine.select<Part>(
    sql`SELECT table, name, path FROM system.parts
      WHERE database = currentDatabase() AND startsWith(table, 'otel_') AND active AND level = 0
        AND modification_time >= ${instant(syncedNs - oneSecondNs)} ORDER BY table, name`,
  )
  const removed: string[] = []
  for (const part of young) {
    if (!(await isInsertedAfter(part, syncedNs)) || !(await isUnreadable(engine, part))) continue
    await engine.command(raw(`ALTER TABLE ${part.table} DROP PART '${part.name}'`))
    removed.push(`${part.table} ${part.name}`)
  }
  return removed
}

/** The engine knows the time of a part in whole seconds. */
const oneSecondNs = 1_000_000_000n

async function isUnreadable(engine: TelemetryEngine, { table, name }: Part): Promise<boolean> {
  const checks = await engine.select<{ is_passed: number }>(raw(`CHECK TABLE ${table} PART '${name}'`))
  return checks.some(({ is_passed }) => is_passed === 0)
}

const dropDetached = ({ table, name }: Part) =>
  raw(`ALTER TABLE ${table} DROP DETACHED PART '${name}' SETTINGS allow_drop_detached = 1`)

/**
 * Compares the youngest file of a part: a part whose files are all older than a sync was complete when the
 * sync began.
 */
async function isInsertedAfter({ path, name }: Part, syncedNs: bigint | null): Promise<boolean> {
  if (syncedNs === null || !insertedPart.test(name)) return false
  const files = (await readdir(path)).map((file) => join(path, file))
  for (const entry of files.length > 0 ? files : [path]) {
    if ((await stat(entry, { bigint: true })).mtimeNs > syncedNs) return true
  }
  return false
}
