// Waits until what was erased has left the disk: the engine replaces and drops parts at once, and removes their files a
// moment later. Nothing is called removed before no file of such a part is found.

import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import { type Signal, tablesOf } from '../../telemetry/schema/tables.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { ErasureError, ErasureStopped } from './erasure-error.ts'

interface RemovalDeps {
  readonly engine: TelemetryEngine
  readonly clock: Clock
}

/** Ten seconds of trying to empty the control plane's log before the attempt counts as failed. */
const flushAttempts = 100
const flushPauseMs = 100

/**
 * Makes removed control-plane rows leave the disk. Another process reading the control plane, such as a backup, can hold its
 * log up for a moment.
 */
export async function flushUntilEmpty(
  { clock, flushControl }: { readonly clock: Clock; readonly flushControl: () => Promise<void> },
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await flushControl()
    } catch (error) {
      if (attempt === flushAttempts) throw error
      if (signal.aborted) throw new ErasureStopped(signal)
      await clock.sleep(flushPauseMs, signal)
    }
  }
}

/** How often, and how far apart, the disk is looked at before the attempt counts as failed. Usually a second is enough. */
const removalPolls = 1200
const removalPollMs = 50

/**
 * Waits until no part that the engine had replaced or dropped in this placement by now is listed by it or found
 * in a folder, and until the disk knows: a folder that is only in memory as it should be would have its removed
 * parts again after power loss, and the engine would read them. It looks at all of them rather than at those of known steps, so that parts which an attempt before
 * a crash left behind are waited for too.
 */
export async function waitUntilRemoved(
  deps: RemovalDeps,
  place: TenantPlace,
  signals: readonly Signal[],
  signal: AbortSignal,
): Promise<void> {
  const stores: PartStore[] = []
  for (const { name } of tablesOf(signals)) {
    stores.push({ table: name, folder: await deps.engine.tableFolder(name) })
  }
  await waitUntilGone(deps, place, stores, signal)
  for (const { folder } of stores) if (folder !== null) await flushFolder(folder)
}

async function flushFolder(path: string): Promise<void> {
  for (const folder of [path, join(path, 'detached')]) {
    const handle = await open(folder, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  }
}

async function waitUntilGone(
  deps: RemovalDeps,
  place: TenantPlace,
  stores: readonly PartStore[],
  signal: AbortSignal,
): Promise<void> {
  let waiting: { readonly store: PartStore; readonly parts: ReadonlySet<string> }[] = []
  for (const store of stores) waiting.push({ store, parts: await deadParts(deps.engine, store, place) })
  waiting = waiting.filter(({ parts }) => parts.size > 0)
  for (const { store } of waiting) await clearNow(deps.engine, store.table)
  for (let poll = 0; waiting.length > 0; poll++) {
    if (poll === removalPolls) throw new ErasureError('Removed parts are still on disk')
    const left = []
    for (const { store, parts } of waiting) {
      const dead = await deadParts(deps.engine, store, place)
      left.push({ store, parts: parts.intersection(dead) })
    }
    waiting = left.filter(({ parts }) => parts.size > 0)
    if (waiting.length === 0) return
    if (signal.aborted) throw new ErasureStopped(signal)
    await deps.clock.sleep(removalPollMs, signal)
  }
}

/**
 * The engine clears replaced parts in rounds a second apart; dropping a partition, also one that isn't there, has it
 * clear all it can at once.
 */
async function clearNow(engine: TelemetryEngine, table: string): Promise<void> {
  await engine.command(raw(`ALTER TABLE ${table} DROP PARTITION ID '0-00000000'`))
}

/** Where the parts of a table are; no folder where the engine is elsewhere. */
interface PartStore {
  readonly table: string
  readonly folder: string | null
}

/**
 * Parts of a placement that are no longer part of the table but still listed or on disk. A merge under way writes into a
 * folder of its own, for minutes where much is merged; while all it merges is still part of the table, that folder
 * holds nothing that a count of the table would not find, and nobody waits for it.
 */
async function deadParts(
  engine: TelemetryEngine,
  { table, folder }: PartStore,
  place: TenantPlace,
): Promise<Set<string>> {
  // First: what is still part of the table afterwards was so while the merge was seen.
  const merges = await engine.select<{ result: string; sources: string[] }>(
    sql`SELECT result_part_name AS result, source_part_names AS sources FROM system.merges
      WHERE database = currentDatabase() AND table = ${table}`,
  )
  const onDisk =
    folder === null ? [] : [...(await readdir(folder)), ...(await readdir(join(folder, 'detached')))]
  const listed = await engine.select<{ name: string; active: number }>(
    sql`SELECT name, active FROM system.parts WHERE database = currentDatabase() AND table = ${table} AND startsWith(partition_id, ${`${place.placement}-`})`,
  )
  const active = new Set(listed.filter((part) => part.active === 1).map(({ name }) => name))
  const ownPart = new RegExp(`^(?:[a-z_-]+_)?${place.placement}-\\d{8}_`)
  const dead = [...listed.map(({ name }) => name), ...onDisk.filter((entry) => ownPart.test(entry))]
  const harmless = new Set(
    merges
      .filter(({ sources }) => sources.every((name) => active.has(name)))
      .map(({ result }) => `tmp_merge_${result}`),
  )
  return new Set(dead.filter((name) => !active.has(name) && !harmless.has(name)))
}
