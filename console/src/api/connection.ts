// The state that all pages need: whether the service can be reached, and whether the session has ended. Both
// come from the responses to the HTTP requests of the pages. Where a response says that the browser is signed
// in as somebody else, the page starts over.

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
    if (error.code === 'other_token') startOver()
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

/**
 * Loads the page again, so that it keeps nothing of the token that it shows and repeats no act. Not where the
 * organisation was removed: the page shows its checkpoints once, and the service refuses everything else.
 */
export function startOver(): void {
  if (!current.isRemoved) window.location.reload()
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
