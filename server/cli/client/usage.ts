// `lethe usage`: what the token's organisation stores and has sent.

import type { z } from 'zod'
import { usageOperations } from '../../../contract/operations/usage.ts'
import type { IngestUsage, StorageUsage } from '../../../contract/usage.ts'
import { type JsonOption, print, printJson } from '../print.ts'
import { ApiClient } from './api.ts'
import type { Connection } from './settings.ts'
import { bytesText, countText, table } from './text.ts'

type Storage = z.output<typeof StorageUsage>

export async function showUsage(connection: Connection, options: JsonOption): Promise<void> {
  const api = new ApiClient(connection)
  const storage = await api.call(usageOperations.storage)
  const ingest = await api.call(usageOperations.ingest)
  if (options.json) return printJson({ storage: storage.json, ingest: ingest.json })
  for (const line of [...storageLines(storage.value), '', ...ingestLines(ingest.value)]) print(line)
}

function storageLines({ bytes, newest, oldest, rows, signals, tenant_id }: Storage): string[] {
  const cells = [
    ['', 'rows', 'bytes', 'oldest', 'newest'],
    ...signals.map((one) => [one.signal, ...amounts(one)]),
    ['total', ...amounts({ rows, bytes, oldest, newest })],
  ]
  return [`${tenant_id} stores`, ...table(cells, [1, 2]).map((line) => `  ${line}`)]
}

type Amount = Pick<Storage, 'rows' | 'bytes' | 'oldest' | 'newest'>

function amounts({ bytes, newest, oldest, rows }: Amount): string[] {
  return [countText(rows), bytesText(bytes), oldest ?? '-', newest ?? '-']
}

function ingestLines({ days, limits, resets_at, today }: z.output<typeof IngestUsage>): string[] {
  const sent = [today, ...days.filter(({ day }) => day !== today.day)]
  const cells = [
    ['UTC day', 'bytes', 'rows accepted', 'rows rejected', 'requests refused'],
    ...sent.map((one) => [
      one.day,
      bytesText(one.bytes),
      countText(one.rows_accepted),
      countText(one.rows_rejected),
      countText(one.requests_refused),
    ]),
  ]
  const { bytes_per_day, rows_per_second } = limits
  const perDay = bytes_per_day === null ? 'any number of bytes' : bytesText(bytes_per_day)
  const perSecond = rows_per_second === null ? 'any number of rows' : `${countText(rows_per_second)} rows`
  return [
    'and has sent',
    ...table(cells, [1, 2, 3, 4]).map((line) => `  ${line}`),
    `It may send ${perSecond} a second and ${perDay} a day; the day ends at ${resets_at}.`,
  ]
}
