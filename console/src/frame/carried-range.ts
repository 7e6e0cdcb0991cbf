// Keeps one time range for all reading pages: a link to one of them contains the range that was shown last,
// also on a page without a range.

import { useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { type AddressState, useAddress } from '../ui/address.ts'
import { hasTimeRange, type PageLink } from './page-links.ts'

/** Returns the parameters for a link to this page. */
export type RangeFor = (to: PageLink['to']) => AddressState

export function useCarriedRange(): RangeFor {
  const [{ from, to }] = useAddress()
  const { pathname } = useLocation()
  const [last, setLast] = useState<AddressState>({})
  useEffect(() => {
    if (hasTimeRange(pathname)) setLast({ from, to })
  }, [pathname, from, to])
  return (page) => (hasTimeRange(page) ? last : {})
}
