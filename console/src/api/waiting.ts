// What somebody has to act on: erasures and shorter retention that wait for a second person, erasures that
// failed, telemetry that the quota refused. It is read now and then on every page, so that it is noticed.

import { queryOptions, useQuery } from '@tanstack/react-query'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { retentionOperations } from '../../../contract/operations/governance.ts'
import { every } from './again.ts'
import { call } from './client.ts'
import { retentionQuery } from './governance.ts'
import { arrivedQuery } from './sending.ts'
import { useMay } from './session.ts'

const readEveryMs = 30_000

/** Beyond it the exact number tells nobody more. */
const countedMax = '100'

function countedErasuresQuery(status: 'awaiting_approval' | 'failed') {
  return queryOptions({
    queryKey: ['erasures', 'counted', status],
    queryFn: ({ signal }) => call(deletionOperations.list, { query: { status, limit: countedMax }, signal }),
    refetchInterval: every(readEveryMs),
  })
}

interface Waiting {
  readonly erasures: number
  readonly retention: number
  readonly failed: number
  /** Today, which is a UTC day. */
  readonly isQuotaRefused: boolean
}

/** Nothing for a role that may not read it, and until it is known. */
export function useWaiting(): Waiting {
  const mayDecide = useMay(deletionOperations.approve)
  const mayShorten = useMay(retentionOperations.approveChange)
  const erasures = useQuery({ ...countedErasuresQuery('awaiting_approval'), enabled: mayDecide })
  const failed = useQuery({ ...countedErasuresQuery('failed'), enabled: mayDecide })
  const arrived = useQuery({ ...arrivedQuery, refetchInterval: every(readEveryMs) })
  const retention = useQuery({ ...retentionQuery, enabled: mayShorten, refetchInterval: every(readEveryMs) })
  return {
    erasures: erasures.data?.items.length ?? 0,
    retention: mayShorten ? (retention.data?.pending?.length ?? 0) : 0,
    failed: failed.data?.items.length ?? 0,
    isQuotaRefused: (arrived.data?.today.requests_refused ?? 0) > 0,
  }
}
