// What the caller's organisation stores and sends, and what was refused: everything under /usage that erases
// nothing.

import type { FastifyInstance } from 'fastify'
import { usageOperations } from '../../contract/operations/usage.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { Pace } from '../core/turns/pace.ts'
import { serve } from '../http/serve.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import type { WeighRowsFor } from '../telemetry/row-weights.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { listErasedTime } from './erased-time.ts'
import type { IngestQuotas } from './ingest-quotas.ts'
import type { DayCounts } from './quota-store.ts'
import type { RefusalCounts } from './refusals.ts'
import { type KeptFor, readStorage } from './storage.ts'
import { readServiceStorage } from './storage-by-service.ts'

interface UsageDeps {
  readonly readerOf: (caller: Caller) => TenantReader
  readonly weighRows: WeighRowsFor
  /** Returns what retention keeps of each signal. */
  readonly keptFor: (tenantId: string, nowMs: number) => Promise<KeptFor>
  readonly gate: TelemetryGate
  readonly refusals: RefusalCounts
  readonly clock: Clock
}

export function addUsageRoutes(http: FastifyInstance, deps: UsageDeps): void {
  const { clock, gate, keptFor, readerOf, refusals, weighRows } = deps
  serve(http, usageOperations.storage, {
    handle: async ({ caller }) => {
      const nowMs = clock.nowMs()
      const kept = await keptFor(caller.tenantId, nowMs)
      const reader = readerOf(caller)
      return reader.answer(() => readStorage(reader, weighRows, { keptFor: kept, nowMs }))
    },
  })
  serve(http, usageOperations.byService, {
    handle: async ({ caller, query }) => {
      const [reader, nowMs] = [readerOf(caller), clock.nowMs()]
      return reader.answer(() => readServiceStorage(reader, weighRows, query, nowMs))
    },
  })
  serve(http, usageOperations.erased, {
    handle: async ({ caller, query }) => {
      const pace = new Pace(readerOf(caller).share.turn)
      return { body: await listErasedTime(gate, caller.tenantId, query, { nowNs: clock.nowNs(), pace }) }
    },
  })
  serve(http, usageOperations.refusals, {
    handle: async ({ caller }) => ({ body: refusals.of(caller.tenantId) }),
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
