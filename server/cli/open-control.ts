// How operator commands open the control-plane database: beside a running service, never
// making a folder by mistake.

import { existsSync } from 'node:fs'
import { type Config, ConfigError } from '../config.ts'
import type { Control } from '../control/database.ts'
import { migrate } from '../control/migrate.ts'
import { openSqlite } from '../control/sqlite/sqlite.ts'
import { operatorActor } from '../core/actor.ts'
import type { TenancyStore } from '../tenancy/store.ts'

/** Whom the audit log names for what is done by the operator's commands. */
export const operator = operatorActor('command-line')

/** Throws ConfigError where this data folder has no such organisation. */
export async function requireOrganisation(tenancy: TenancyStore, tenantId: string): Promise<void> {
  if ((await tenancy.findOrganisation(tenantId)) !== null) return
  throw new ConfigError(`There is no organisation ${tenantId} in this data folder; see LETHE_DATA_DIR.`)
}

/** Whether this folder has been started with; opening it otherwise would make it. */
export function hasControl(config: Config): boolean {
  return existsSync(config.controlPath)
}

/** Opens, brings to the newest schema, works and closes. Throws ConfigError where there is no database. */
export async function withControl<T>(config: Config, work: (control: Control) => Promise<T>): Promise<T> {
  if (!hasControl(config)) {
    throw new ConfigError(
      `${config.controlPath} does not exist; start the service once, or see LETHE_DATA_DIR.`,
    )
  }
  return openAndWork(config, work)
}

/** As {@link withControl}, and makes the database where there is none. */
export async function openAndWork<T>(config: Config, work: (control: Control) => Promise<T>): Promise<T> {
  const control = openSqlite(config.controlPath)
  try {
    await migrate(control)
    return await work(control)
  } finally {
    await control.destroy()
  }
}
