// Waits until the files of erased rows are gone: the engine replaces and drops parts at once and removes
// their files a moment later. A request counts as removed only when no file of such a part is found, and no
// file of the control plane has what was derived from the rows.

import { LeftControlPlane } from '../../control/erased-flush.ts'
import type { Clock } from '../../core/clock.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { LocalEngineFiles } from '../../telemetry/engine-files.ts'
import { tablesOf } from '../../telemetry/schema/tables.ts'
import { Bound, raw, type Sql, sql } from '../../telemetry/sql.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { ErasureError, ErasureStopped } from './erasure-error.ts'
import { clearingAction } from './side-tables.ts'

interface RemovalDeps {
  readonly engine: TelemetryEngine
  /** Null where the engine is on another machine: then only its own list of parts shows it. */
  readonly files: LocalEngineFiles | null
  readonly clock: Clock
}

/** Retries of a flush, and how long they may take together, milliseconds; then the attempt ends. */
const flushAttempts = 100
const flushRetriesMs = 10_000
const flushPauseMs = 100

interface FlushDeps {
  readonly clock: Clock
  readonly flushControl: (tenantId: string | null) => Promise<void>
}

/**
 * Removes the bytes of deleted control-plane rows of an organisation, of all where it is null, from the disk.
 * Another process that reads the control plane, such as a backup, can block this for a moment, and the
 * database can be gone for a moment.
 */
export async function flushUntilEmpty(
  { clock, flushControl }: FlushDeps,
  tenantId: string | null,
  signal: AbortSignal,
): Promise<void> {
  const startMs = clock.steady().ms
  for (let attempt = 1; ; attempt++) {
    try {
      return await flushControl(tenantId)
    } catch (error) {
      if (error instanceof LeftControlPlane) throw error
      if (attempt === flushAttempts || clock.steady().ms - startMs >= flushRetriesMs) throw error
      if (signal.aborted) throw new ErasureStopped(signal)
      await clock.sleep(flushPauseMs, signal)
    }
  }
}

/**
 * How often, and with which pause, the disk is checked before the attempt counts as failed. Usually a second
 * is enough.
 */
const removalPolls = 1200
const removalPollMs = 50

/** Where parts with selected rows may be. */
export interface Removal {
  /** The tables of the selection. */
  readonly tables: readonly string[]
  /**
   * The tables from which an attempt may have removed selected rows. In the others a part that was replaced
   * has no row that is not also in the table, where a count finds it.
   */
  readonly changed: ReadonlySet<string>
}

/** Returns the tables of a selection, of which these stores were changed; all where it is not known. */
export function removalOf({ signals }: DeletionSelection, stores?: readonly string[]): Removal {
  const names = tablesOf(signals).map(({ name }) => name)
  return {
    tables: names,
    changed: new Set(stores === undefined ? names : names.filter((name) => stores.includes(name))),
  }
}

/**
 * Waits until neither the engine nor the control plane has files of what was erased; for both at a time,
 * because each of them waits mostly for others. Throws when both have ended, so that nothing goes on without
 * the lock of the caller.
 */
export async function waitUntilErased(
  deps: FlushDeps & RemovalDeps,
  place: TenantPlace,
  removal: Removal,
  signal: AbortSignal,
): Promise<void> {
  const ends = await Promise.allSettled([
    flushUntilEmpty(deps, place.tenantId, signal),
    waitUntilRemoved(deps, place, removal, signal),
  ])
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/**
 * Waits until no part of this placement that was replaced or dropped by now is listed by the engine or found
 * in a folder, and then syncs the folders: otherwise a power loss could bring removed parts back, and the
 * engine would read them. In a changed table it checks all such parts, not only those of known steps, so that
 * it also waits for parts from an attempt before a crash. Detached parts are waited for in every table.
 */
export async function waitUntilRemoved(
  deps: RemovalDeps,
  place: TenantPlace,
  removal: Removal,
  signal: AbortSignal,
): Promise<void> {
  await waitUntilGone(deps, place, removal, signal)
  await deps.files?.syncFolders([...removal.changed])
}

async function waitUntilGone(
  deps: RemovalDeps,
  place: TenantPlace,
  { changed, tables }: Removal,
  signal: AbortSignal,
): Promise<void> {
  let waiting = withParts(await deadParts(deps, { tables, changed }, place))
  for (let poll = 0; waiting.size > 0; poll++) {
    if (poll === removalPolls) throw new ErasureError('Removed parts are still on disk')
    if (signal.aborted) throw new ErasureStopped(signal)
    await deps.clock.sleep(removalPollMs, signal)
    if (isClearedAt(poll)) {
      const cleared = [...changed.intersection(waiting)]
      await Promise.all(
        cleared.map((table) => deps.engine.command(raw(`ALTER TABLE ${table} ${clearingAction}`))),
      )
    }
    const dead = await deadParts(deps, { tables: [...waiting.keys()], changed }, place)
    const left = [...waiting].map(
      ([table, parts]) => [table, parts.intersection(dead.get(table) ?? none)] as const,
    )
    waiting = withParts(new Map(left))
  }
}

/**
 * At the first polls, then at twice the number each time: a statement may read a part for seconds, and the
 * merges of the table must go on meanwhile.
 */
const isClearedAt = (poll: number) => (poll & (poll - 1)) === 0

const mergePrefix = 'tmp_merge_'

/** Names of parts by table. */
type PartsByTable = ReadonlyMap<string, ReadonlySet<string>>

const none: ReadonlySet<string> = new Set()

function withParts(parts: PartsByTable): PartsByTable {
  return new Map([...parts].filter(([, names]) => names.size > 0))
}

/**
 * Returns parts of the placement that are no longer part of their table but still listed or on disk; of
 * tables that were not changed, only the detached ones. A merge in progress writes into a folder of its own,
 * for minutes if it is large. While all its sources are still part of the table, that folder has nothing that
 * a count of the table would not find, so it is left out. Merges are read only where there is such a folder.
 */
async function deadParts(
  { engine, files }: RemovalDeps,
  { changed, tables }: Pick<Removal, 'changed' | 'tables'>,
  place: TenantPlace,
): Promise<PartsByTable> {
  const read = tables.filter((table) => changed.has(table))
  const inTables = sql`database = currentDatabase() AND table IN ${new Bound('Array(String)', read)}`
  const ask = async <Row>(statement: Sql) => (read.length === 0 ? [] : engine.select<Row>(statement))
  const ownPart = new RegExp(`^(?:[a-z_-]+_)?${place.placement}-\\d{8}_`)
  const onDisk = await files?.partNames(tables)
  const isMerging = read.some((table) =>
    onDisk?.get(table)?.parts.some((name) => name.startsWith(mergePrefix) && ownPart.test(name)),
  )
  // Read before the parts: sources that are part of the table afterwards were so when the merge was listed.
  const merges = isMerging
    ? await ask<{ of: string; result: string; sources: string[] }>(
        sql`SELECT table AS of, result_part_name AS result, source_part_names AS sources FROM system.merges WHERE ${inTables}`,
      )
    : []
  const listed = await ask<{ of: string; name: string; active: number }>(
    sql`SELECT table AS of, name, active FROM system.parts WHERE ${inTables} AND startsWith(partition_id, ${`${place.placement}-`})`,
  )
  return new Map(
    tables.map((table) => {
      const { detached = [], parts = [] } = onDisk?.get(table) ?? {}
      const ownDetached = detached.filter((entry) => ownPart.test(entry))
      if (!changed.has(table)) return [table, new Set(ownDetached)]
      const ofTable = listed.filter(({ of }) => of === table)
      const active = new Set(ofTable.filter((part) => part.active === 1).map(({ name }) => name))
      const harmless = merges
        .filter(({ of, sources }) => of === table && sources.every((name) => active.has(name)))
        .map(({ result }) => `${mergePrefix}${result}`)
      const own = parts.filter((entry) => ownPart.test(entry))
      const dead = new Set([...ofTable.map(({ name }) => name), ...own]).difference(active)
      return [table, new Set([...dead.difference(new Set(harmless)), ...ownDetached])]
    }),
  )
}
