// What exists after the power came back, and whether that is allowed: the rows of each body, whether every
// part of each table can be read completely, and what the engine has detached. Counts are read from the
// engine directly, so that hidden rows are counted too.

import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Product } from '../../bench/deletion/product.ts'
import { tenantOf } from '../../bench/deletion/rows.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { erasedRange, identities, rowsOf, rowsPerBodyMax, type Spread } from './bodies.ts'
import type { SenderAccount } from './senders.ts'

/** Rows by organisation, table and body. */
export type Stored = ReadonlyMap<string, { readonly rows: number; readonly different: number }>

const keyOf = (...parts: readonly (string | number)[]) => parts.join(' ')

export async function countBodies(product: Product): Promise<Stored> {
  const stored = new Map<string, { rows: number; different: number }>()
  for (const { table, id } of identities) {
    const found = await product.rows<Record<'tenant' | 'body' | 'rows' | 'different', string>>(
      `SELECT TenantId AS tenant, intDiv(id, ${rowsPerBodyMax}) AS body, count() AS rows, uniqExact(id) AS different ` +
        `FROM (SELECT TenantId, ${id} AS id FROM ${table}) GROUP BY tenant, body`,
    )
    for (const { tenant, body, rows, different } of found)
      stored.set(keyOf(tenant, table, body), { rows: Number(rows), different: Number(different) })
  }
  return stored
}

/** What was sent of one signal of one organisation. */
export interface Sent extends SenderAccount {
  readonly spread: Spread
}

interface CheckResult {
  readonly bodiesAcknowledged: number
  readonly rowsAcknowledged: number
  readonly bodiesLost: number
  readonly rowsLost: number
  readonly rowsTwice: number
  /**
   * Acknowledged during the power cut or after it: no client would have received the response, so it doesn't
   * count.
   */
  readonly bodiesAcknowledgedTooLate: number
  /** How many of them are incomplete: a service that treats the error of a sync as success. */
  readonly bodiesAcknowledgedTooLateLost: number
  readonly rowsOfOthers: number
  /** Some of the lost bodies, up to a limit. */
  readonly lost: readonly string[]
}

/** Compares what was acknowledged before the cut with what exists. */
export function judge(stored: Stored, all: readonly Sent[], cutAtMs: number): CheckResult {
  const result = { bodiesAcknowledged: 0, rowsAcknowledged: 0, bodiesLost: 0, rowsLost: 0, rowsTwice: 0 }
  const [lost, known]: [string[], Set<string>] = [[], new Set()]
  let [bodiesAcknowledgedTooLate, bodiesAcknowledgedTooLateLost, rowsOfOthers] = [0, 0, 0]
  for (const { organisation, signal, spread, sent, acknowledged } of all) {
    const own = identities.filter((identity) => identity.signal === signal)
    const keysOf = (body: number) => own.map(({ table }) => keyOf(tenantOf(organisation), table, body))
    for (let body = 0; body < sent; body++) for (const key of keysOf(body)) known.add(key)
    for (const { body, atMs } of acknowledged) {
      const missing = keysOf(body).map((key) => rowsOf(spread, body) - (stored.get(key)?.different ?? 0))
      const rowsMissing = missing.reduce((sum, rows) => sum + rows, 0)
      if (atMs > cutAtMs) {
        bodiesAcknowledgedTooLate++
        if (rowsMissing > 0) bodiesAcknowledgedTooLateLost++
        continue
      }
      result.bodiesAcknowledged++
      result.rowsAcknowledged += rowsOf(spread, body) * missing.length
      result.rowsLost += rowsMissing
      if (rowsMissing === 0) continue
      result.bodiesLost++
      if (lost.length < 3)
        lost.push(
          `${rowsMissing} of body ${body} of ${signal} of ${tenantOf(organisation)}, ` +
            `acknowledged ${Math.round(cutAtMs - atMs)} ms before the cut`,
        )
    }
  }
  for (const [key, { rows, different }] of stored) {
    result.rowsTwice += rows - different
    if (!known.has(key)) rowsOfOthers += rows
  }
  return { ...result, bodiesAcknowledgedTooLate, bodiesAcknowledgedTooLateLost, rowsOfOthers, lost }
}

export function rowsIn(stored: Stored, tenantId?: string): number {
  const own = [...stored].filter(([key]) => tenantId === undefined || key.startsWith(`${tenantId} `))
  return own.reduce((sum, [, { rows }]) => sum + rows, 0)
}

/** A hash over all columns of all rows of an organisation, per table. */
export async function fingerprint(product: Product, tenantId: string): Promise<string> {
  const prints = []
  for (const { name } of tables) {
    const [row] = await product.rows(
      `SELECT count() AS n, groupBitXor(cityHash64(* EXCEPT Placement)) AS print FROM ${name} WHERE TenantId = '${tenantId}'`,
    )
    prints.push(row)
  }
  return JSON.stringify(prints)
}

/**
 * Reads every column of every row, and compares every file of every part with its checksum; returns the
 * failures.
 */
export async function unreadable(product: Product): Promise<string[]> {
  const failures: string[] = []
  for (const { name } of tables) {
    try {
      await product.rows(`SELECT groupBitXor(cityHash64(*)) AS print FROM ${name}`)
      const parts = await product.rows<{ part_path: string; is_passed: boolean | number; message: string }>(
        `CHECK TABLE ${name} SETTINGS check_query_single_value_result = 0`,
      )
      for (const { part_path, is_passed, message } of parts)
        if (!is_passed) failures.push(`${name} ${part_path}: ${message}`)
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message.slice(0, 300) : error}`)
    }
  }
  return failures
}

/** Rows of the erased range that an organisation still has. */
export async function rowsInErasedRange(product: Product, tenantId: string): Promise<number> {
  let rows = 0
  for (const { name, timeColumn } of tables) {
    const [found] = await product.rows<{ n: string }>(
      `SELECT count() AS n FROM ${name} WHERE TenantId = '${tenantId}' ` +
        `AND toUnixTimestamp64Milli(${timeColumn}) >= ${erasedRange.startMs} ` +
        `AND toUnixTimestamp64Milli(${timeColumn}) < ${erasedRange.endMs}`,
    )
    rows += Number(found?.n)
  }
  return rows
}

export interface PartsOnDisk {
  /** Paths of folders of active parts. */
  readonly folders: readonly string[]
  /** How many of them a merge has made. */
  readonly merged: number
  /** How many of them have an empty or missing file that is never empty. */
  readonly broken: number
  /** Folders of unfinished inserts, merges and removals. */
  readonly temporary: number
  /** Parts that the engine has detached. */
  readonly detached: readonly string[]
}

const neverEmpty = ['checksums.txt', 'columns.txt', 'count.txt']

/** Reads the folders themselves; the engine may be open or not. */
export function partsOnDisk(engineFolder: string): PartsOnDisk {
  const store = join(engineFolder, 'store')
  const folders: string[] = []
  const detached: string[] = []
  let temporary = 0
  for (const start of listed(store))
    for (const id of listed(join(store, start))) {
      const table = join(store, start, id)
      detached.push(...listed(join(table, 'detached')))
      for (const name of listed(table)) {
        if (/^\d+-\d{8}_\d+_\d+_\d+(?:_\d+)?$/.test(name)) folders.push(join(table, name))
        else if (/^(?:tmp|delete_tmp)/.test(name)) temporary++
      }
    }
  const merged = folders.filter((folder) => !/_0(?:_\d+)?$/.test(folder.replace(/^.*-\d{8}_/, ''))).length
  return { folders, merged, broken: folders.filter(isBroken).length, temporary, detached }
}

/** A merge may remove a folder meanwhile. */
function listed(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function isBroken(folder: string): boolean {
  const names = listed(folder)
  const data = names.filter((name) => name === 'data.bin' || name === 'TenantId.bin')
  return [...neverEmpty, ...data].some((name) => {
    const path = join(folder, name)
    return !existsSync(path) || statSync(path).size === 0
  })
}
