// Limits on what an organisation may send, set by the operator. A running service notices a change, at once
// on SQLite and within seconds on PostgreSQL, and needs no restart. The counts of the current day may be a
// little behind, because the service writes them with a delay.

import { type Config, ConfigError } from '../config.ts'
import type { Control } from '../control/database.ts'
import { systemClock } from '../core/clock.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { QuotaStore } from '../usage/quota-store.ts'
import { operator, requireOrganisation, withControl } from './open-control.ts'
import { type JsonOption, print, printJson } from './print.ts'

interface QuotaOptions extends JsonOption {
  readonly org: string
  readonly rowsPerSecond?: string
  readonly bytesPerDay?: string
}

export async function setQuota(config: Config, options: QuotaOptions): Promise<void> {
  const rowsPerSecond = limitOf('--rows-per-second', options.rowsPerSecond)
  const bytesPerDay = limitOf('--bytes-per-day', options.bytesPerDay)
  if (rowsPerSecond === undefined && bytesPerDay === undefined) {
    throw new ConfigError('Name the limit to change: --rows-per-second, --bytes-per-day, or both.')
  }
  const change = {
    ...(rowsPerSecond !== undefined && { rowsPerSecond }),
    ...(bytesPerDay !== undefined && { bytesPerDay }),
  }
  await withQuotas(config, options.org, async (store) => {
    await store.setLimits(options.org, change, operator)
    const limits = await limitsOf(store, options.org)
    if (options.json) printJson({ tenant_id: options.org, limits })
    else printLimits(limits)
  })
}

export async function showQuota(config: Config, { json, org }: JsonOption & { org: string }): Promise<void> {
  await withQuotas(config, org, async (store) => {
    const limits = await limitsOf(store, org)
    const days = (await store.daysOf(org)).map((day) => ({
      day: day.day,
      bytes: day.bytes,
      rows_accepted: day.rowsAccepted,
      rows_rejected: day.rowsRejected,
      requests_refused: day.requestsRefused,
    }))
    if (json) return printJson({ tenant_id: org, limits, days })
    printLimits(limits)
    for (const { bytes, day, requests_refused, rows_accepted, rows_rejected } of days) {
      print(
        `${day}  ${bytes} bytes  ${rows_accepted} rows accepted  ${rows_rejected} rejected  ${requests_refused} requests refused`,
      )
    }
  })
}

/** Undefined does not change the limit, null means the default of the settings, 0 means no limit. */
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

/** Null where there is no limit. */
interface Limits {
  readonly rows_per_second: number | null
  readonly bytes_per_day: number | null
}

async function limitsOf(store: QuotaStore, tenantId: string): Promise<Limits> {
  const { rowsPerSecond, bytesPerDay } = await store.limitsOf(tenantId)
  return { rows_per_second: rowsPerSecond, bytes_per_day: bytesPerDay }
}

function printLimits({ bytes_per_day, rows_per_second }: Limits): void {
  print(`rows per second: ${rows_per_second ?? 'unlimited'}`)
  print(`bytes per day:   ${bytes_per_day ?? 'unlimited'}`)
}

async function withQuotas(
  config: Config,
  tenantId: string,
  work: (store: QuotaStore) => Promise<void>,
): Promise<void> {
  await withControl(config, async (control: Control) => {
    await requireOrganisation(new TenancyStore(control, systemClock), tenantId)
    await work(new QuotaStore(control, systemClock, config.quota))
  })
}
