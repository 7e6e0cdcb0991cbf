// The queries of what needs a person: erasures and shorter retention that wait for a second person, failed
// erasures, and telemetry that the quota refused. Every page reads them regularly, so that they are noticed.

import { queryOptions, useQuery } from '@tanstack/react-query'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { retentionOperations } from '../../../contract/operations/governance.ts'
import { call } from './client.ts'
import { retentionQuery } from './governance.ts'
import { readEvery } from './read-interval.ts'
import { arrivedQuery } from './sending.ts'
import { useMay } from './session.ts'

const readEveryMs = 30_000

/** Above it the exact number does not matter. */
const countedMax = '100'

function countedErasuresQuery(status: 'awaiting_approval' | 'failed') {
  return queryOptions({
    queryKey: ['erasures', 'counted', status],
    queryFn: ({ signal }) => call(deletionOperations.list, { query: { status, limit: countedMax }, signal }),
    refetchInterval: readEvery(readEveryMs),
  })
}

interface Waiting {
  readonly erasures: number
  readonly retention: number
  readonly failed: number
  /** Today, which is a UTC day. */
  readonly isQuotaRefused: boolean
}

/** Empty for a role that may not read it, and while it loads. */
export function useWaiting(): Waiting {
  const mayDecide = useMay(deletionOperations.approve)
  const mayShorten = useMay(retentionOperations.approveChange)
  const erasures = useQuery({ ...countedErasuresQuery('awaiting_approval'), enabled: mayDecide })
  const failed = useQuery({ ...countedErasuresQuery('failed'), enabled: mayDecide })
  const arrived = useQuery({ ...arrivedQuery, refetchInterval: readEvery(readEveryMs) })
  const retention = useQuery({
    ...retentionQuery,
    enabled: mayShorten,
    refetchInterval: readEvery(readEveryMs),
  })
  return {
    erasures: erasures.data?.items.length ?? 0,
    retention: mayShorten ? (retention.data?.pending?.length ?? 0) : 0,
    failed: failed.data?.items.length ?? 0,
    isQuotaRefused: (arrived.data?.today.requests_refused ?? 0) > 0,
  }
}
