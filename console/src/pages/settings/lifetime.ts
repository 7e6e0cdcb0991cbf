// How long a new token works, as a person chooses it: a usual number of days, another one, or as long as the
// token that makes it.

import type { AccessToken } from '../../../../contract/organisation/tenancy.ts'
import { msPerDay } from '../../ui/instants.ts'

export interface Lifetime {
  /** Days as text; `inherited` for the expiry of the maker, `other` for what `typed` says. */
  readonly choice: string
  readonly typed: string
}

export const inherited = 'inherited'
export const otherDays = 'other'

export const usualDays = ['7', '30', '90', '365'] as const

const daysMax = 3650

/** Undefined for the expiry of the maker; null where the text is no number of days. */
export function lifetimeDays({ choice, typed }: Lifetime): number | undefined | null {
  if (choice === inherited) return undefined
  const days = Number(choice === otherDays ? typed : choice)
  return Number.isInteger(days) && days >= 1 && days <= daysMax ? days : null
}

/** The lifetime of a replacement: that of the token since its creation. */
export function lifetimeOf({ created_at, expires_at }: AccessToken): Lifetime {
  if (expires_at === null) return { choice: inherited, typed: '' }
  const days = String(Math.max(1, Math.round((Date.parse(expires_at) - Date.parse(created_at)) / msPerDay)))
  return usualDays.some((usual) => usual === days)
    ? { choice: days, typed: '' }
    : { choice: otherDays, typed: days }
}
