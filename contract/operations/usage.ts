// What an organisation stores, what it sends, and what was refused.

import { ingestUsageExample } from '../examples/organisation.ts'
import {
  erasedTimeExample,
  refusalListExample,
  serviceStorageExample,
  storageUsageExample,
} from '../examples/usage.ts'
import { operation } from '../operation.ts'
import { RefusalList } from '../organisation/refusals.ts'
import {
  ErasedTimePage,
  ErasedTimeQuery,
  IngestUsage,
  ServiceStorage,
  ServiceStorageQuery,
  StorageUsage,
} from '../organisation/usage.ts'
import { administrators, readers } from '../role.ts'

/** Each reads a column of every row of the organisation twice. A person changes the range a few times. */
const byServiceRate = { perMinute: 30, burst: 30 }

export const usageOperations = {
  storage: operation({
    id: 'getUsageStorage',
    method: 'GET',
    path: '/usage/storage',
    access: readers,
    tag: 'Usage',
    summary: 'Rows and bytes your organisation stores, per signal and UTC day',
    results: { 200: { body: StorageUsage, example: storageUsageExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  byService: operation({
    id: 'getUsageStorageServices',
    method: 'GET',
    path: '/usage/storage/services',
    access: readers,
    tag: 'Usage',
    summary: 'Rows and bytes your organisation stores, per service, signal and UTC day',
    query: ServiceStorageQuery,
    results: { 200: { body: ServiceStorage, example: serviceStorageExample } },
    refusals: ['query_too_expensive', 'erasing'],
    rate: byServiceRate,
  }),
  erased: operation({
    id: 'getUsageStorageErased',
    method: 'GET',
    path: '/usage/storage/erased',
    access: readers,
    tag: 'Usage',
    summary: 'Time that deletions hide or have erased, newest deletion first',
    description:
      'What charts show as erased. A range that a later and wider erasure covers is listed with that one only.',
    query: ErasedTimeQuery,
    results: {
      200: { body: ErasedTimePage, example: { items: [erasedTimeExample], next_cursor: null } },
    },
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
  refusals: operation({
    id: 'getUsageRefusals',
    method: 'GET',
    path: '/usage/refusals',
    access: administrators,
    tag: 'Usage',
    summary: 'Requests of your tokens that were refused, by reason, operation and token',
    results: { 200: { body: RefusalList, example: refusalListExample } },
  }),
} as const
