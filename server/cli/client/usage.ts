// `lethe usage`: what the token's organisation stores and has sent.

import type { z } from 'zod'
import { usageOperations } from '../../../contract/operations/usage.ts'
import type { IngestUsage, StorageUsage } from '../../../contract/organisation/usage.ts'
import { type JsonOption, print, printJson } from '../print.ts'
import { ApiClient } from './api.ts'
import type { Connection } from './settings.ts'
import { bytesText, countText, table } from './text.ts'

type Storage = z.output<typeof StorageUsage>

/** Characters of a name in a column; a name may be as long as any attribute. */
const nameMax = 60

interface UsageOptions extends JsonOption {
  readonly byService?: boolean
}

export async function showUsage(connection: Connection, options: UsageOptions): Promise<void> {
  const api = new ApiClient(connection)
  if (options.byService) return showServices(api, options)
  const storage = await api.call(usageOperations.storage)
  const ingest = await api.call(usageOperations.ingest)
  if (options.json) return printJson({ storage: storage.json, ingest: ingest.json })
  for (const line of [...storageLines(storage.value), '', ...ingestLines(ingest.value)]) print(line)
}

async function showServices(api: ApiClient, options: JsonOption): Promise<void> {
  const { json, value } = await api.call(usageOperations.byService)
  if (options.json) return printJson(json)
  const { others, services, tenant_id } = value
  const cells = [
    ['service', 'rows', 'bytes', 'bytes of the last 7 days', 'newest'],
    ...services.map((one) => [
      one.service.slice(0, nameMax),
      countText(one.rows),
      bytesText(one.bytes),
      bytesText(one.last_7_days.bytes),
      one.newest,
    ]),
    ...(others.services > 0
      ? [[`${others.services} others`, countText(others.rows), bytesText(others.bytes), '', '']]
      : []),
  ]
  print(`${tenant_id} stores`)
  for (const line of table(cells, [1, 2, 3])) print(`  ${line}`)
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
