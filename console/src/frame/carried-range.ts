// One time range for all reading pages: a link to one of them carries the range that was seen last, also over
// a page that has none.

import { useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { type AddressState, useAddress } from '../ui/address.ts'
import { hasTimeRange, type Place } from './places.ts'

/** Returns the part of the address that a link to this page has. */
export type RangeFor = (to: Place['to']) => AddressState

export function useCarriedRange(): RangeFor {
  const [{ from, to }] = useAddress()
  const { pathname } = useLocation()
  const [last, setLast] = useState<AddressState>({})
  useEffect(() => {
    if (hasTimeRange(pathname)) setLast({ from, to })
  }, [pathname, from, to])
  return (page) => (hasTimeRange(page) ? last : {})
}
