// Lists that are read page by page, newest first: each page has the cursor of the next one.

import { infiniteQueryOptions, type QueryKey } from '@tanstack/react-query'

export interface CursorPage {
  readonly next_cursor: string | null
}

interface Asked {
  /** Undefined for the first page. */
  readonly cursor: string | undefined
  readonly signal: AbortSignal
}

export function pagedQuery<P extends CursorPage>(queryKey: QueryKey, read: (asked: Asked) => Promise<P>) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => read({ cursor: pageParam, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }: P) => next_cursor ?? undefined,
  })
}
