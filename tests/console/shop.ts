// A service with some days of telemetry of several services, for tests that read and erase it.

import assert from 'node:assert/strict'
import { systemClock } from '../../server/core/clock.ts'
import { signals } from '../../server/telemetry/schema/tables.ts'
import { type Service, startService } from '../scenario/service.ts'
import { minuteNs, sampleExport } from '../scenario/telemetry.ts'

/** More than a chart shows as series of their own. */
const services = ['checkout', 'gateway', 'inventory', 'payments', 'search', 'shipping', 'storefront']

/**
 * Each service has a record of each signal every ten minutes of four days, the last one now: half a day has
 * more than the tolerance of a preview.
 */
const records = 4 * 144

export async function startShop(): Promise<Service> {
  const service = await startService()
  const nowNs = systemClock.nowNs()
  const timesNs = Array.from({ length: records }, (_, i) => nowNs - BigInt(10 * i) * minuteNs)
  for (const name of services) {
    for (const signal of signals) {
      const json = sampleExport(signal, timesNs, name)
      const answer = await service.send('POST', `/v1/${signal}`, { as: 'acme/ingest', json })
      assert.deepEqual([answer.status, answer.text], [200, '{}'])
    }
  }
  return service
}
