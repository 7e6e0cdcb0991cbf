// For whom code works, for limits that no argument reaches: each statement of the control plane needs a
// connection, and statements are far below what knows the organisation. The owner is inherited by everything
// that the work awaits or starts. So work that several owners share must be started as the service's own:
// otherwise all of them wait behind what the first one has asked for.

import { AsyncLocalStorage } from 'node:async_hooks'

const owners = new AsyncLocalStorage<string | null>()

/**
 * Runs work for an owner. It must not start anything that goes on for others.
 *
 * @param owner an organisation, or the address of a client without a valid token
 */
export function workFor<T>(owner: string, work: () => T): T {
  return owners.run(owner, work)
}

/** Runs work that several owners may share, or nobody has asked for. */
export function workForAll<T>(work: () => T): T {
  return owners.run(null, work)
}

/** Returns for whom the caller works; null for the service itself. */
export function workOwner(): string | null {
  return owners.getStore() ?? null
}
