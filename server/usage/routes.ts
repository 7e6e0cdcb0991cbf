// What the caller's organisation stores and sends: GET /usage/storage and GET /usage/ingest.

import type { FastifyInstance } from 'fastify'
import { usageOperations } from '../../contract/operations/usage.ts'
import type { Caller } from '../core/caller.ts'
import { serve } from '../http/serve.ts'
import type { WeighRows } from '../telemetry/row-weights.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import type { IngestQuotas } from './ingest-quotas.ts'
import type { DayCounts } from './quota-store.ts'
import { readStorage } from './storage.ts'

export function addUsageRoutes(
  http: FastifyInstance,
  readerOf: (caller: Caller) => TenantReader,
  weighRows: WeighRows,
): void {
  serve(http, usageOperations.storage, {
    handle: async ({ caller }) => ({ body: await readStorage(readerOf(caller), weighRows) }),
  })
}

export function addIngestUsageRoute(http: FastifyInstance, quotas: IngestQuotas): void {
  serve(http, usageOperations.ingest, {
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
