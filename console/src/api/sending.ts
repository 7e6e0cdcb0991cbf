// What the page Send follows: what has arrived today, and what was refused. Both are cheap to read, so they
// are read every few seconds while the page is open.

import { queryOptions } from '@tanstack/react-query'
import { usageOperations } from '../../../contract/operations/usage.ts'
import { every } from './again.ts'
import { call } from './client.ts'

const followMs = 2_000

export const arrivedQuery = queryOptions({
  queryKey: ['arrived'],
  queryFn: ({ signal }) => call(usageOperations.ingest, { signal }),
  refetchInterval: every(followMs),
})

export const refusalsQuery = queryOptions({
  queryKey: ['refusals'],
  queryFn: ({ signal }) => call(usageOperations.refusals, { signal }),
  refetchInterval: every(followMs),
})
