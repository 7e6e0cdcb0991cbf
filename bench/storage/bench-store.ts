// A throwaway telemetry store for the storage benches: one folder, tables whose layout (partition key,
// settings) is the thing being compared, and the few observations that both programs make: CPU of the whole
// process (the engine's threads live in it), parts, and what is really in the table's folder. A part counts
// as removed only when the folder has no entry of it, whatever the engine's system tables say.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Session } from 'chdb'
import { type TableName, tables } from '../../server/telemetry/schema/tables.ts'

interface TableLayout {
  /** Table name inside the bench database. */
  readonly as: string
  readonly like: TableName
  /** Partition key expression. `TIME` stands for the table's time column. */
  readonly partitionBy: string
  /** Text after SETTINGS; the engine's defaults where empty. */
  readonly settings: string
}

/** Settings under which old parts leave the disk within about two seconds; see docs/decisions/0002. */
export const promptRemoval =
  'old_parts_lifetime = 0, cleanup_delay_period = 1, cleanup_delay_period_random_add = 0, max_cleanup_delay_period = 1, ' +
  'merge_tree_clear_old_parts_interval_seconds = 1, merge_tree_clear_old_temporary_directories_interval_seconds = 1, ' +
  'finished_mutations_to_keep = 1'

/**
 * The CREATE TABLE text of a layout, with every column that is stored in the real table and
 * not filled by the engine.
 */
export function tableText(layout: TableLayout): string {
  const spec = tables.find((table) => table.name === layout.like)
  if (spec === undefined) throw new Error(`No table ${layout.like}.`)
  const columns = spec.columns
    .filter(({ fallback }) => fallback === undefined)
    .map(({ name, type, codec }) => `\`${name}\` ${type}${codec === undefined ? '' : ` CODEC(${codec})`}`)
  const body = ['`Placement` UInt16', '`TenantId` LowCardinality(String)', ...columns, ...spec.indexes].join(
    ', ',
  )
  const settings = layout.settings === '' ? '' : ` SETTINGS ${layout.settings}`
  return (
    `CREATE TABLE bench.${layout.as} (${body}) ENGINE = MergeTree ` +
    `PARTITION BY ${layout.partitionBy.replaceAll('TIME', spec.timeColumn)} ` +
    `ORDER BY (TenantId, ${spec.orderBy.join(', ')})${settings}`
  )
}

export interface BenchStore {
  readonly session: Session
  /** Runs a statement for its effect. */
  run(sql: string): Promise<void>
  /** Rows of a query; 64-bit integers arrive as text. */
  rows<T>(sql: string): Promise<T[]>
  /** The folder that holds a table's parts. */
  folder(table: string): string
  /** Closes the engine and removes the folder. */
  close(): void
}

/** Opens an empty store in a new folder under `root`. */
export function openBenchStore(root: string, connectionArgs: readonly string[] = []): BenchStore {
  const path = mkdtempSync(join(root, 'store-'))
  const session = new Session(path, { connectionArgs })
  session.query('CREATE DATABASE bench')
  const rows = async <T>(sql: string): Promise<T[]> => {
    const text = (await session.queryAsync(sql, { format: 'JSONEachRow' })).text().trim()
    return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as T)
  }
  const folders = new Map<string, string>()
  const folder = (table: string): string => {
    const known = folders.get(table)
    if (known !== undefined) return known
    const sql = `SELECT data_paths[1] AS path FROM system.tables WHERE database = 'bench' AND name = '${table}'`
    const found = (JSON.parse(session.query(sql, 'JSONEachRow')) as { path: string }).path
    folders.set(table, found)
    return found
  }
  return {
    session,
    rows,
    folder,
    run: async (sql) => {
      await session.queryAsync(sql)
    },
    close: () => {
      session.close()
      rmSync(path, { recursive: true, force: true })
    },
  }
}

/** Names of the part folders of a table that are on disk, live or not. */
export function partFolders(store: BenchStore, table: string): string[] {
  return readdirSync(store.folder(table)).filter((name) => /_\d+_\d+_\d+/.test(name))
}

/** Bytes of the files in a part folder. */
export function partBytes(store: BenchStore, table: string, part: string): number {
  const folder = join(store.folder(table), part)
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

/** Milliseconds until no entry of the folder satisfies `stale`; -1 when that takes more than `limitMs`. */
export async function untilGone(
  store: BenchStore,
  table: string,
  stale: (name: string) => boolean,
  limitMs = 60_000,
): Promise<number> {
  const start = performance.now()
  while (partFolders(store, table).some(stale)) {
    if (performance.now() - start > limitMs) return -1
    await sleep(5)
  }
  return performance.now() - start
}

interface Timed<T> {
  readonly value: T
  readonly ms: number
  /** CPU of the whole process in seconds, engine threads included. */
  readonly cpuS: number
}

/** Runs `work` and reports its wall time and the process's CPU time. */
export async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const cpu = process.cpuUsage()
  const start = performance.now()
  const value = await work()
  const used = process.cpuUsage(cpu)
  return { value, ms: performance.now() - start, cpuS: (used.user + used.system) / 1e6 }
}

/** The value at fraction `q` of the sorted samples; NaN when there are none. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

/** Where and on what a result was measured. A load average above the cores spoils times, not ratios. */
export function provenance(): Record<string, string | number> {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  return {
    commit,
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    loadAverage: loadavg()[0] ?? 0,
  }
}
