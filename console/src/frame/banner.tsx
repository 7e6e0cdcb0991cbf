// The banner over a page, which says that the service can't be reached.

import { useQuery } from '@tanstack/react-query'
import { pageOperations } from '../../../contract/operations/pages.ts'
import { call } from '../api/client.ts'
import { useConnection } from '../api/connection.ts'
import { queryClient } from '../api/query-client.ts'

const askAgainMs = 3_000

export function Banner() {
  const { isOffline } = useConnection()
  // Its success marks the service as reachable.
  useQuery({
    queryKey: ['health'],
    queryFn: async ({ signal }) => {
      const health = await call(pageOperations.health, { signal })
      void queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'health' })
      return health
    },
    enabled: isOffline,
    refetchInterval: askAgainMs,
    retry: false,
    gcTime: 0,
  })
  if (!isOffline) return null
  return (
    <div className="banner" role="alert">
      <strong>The service can’t be reached.</strong> What you see may be old, and nothing can be changed.
      Asking again every few seconds.
    </div>
  )
}
