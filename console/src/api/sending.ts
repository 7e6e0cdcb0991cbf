// The queries of the page Send: today's rows, and refusals. Both are cheap, so they are read every few
// seconds while the page is open.

import { queryOptions } from '@tanstack/react-query'
import { usageOperations } from '../../../contract/operations/usage.ts'
import { call } from './client.ts'
import { readEvery } from './read-interval.ts'

const followMs = 2_000

export const arrivedQuery = queryOptions({
  queryKey: ['arrived'],
  queryFn: ({ signal }) => call(usageOperations.ingest, { signal }),
  refetchInterval: readEvery(followMs),
})

export const refusalsQuery = queryOptions({
  queryKey: ['refusals'],
  queryFn: ({ signal }) => call(usageOperations.refusals, { signal }),
  refetchInterval: readEvery(followMs),
})
