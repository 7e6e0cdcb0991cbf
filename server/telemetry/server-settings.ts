// Settings of the engine for the whole process. They can only be given in a file.

import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const mergeThreads = Math.max(1, Math.floor(availableParallelism() / 2))
const mergesAtOnce = 4

/**
 * Parts whose files are deleted at once. Deleting a file waits for the disk where the file system discards
 * its blocks at once (`discard`, ext4(5)): one after another, the parts of one partition took up to 1.4 s on
 * a busy machine, while commits waited (docs/decisions/0062).
 */
const partsDeletedAtOnce = 8

/**
 * Writes the file and returns its path. The caches are limited, so that an idle process stays small as data
 * grows. The guards against dropping large partitions by mistake are off: an erasure must not be refused
 * because it is large.
 */
export function writeServerSettings(options: {
  readonly folder: string
  readonly maxMemoryBytes: number
  readonly backupFolder?: string
}): string {
  const mebibyte = 1024 * 1024
  const settings = {
    max_server_memory_usage: options.maxMemoryBytes,
    max_partition_size_to_drop: 0,
    max_table_size_to_drop: 0,
    mark_cache_size: 32 * mebibyte,
    primary_index_cache_size: 32 * mebibyte,
    index_mark_cache_size: 16 * mebibyte,
    uncompressed_cache_size: 0,
    query_condition_cache_size: 4 * mebibyte,
    compiled_expression_cache_size: 8 * mebibyte,
    max_thread_pool_free_size: 8,
    // A backup competes with ingest and queries for the cores, whether there are two or many.
    backup_threads: 2,
    restore_threads: 2,
    // Merges may use half of the cores, in turns, so that a long merge does not delay the short ones. With
    // all cores they would slow down senders for work that costs less a little later, when there are more
    // rows to merge.
    background_pool_size: mergeThreads,
    background_merges_mutations_concurrency_ratio: Math.max(1, Math.ceil(mergesAtOnce / mergeThreads)),
    max_parts_cleaning_thread_pool_size: partsDeletedAtOnce,
  }
  const lines = Object.entries(settings).map(([name, value]) => `  <${name}>${value}</${name}>`)
  // By default parts are deleted side by side only where there are more than a hundred.
  const ofTables = '<concurrent_part_removal_threshold>1</concurrent_part_removal_threshold>'
  lines.push(`  <merge_tree>${ofTables}</merge_tree>`)
  if (options.backupFolder !== undefined) {
    lines.push(`  <backups><allowed_path>${xmlText(options.backupFolder)}</allowed_path></backups>`)
  }
  const path = join(options.folder, 'engine-settings.xml')
  writeFileSync(path, `<clickhouse>\n${lines.join('\n')}\n</clickhouse>\n`)
  return path
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
