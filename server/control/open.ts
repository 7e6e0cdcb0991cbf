// Opens the control plane for use: with the schema of this program, and not where it was moved away. The
// operator gets the reason why a database can't be used; clients of the service never get it.

import { AppError } from '../core/app-error.ts'
import { type ControlAddress, nameOfControl, openControlAt } from './control-address.ts'
import type { Control } from './database.ts'
import { migrate } from './migrate.ts'
import { assertUsable } from './move-mark.ts'

/**
 * Creates the database of SQLite where there is none. Throws a sentence with the address and what the
 * database or the system says where it can't be reached, and ControlPlaneError where it can't be used; it is
 * closed then.
 */
export async function openUsable(address: ControlAddress): Promise<Control> {
  const control = openControlAt(address)
  try {
    await migrate(control)
    await assertUsable(control)
    return control
  } catch (error) {
    await control.destroy()
    throw explained(error, address)
  }
}

function explained(error: unknown, address: ControlAddress): unknown {
  if (!(error instanceof AppError) || error.code !== 'storage_unavailable') return error
  const { cause } = error
  if (address.kind === 'sqlite' || !(cause instanceof Error)) return error
  // The system's error for a name with several addresses has a code and no message.
  const reason = cause.message || ('code' in cause ? String(cause.code) : cause.name)
  const sentence = `${nameOfControl(address)} can't be used as the control plane: ${reason}. See LETHE_CONTROL_URL, and LETHE_CONTROL_PASSWORD_FILE where it asks for a password.`
  return new AppError('storage_unavailable', {
    sentence: `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`,
    cause: error,
  })
}
