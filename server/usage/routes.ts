// What the caller's own organisation stores and what it sends: GET /usage/storage and GET /usage/ingest.

import type { FastifyInstance } from 'fastify'
import { IngestUsage, StorageUsage } from '../../contract/usage.ts'
import type { Caller } from '../core/caller.ts'
import { route } from '../http/route.ts'
import type { WeighRows } from '../telemetry/row-weights.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import type { IngestQuotas } from './ingest-quotas.ts'
import type { DayCounts } from './quota-store.ts'
import { readStorage } from './storage.ts'

const readers = ['owner', 'admin', 'member', 'viewer'] as const

export function addUsageRoutes(
  http: FastifyInstance,
  readerOf: (caller: Caller) => TenantReader,
  weighRows: WeighRows,
): void {
  route(http, {
    method: 'GET',
    url: '/usage/storage',
    access: readers,
    tag: 'Usage',
    summary: 'Rows and bytes your organisation stores, per signal and UTC day',
    result: StorageUsage,
    handle: async ({ caller }) => ({ body: await readStorage(readerOf(caller), weighRows) }),
  })
}

export function addIngestUsageRoute(http: FastifyInstance, quotas: IngestQuotas): void {
  route(http, {
    method: 'GET',
    url: '/usage/ingest',
    access: readers,
    tag: 'Usage',
    summary: 'What your organisation has sent per UTC day, and what it may send',
    result: IngestUsage,
    handle: async ({ caller }) => {
      const { limits, burstRows, today, days, resetsAt } = await quotas.usageOf(caller.tenantId)
      return {
        body: {
          tenant_id: caller.tenantId,
          limits: {
            rows_per_second: limits.rowsPerSecond,
            burst_rows: burstRows,
            bytes_per_day: limits.bytesPerDay,
          },
          today: toWire(today),
          resets_at: resetsAt,
          days: days.map(toWire),
        },
      }
    },
  })
}

function toWire({ day, ...counts }: DayCounts & { readonly day: string }) {
  return {
    day,
    bytes: counts.bytes,
    rows_accepted: counts.rowsAccepted,
    rows_rejected: counts.rowsRejected,
    requests_refused: counts.requestsRefused,
  }
}
