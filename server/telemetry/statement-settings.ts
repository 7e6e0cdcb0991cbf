// The settings of the engine's statements, and the text of an insert: limits of time and memory, how many
// threads a statement has and with which priority, and what must never be written to a file.

import { computingNice, loopNice, yieldingNice } from '../core/process/thread-priority.ts'
import type { Turn } from '../core/turns/fair-pool.ts'
import type { CommitTurn, StatementLimits } from './engine.ts'
import type { ColumnSpec } from './schema/tables.ts'
import { halfOfCores } from './sessions/numbers.ts'
import { raw, type Sql } from './sql.ts'

/**
 * Settings of every session. The text of a statement contains its bound values, so it may be long. Statements
 * are not compiled to machine code: each has constants of its own, so it is seldom used again. Projections,
 * of which there are none, and statistics of columns would be looked up for each part of a table that a
 * statement names, which takes longer than reading a window (docs/decisions/0011). A thread that reads a file
 * waits for it itself: with separate threads for waiting, every piece is requested from them where a file
 * system can't report whether it has the piece in memory, as tmpfs can't, and nearly a third of the time to
 * read a window goes into that (docs/decisions/0019).
 */
export const sessionSettings = `SET ${[
  'max_query_size = 67108864',
  'compile_expressions = 0',
  'compile_aggregate_expressions = 0',
  'compile_sort_description = 0',
  'optimize_use_projections = 0',
  'use_statistics = 0',
  // Once planned, a statement releases the parts that it doesn't read. A shared snapshot keeps all of them
  // until its end, so every erasure waits for every long read of a table (docs/decisions/0065).
  'enable_shared_storage_snapshot_in_query = 0',
  "local_filesystem_read_method = 'pread'",
  // What a statement reads stays in memory: in a file it would remain after an erasure and after a crash.
  'max_bytes_ratio_before_external_group_by = 0',
  'max_bytes_ratio_before_external_sort = 0',
  'max_bytes_ratio_before_external_join = 0',
  // A statement that needs the first few of many long rows in an order keeps only those few in memory, and
  // not 1 GB of others.
  'max_bytes_before_remerge_sort = 33554432',
  niceOf(computingNice()),
].join(', ')}`

const yielding = niceOf(yieldingNice())

/**
 * The engine sets the nice value of a statement's threads itself, where the process has CAP_SYS_NICE, and
 * afterwards to 0, so every statement needs a value. Without the right, threads keep the one that they were
 * given when the engine was opened.
 */
function niceOf(value: number): string {
  return `os_threads_nice_value_query = ${value}`
}

/**
 * Settings of a statement under the lock of a placement, whose commits wait for it: the priority of the event
 * loop, and one thread, so that the loop has another core (docs/decisions/0062).
 */
export const underLock = `${niceOf(loopNice())}, max_threads = 1`

/** The turn of reads of the service itself. */
export const ownTurn: Turn = { isAlone: true, isCrowding: false }

/** A client may send two years of history in one body; the limit is meant against bad schemas. */
const insertSettings = 'max_partitions_per_insert_block = 0'

/**
 * A statement that inserts the rows of a file in the engine's row format.
 *
 * Columns with a dictionary are declared as plain strings: building the dictionary from a block of strings
 * costs the engine half as much as building it row by row.
 */
export function insertText(
  table: string,
  columns: readonly ColumnSpec[],
  path: string,
  turn: CommitTurn | undefined,
): string {
  const names = columns.map(({ name }) => `\`${name}\``).join(', ')
  const structure = columns
    .map(({ name, type }) => `\`${name}\` ${type.replaceAll('LowCardinality(String)', 'String')}`)
    .join(', ')
  const settings = turn?.isYielding ? `${insertSettings}, ${yielding}` : insertSettings
  const source = `file(${literal(path)}, 'RowBinary', ${literal(structure)})`
  return `INSERT INTO ${table} (${names}) SELECT * FROM ${source} SETTINGS ${settings}`
}

/**
 * Testing conditions one after another, and the cache of their results, would both make the engine read whole
 * granules.
 */
const inSmallBlocks = [
  'max_threads = 1',
  'enable_multiple_prewhere_read_steps = 0',
  'use_query_condition_cache = 0',
]

/** The limits of a reading statement, as its settings. */
export function bounds(
  { maxSeconds, maxMemoryBytes, maxResultBytes, maxBlockRows, isUnderLock = false }: StatementLimits,
  { isAlone, isCrowding }: Turn,
): Sql {
  const threads = isAlone ? [] : [`max_threads = ${halfOfCores}`]
  return raw(
    [
      `max_execution_time = ${maxSeconds}`,
      `max_memory_usage = ${maxMemoryBytes}`,
      ...(isCrowding ? [yielding] : []),
      ...(isUnderLock ? [underLock] : []),
      ...(maxResultBytes === undefined ? [] : [`max_result_bytes = ${maxResultBytes}`]),
      ...(maxBlockRows === undefined ? threads : [`max_block_size = ${maxBlockRows}`, ...inSmallBlocks]),
    ].join(', '),
  )
}

const literal = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`
