// What the pages of evidence read: a chain in pages, newest entry first, with the filters of the address.

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

type Query = Readonly<Record<string, string | undefined>>

interface Page {
  readonly next: string | null
}

/** Entries of a page: a screen and a half. */
const pageEntries = '50'

export function chainQuery<P extends Page>(chain: string, query: Query, read: (query: Query) => Promise<P>) {
  return infiniteQueryOptions({
    queryKey: ['chain', chain, query],
    queryFn: ({ pageParam }) => read({ ...query, limit: pageEntries, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }: P) => next ?? undefined,
  })
}

/** The newest entry alone: its number is the length of the chain. */
export function newestQuery<P extends Page>(chain: string, read: (query: Query) => Promise<P>) {
  return queryOptions({
    queryKey: ['chain', chain, 'newest'],
    queryFn: () => read({ limit: '1' }),
  })
}
