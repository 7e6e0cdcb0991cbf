// What the pages about stored and erased telemetry read. Keys of the cache begin with the resource, so that
// an erasure can mark all that it changes as outdated.

import { queryOptions } from '@tanstack/react-query'
import { type DeletionRequest, finalDeletionStatuses } from '../../../contract/deletion.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { retentionOperations } from '../../../contract/operations/governance.ts'
import { usageOperations } from '../../../contract/operations/usage.ts'
import { call } from './client.ts'

export const storageQuery = queryOptions({
  queryKey: ['storage'],
  queryFn: ({ signal }) => call(usageOperations.storage, { signal }),
})

export const retentionQuery = queryOptions({
  queryKey: ['retention'],
  queryFn: ({ signal }) => call(retentionOperations.get, { signal }),
})

/** The newest requests, as many as a page of the list has. */
const requestsShown = '200'

export function erasuresQuery(status?: DeletionRequest['status']) {
  return queryOptions({
    queryKey: ['erasures', status ?? 'all'],
    queryFn: ({ signal }) =>
      call(deletionOperations.list, { query: { limit: requestsShown, status }, signal }),
  })
}

function isFinal({ status }: Pick<DeletionRequest, 'status'>): boolean {
  return finalDeletionStatuses.some((final) => final === status)
}

/** How often a request is read: it works for seconds, and waits for people for days. */
const [workingMs, waitingMs] = [700, 5_000]

export function erasureQuery(requestId: string) {
  return queryOptions({
    queryKey: ['erasures', 'one', requestId],
    queryFn: ({ signal }) => call(deletionOperations.get, { params: { request_id: requestId }, signal }),
    refetchInterval: ({ state: { data } }) => {
      if (data === undefined || isFinal(data)) return false
      return data.status === 'running' || data.status === 'verifying' ? workingMs : waitingMs
    },
  })
}
