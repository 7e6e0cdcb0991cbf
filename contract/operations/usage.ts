// What an organisation stores and what it sends.

import { ingestUsageExample, storageUsageExample } from '../examples/organisation.ts'
import { operation } from '../operation.ts'
import { readers } from '../tenancy.ts'
import { IngestUsage, StorageUsage } from '../usage.ts'

export const usageOperations = {
  storage: operation({
    id: 'getUsageStorage',
    method: 'GET',
    path: '/usage/storage',
    access: readers,
    tag: 'Usage',
    summary: 'Rows and bytes your organisation stores, per signal and UTC day',
    results: { 200: { body: StorageUsage, example: storageUsageExample } },
    refusals: ['query_too_expensive'],
  }),
  ingest: operation({
    id: 'getUsageIngest',
    method: 'GET',
    path: '/usage/ingest',
    access: readers,
    tag: 'Usage',
    summary: 'What your organisation has sent per UTC day, and what it may send',
    results: { 200: { body: IngestUsage, example: ingestUsageExample } },
  }),
} as const
