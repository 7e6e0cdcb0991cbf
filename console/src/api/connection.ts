// The state that all pages need: whether the service can be reached, and whether the session has ended. Both
// come from the responses to the HTTP requests of the pages.

import { useSyncExternalStore } from 'react'
import { Refusal, Unreachable } from './client.ts'

interface Connection {
  readonly isOffline: boolean
  /** True from a 401 until the next sign-in, so that a form on the page is not lost. */
  readonly isSignedOut: boolean
  /** The organisation was removed in this page: nobody can sign in to it again. */
  readonly isRemoved: boolean
}

let current: Connection = { isOffline: false, isSignedOut: false, isRemoved: false }
const listeners = new Set<() => void>()

function set(change: Partial<Connection>): void {
  current = { ...current, ...change }
  for (const listener of listeners) listener()
}

/** Updates the state after a failed HTTP request. */
export function noteFailure(error: unknown): void {
  if (error instanceof Unreachable && !current.isOffline) set({ isOffline: true })
  if (error instanceof Refusal) {
    if (current.isOffline) set({ isOffline: false })
    if (error.status === 401 && !current.isSignedOut && !current.isRemoved) set({ isSignedOut: true })
  }
}

/** Updates the state after a successful HTTP request. */
export function noteSuccess(): void {
  if (current.isOffline) set({ isOffline: false })
}

export function noteSignIn(): void {
  set({ isSignedOut: false })
}

/** From here on a 401 is expected and does not show the sign-in. */
export function noteRemoval(): void {
  set({ isRemoved: true })
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => current,
  )
}
