// What the operator allows an organisation to send. A running service reads the limits with each request, so a change
// needs no restart; what is shown of a running service's day lags behind it by what waits to be written.

import { type Config, ConfigError } from '../config.ts'
import type { Control } from '../control/database.ts'
import { systemClock } from '../core/clock.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { QuotaStore } from '../usage/quota-store.ts'
import { withControl } from './open-control.ts'
import { print } from './print.ts'

const actor = 'operator:command-line'

export interface QuotaOptions {
  readonly org: string
  readonly rowsPerSecond?: string
  readonly bytesPerDay?: string
}

export async function setQuota(config: Config, options: QuotaOptions): Promise<void> {
  const rowsPerSecond = limitOf('--rows-per-second', options.rowsPerSecond)
  const bytesPerDay = limitOf('--bytes-per-day', options.bytesPerDay)
  if (rowsPerSecond === undefined && bytesPerDay === undefined) {
    throw new ConfigError('Say what to change: --rows-per-second, --bytes-per-day, or both.')
  }
  const change = {
    ...(rowsPerSecond !== undefined && { rowsPerSecond }),
    ...(bytesPerDay !== undefined && { bytesPerDay }),
  }
  await withQuotas(config, options.org, async (store) => {
    await store.setLimits(options.org, change, actor, systemClock)
    await printLimits(store, options.org)
  })
}

export async function showQuota(config: Config, { org }: { org: string }): Promise<void> {
  await withQuotas(config, org, async (store) => {
    await printLimits(store, org)
    for (const day of await store.daysOf(org)) {
      const { bytes, rowsAccepted, rowsRejected, requestsRefused } = day
      print(
        `${day.day}  ${bytes} bytes  ${rowsAccepted} rows accepted  ${rowsRejected} rejected  ${requestsRefused} requests refused`,
      )
    }
  })
}

/** Undefined leaves a limit as it is, null is the default of the settings, 0 is no limit. */
function limitOf(option: string, value: string | undefined): number | null | undefined {
  if (value === undefined) return undefined
  if (value === 'default') return null
  if (value === 'unlimited') return 0
  const number = Number(value)
  if (/^\d+$/.test(value) && number > 0 && Number.isSafeInteger(number)) return number
  throw new ConfigError(
    `${option} must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}, unlimited, or default, not "${value}".`,
  )
}

async function printLimits(store: QuotaStore, tenantId: string): Promise<void> {
  const { rowsPerSecond, bytesPerDay } = await store.limitsOf(tenantId)
  print(`rows per second: ${rowsPerSecond ?? 'unlimited'}`)
  print(`bytes per day:   ${bytesPerDay ?? 'unlimited'}`)
}

async function withQuotas(
  config: Config,
  tenantId: string,
  work: (store: QuotaStore) => Promise<void>,
): Promise<void> {
  await withControl(config, async (control: Control) => {
    if ((await new TenancyStore(control, systemClock).findOrganisation(tenantId)) === null) {
      throw new ConfigError(`There is no organisation ${tenantId} in this data folder; see LETHE_DATA_DIR.`)
    }
    await work(new QuotaStore(control, config.quota))
  })
}
