// Opens the control-plane database for operator commands: beside a running service, and never creating a
// folder by mistake.

import { type Config, ConfigError } from '../config.ts'
import { mayHaveControl, nameOfControl } from '../control/control-address.ts'
import type { Control } from '../control/database.ts'
import { openUsable } from '../control/open.ts'
import { operatorActor } from '../core/actor.ts'
import type { TenancyStore } from '../tenancy/store.ts'

/** The actor in the audit log for operator commands. */
export const operator = operatorActor('command-line')

/** Throws ConfigError where the data folder has no such organisation. */
export async function requireOrganisation(tenancy: TenancyStore, tenantId: string): Promise<void> {
  if ((await tenancy.findOrganisation(tenantId)) !== null) return
  throw new ConfigError(`There is no organisation ${tenantId} in this data folder; see LETHE_DATA_DIR.`)
}

/** Whether there may be a control-plane database. Opening it otherwise would create one. */
export function hasControl(config: Config): boolean {
  return mayHaveControl(config.control)
}

/**
 * Opens the database, applies migrations, runs `work` and closes. Throws ConfigError where there is no
 * database.
 */
export async function withControl<T>(config: Config, work: (control: Control) => Promise<T>): Promise<T> {
  if (!hasControl(config)) {
    throw new ConfigError(
      `${nameOfControl(config.control)} does not exist; start the service once, or see LETHE_DATA_DIR.`,
    )
  }
  return openAndWork(config, work)
}

/** As {@link withControl}, but creates the database where there is none. */
export async function openAndWork<T>(config: Config, work: (control: Control) => Promise<T>): Promise<T> {
  const control = await openUsable(config.control)
  try {
    return await work(control)
  } finally {
    await control.destroy()
  }
}
