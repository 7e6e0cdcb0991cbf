// The cache of responses. After a refusal the request is not repeated, because a person decides. Where the
// service can't be reached, or did not read the request in time, the request is repeated until it responds.

import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { Refusal, Unreachable } from './client.ts'
import { noteFailure, noteSuccess } from './connection.ts'

const retryMs = 3_000

/** How long a response counts as current, so that a page that is opened again asks again. */
const freshMs = 5_000

/** The service did not receive the request in time, as over a slow connection. */
function isUnread(error: Error): boolean {
  return error instanceof Refusal && error.code === 'request_timeout'
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure, onSuccess: noteSuccess }),
  mutationCache: new MutationCache({ onError: noteFailure, onSuccess: noteSuccess }),
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      retry: (_count, error) => {
        noteFailure(error)
        return error instanceof Unreachable || isUnread(error)
      },
      retryDelay: retryMs,
      // Whether the browser has a network says nothing about a service on this machine.
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
})
