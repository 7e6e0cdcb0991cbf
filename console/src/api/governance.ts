// The queries of the pages of rules: legal holds, and the retention with its changes that wait.

import { queryOptions } from '@tanstack/react-query'
import { holdOperations, retentionOperations } from '../../../contract/operations/governance.ts'
import { call } from './client.ts'

export const retentionQuery = queryOptions({
  queryKey: ['retention'],
  queryFn: ({ signal }) => call(retentionOperations.get, { signal }),
})

/** More than may be in force at once. */
const holdsShown = '500'

export const holdsQuery = queryOptions({
  queryKey: ['holds'],
  queryFn: ({ signal }) => call(holdOperations.list, { query: { limit: holdsShown }, signal }),
})
