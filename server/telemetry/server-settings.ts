// Settings of the engine that hold for the whole process. They can only be given in a file.

import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const mergeThreads = Math.max(1, Math.floor(availableParallelism() / 2))
const mergesAtOnce = 4

/**
 * Writes the file and answers its path. The caches are capped so that an idle process stays small as data
 * grows, and the guards against dropping large partitions by a typing error are off: an erasure must not be
 * refused because there was much to erase.
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
    // A backup competes with ingest and queries for two cores as well as for many.
    backup_threads: 2,
    restore_threads: 2,
    // Merges may have half of the cores, by turns, so that a long one doesn't hold up the short ones.
    // With all of them they take from senders what they would do at less cost a little later, when there
    // is more to put together.
    background_pool_size: mergeThreads,
    background_merges_mutations_concurrency_ratio: Math.max(1, Math.ceil(mergesAtOnce / mergeThreads)),
  }
  const lines = Object.entries(settings).map(([name, value]) => `  <${name}>${value}</${name}>`)
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
