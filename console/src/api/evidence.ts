// The queries of the pages of evidence: a chain in pages, newest entry first, with the filters of the
// address.

import { queryOptions } from '@tanstack/react-query'
import { type CursorPage, pagedQuery } from './cursor-pages.ts'

type Query = Readonly<Record<string, string | undefined>>

/** Entries of a page: a screen and a half. */
const pageEntries = '50'

export function chainQuery<P extends CursorPage>(
  chain: string,
  query: Query,
  read: (query: Query) => Promise<P>,
) {
  return pagedQuery(['chain', chain, query], ({ cursor }) => read({ ...query, limit: pageEntries, cursor }))
}

/** The newest entry alone: its number is the length of the chain. */
export function newestQuery<P extends CursorPage>(chain: string, read: (query: Query) => Promise<P>) {
  return queryOptions({
    queryKey: ['chain', chain, 'newest'],
    queryFn: () => read({ limit: '1' }),
  })
}
