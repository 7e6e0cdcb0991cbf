// The cache of responses. A refusal is shown and not repeated, because a person decides; a service that can't
// be reached, or that could not read the request in time, is asked again until it responds.

import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { Refusal, Unreachable } from './client.ts'
import { noteFailure, noteSuccess } from './connection.ts'

const retryMs = 3_000

/** How long a response counts as current, so that a page that is opened again asks again. */
const freshMs = 5_000

/** The service had not read the request when its time was over, as on a slow line. */
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
