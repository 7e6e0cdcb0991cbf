// What waits for a second person: erasures and shorter retention. It is read now and then on every page, so
// that somebody who can decide notices it.

import { queryOptions, useQuery } from '@tanstack/react-query'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { retentionOperations } from '../../../contract/operations/governance.ts'
import { call } from './client.ts'
import { retentionQuery } from './governance.ts'
import { useMay } from './session.ts'

const readEveryMs = 30_000

/** Beyond it the exact number tells nobody more. */
const countedMax = '100'

const waitingErasuresQuery = queryOptions({
  queryKey: ['erasures', 'waiting'],
  queryFn: ({ signal }) =>
    call(deletionOperations.list, { query: { status: 'awaiting_approval', limit: countedMax }, signal }),
  refetchInterval: readEveryMs,
})

interface Waiting {
  readonly erasures: number
  readonly retention: number
}

/** Zero for a role that can decide nothing, and until it is known. */
export function useWaiting(): Waiting {
  const mayDecide = useMay(deletionOperations.approve)
  const mayShorten = useMay(retentionOperations.approveChange)
  const erasures = useQuery({ ...waitingErasuresQuery, enabled: mayDecide })
  const retention = useQuery({ ...retentionQuery, enabled: mayShorten, refetchInterval: readEveryMs })
  return {
    erasures: erasures.data?.items.length ?? 0,
    retention: mayShorten ? (retention.data?.pending?.length ?? 0) : 0,
  }
}
