// GET /usage/storage: what the caller's own organisation stores.

import type { FastifyInstance } from 'fastify'
import { StorageUsage } from '../../contract/usage.ts'
import type { Caller } from '../core/caller.ts'
import { route } from '../http/route.ts'
import type { TelemetryEngine } from '../telemetry/telemetry.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { readStorage } from './storage.ts'

export function addUsageRoutes(
  http: FastifyInstance,
  engine: TelemetryEngine,
  readerOf: (caller: Caller) => TenantReader,
): void {
  route(http, {
    method: 'GET',
    url: '/usage/storage',
    access: ['owner', 'admin', 'member', 'viewer'],
    tag: 'Usage',
    summary: 'Rows and bytes your organisation stores, per signal and UTC day',
    result: StorageUsage,
    handle: async ({ caller }) => ({ body: await readStorage(engine, readerOf(caller)) }),
  })
}
