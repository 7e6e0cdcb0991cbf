// The state of a page in its address, as plain texts: a relative range stays relative, and an id of digits
// stays a text.

import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'

export type AddressState = Readonly<Record<string, string | undefined>>

export function parseSearch(search: string): AddressState {
  return Object.fromEntries(new URLSearchParams(search))
}

export function stringifySearch(state: Record<string, unknown>): string {
  const present = Object.entries(state).filter(
    (pair): pair is [string, string] => typeof pair[1] === 'string',
  )
  const text = new URLSearchParams(present).toString()
  return text === '' ? '' : `?${text}`
}

type Change = (changes: AddressState, how?: { readonly isStep?: boolean }) => void

/**
 * Returns the state of the page, and a function that changes parts of it; undefined removes one. A step can
 * be undone with the back button.
 */
export function useAddress(): readonly [AddressState, Change] {
  const state: AddressState = useSearch({ strict: false })
  const navigate = useNavigate()
  const change = useCallback<Change>(
    (changes, { isStep = false } = {}) => {
      void navigate({
        to: '.',
        search: ((before: AddressState) => ({ ...before, ...changes })) as never,
        replace: !isStep,
        resetScroll: false,
      })
    },
    [navigate],
  )
  return [state, change]
}
