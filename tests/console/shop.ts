// A service with some days of telemetry of the demo's shop, for tests that read and erase it.

import { systemClock } from '../../server/core/clock.ts'
import { loadHistory } from '../../server/demo/load.ts'
import { type Service, startService } from '../scenario/service.ts'

const seed = 7

/** Days of telemetry, the last one until now. */
const shopDays = 4

export async function startShop(): Promise<Service> {
  const service = await startService()
  await loadHistory({
    endpoint: service.address,
    token: service.secretOf('acme/ingest'),
    seed,
    nowNs: systemClock.nowNs(),
    clock: systemClock,
    historyDays: shopDays,
  })
  return service
}
