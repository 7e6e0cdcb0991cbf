// The queries of the pages about stored and erased telemetry. Keys of the cache begin with the resource, so
// that an erasure can mark all that it changes as outdated.

import { keepPreviousData, type QueryClient, queryOptions } from '@tanstack/react-query'
import { type DeletionRequest, finalDeletionStatuses } from '../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { usageOperations } from '../../../contract/operations/usage.ts'
import { serviceDaysMax } from '../../../contract/organisation/usage.ts'
import { dayAfter, dayStart, daysApart } from '../ui/instants.ts'
import { call } from './client.ts'
import { pagedQuery } from './cursor-pages.ts'

export const storageQuery = queryOptions({
  queryKey: ['storage'],
  queryFn: ({ signal }) => call(usageOperations.storage, { signal }),
})

/** Erased ranges of a chart: more than it can show separately. */
const rangesShown = '500'

export const erasedQuery = queryOptions({
  queryKey: ['erased'],
  queryFn: ({ signal }) => call(usageOperations.erased, { query: { limit: rangesShown }, signal }),
})

/** Services of the table; the chart shows fewer. */
const servicesListed = 20

/**
 * What services store, with the days from the first to the last one, UTC, both included. The service limits
 * days times services: a range of years lists fewer services, and one of decades has its last days only.
 */
export function servicesQuery(firstDay: string, lastDay: string) {
  return queryOptions({
    queryKey: ['storage', 'services', firstDay, lastDay],
    queryFn: ({ signal }) => {
      const earliest = dayAfter(lastDay, 1 - serviceDaysMax)
      const rangeDays = Math.min(serviceDaysMax, daysApart(firstDay, lastDay) + 1)
      return call(usageOperations.byService, {
        query: {
          range_start: dayStart(firstDay < earliest ? earliest : firstDay),
          range_end: dayStart(dayAfter(lastDay)),
          limit: String(Math.min(servicesListed, Math.floor(serviceDaysMax / rangeDays))),
        },
        signal,
      })
    },
    placeholderData: keepPreviousData,
    enabled: lastDay !== '',
  })
}

/** Requests of a page of the list: a screen and a half. */
const requestsShown = '50'

export function erasuresQuery(status?: DeletionRequest['status']) {
  return pagedQuery(['erasures', 'list', status ?? 'all'], ({ cursor, signal }) =>
    call(deletionOperations.list, { query: { limit: requestsShown, status, cursor }, signal }),
  )
}

function isFinal({ status }: Pick<DeletionRequest, 'status'>): boolean {
  return finalDeletionStatuses.some((final) => final === status)
}

/** How often a request is read: its work takes seconds, and an approval takes days. */
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

/** Removes cached amounts after an act that hides or shows telemetry, so that no page shows outdated ones. */
export function dropCachedAmounts(client: QueryClient): void {
  for (const queryKey of [['storage'], ['erased'], ['preview']]) client.removeQueries({ queryKey })
  void client.invalidateQueries()
}
