// Examples of usage: what the shop stores by signal and by service, which time is erased, and what was
// refused on the morning on which its collector was set up.

import type { z } from 'zod'
import { meaningOf, type RefusalList } from '../organisation/refusals.ts'
import type { ErasedTime, ServiceStorage, StorageUsage } from '../organisation/usage.ts'
import { collectorTokenId, requestId, tenantId } from './acme.ts'

const weekly = (rows: number, bytes: number) => ({
  last_7_days: { rows, bytes },
  previous_7_days: { rows: Math.round(rows * 0.96), bytes: Math.round(bytes * 0.96) },
})

const keptFor = (days: number, erasesBefore: string, retentionId: string) => ({
  days,
  erases_before: erasesBefore,
  last_erasure: {
    request_id: retentionId,
    status: 'completed' as const,
    range_end: erasesBefore,
    created_at: '2026-11-21T00:00:00.412Z',
    finished_at: '2026-11-21T00:00:03.020Z',
  },
})

export const storageUsageExample: z.output<typeof StorageUsage> = {
  tenant_id: tenantId,
  rows: 48_213_077,
  bytes: 1_204_881_396,
  oldest: '2025-10-17T00:00:00Z',
  newest: '2026-11-21T09:29:58.402Z',
  ...weekly(3_801_200, 92_010_440),
  signals: [
    {
      signal: 'metrics',
      rows: 31_900_442,
      bytes: 302_110_870,
      oldest: '2025-10-17T00:00:00Z',
      newest: '2026-11-21T09:29:50Z',
      ...weekly(560_100, 5_100_320),
      retention: keptFor(400, '2025-10-17T00:00:00Z', 'del_01m7xq6fcc3a3ydrqtv5m2cgk1'),
      days: [{ day: '2026-11-21', rows: 34_210, bytes: 311_904 }],
    },
    {
      signal: 'logs',
      rows: 11_020_113,
      bytes: 655_301_216,
      oldest: '2026-10-22T00:00:00.004Z',
      newest: '2026-11-21T09:29:58.402Z',
      ...weekly(2_201_000, 62_900_110),
      retention: keptFor(30, '2026-10-22T00:00:00Z', 'del_01m7xq6fcc3a3ydrqtv5m2cgk2'),
      days: [{ day: '2026-11-21', rows: 121_640, bytes: 3_480_117 }],
    },
    {
      signal: 'traces',
      rows: 5_292_522,
      bytes: 247_469_310,
      oldest: '2026-11-07T00:00:00.120Z',
      newest: '2026-11-21T09:29:57.730Z',
      ...weekly(1_040_100, 24_010_010),
      retention: { days: null, erases_before: null, last_erasure: null },
      days: [{ day: '2026-11-21', rows: 60_613, bytes: 1_830_765 }],
    },
  ],
}

export const serviceStorageExample: z.output<typeof ServiceStorage> = {
  tenant_id: tenantId,
  range_start: '2026-11-20T00:00:00Z',
  range_end: '2026-11-22T00:00:00Z',
  services: [
    {
      service: 'checkout',
      rows: 6_120_330,
      bytes: 410_220_118,
      newest: '2026-11-21T09:29:58.402Z',
      ...weekly(1_300_410, 36_110_204),
      signals: [
        {
          signal: 'logs',
          rows: 6_120_330,
          bytes: 410_220_118,
          oldest: '2026-10-22T00:00:00.004Z',
          newest: '2026-11-21T09:29:58.402Z',
          ...weekly(1_300_410, 36_110_204),
          days: [
            { day: '2026-11-20', rows: 190_220, bytes: 5_310_200 },
            { day: '2026-11-21', rows: 70_110, bytes: 2_001_330 },
          ],
        },
      ],
    },
  ],
  others: { services: 7, rows: 42_092_747, bytes: 794_661_278 },
}

export const erasedTimeExample: ErasedTime = {
  request_id: requestId,
  state: 'erased',
  signals: ['logs', 'traces'],
  range_start: '2026-11-21T08:00:00Z',
  range_end: '2026-11-21T09:30:00Z',
}

export const refusalListExample: RefusalList = {
  since: '2026-11-20T09:30:00.000Z',
  items: [
    {
      code: 'role_not_permitted',
      status: 403,
      meaning: meaningOf('role_not_permitted'),
      protocol: 'http',
      method: 'GET',
      path: '/telemetry/logs',
      token: { id: collectorTokenId, name: 'collector-eu' },
      count: 3,
      first_at: '2026-11-21T09:12:00.310Z',
      last_at: '2026-11-21T09:14:41.007Z',
      minutes: [
        { time: '2026-11-21T09:12:00.000Z', count: 1 },
        { time: '2026-11-21T09:14:00.000Z', count: 2 },
      ],
    },
  ],
}
