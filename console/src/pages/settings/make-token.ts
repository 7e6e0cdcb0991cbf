// Makes an access token. The response has the secret, so nothing keeps it but the page that shows it.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { z } from 'zod'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import type { AccessToken, CreatedAccessToken } from '../../../../contract/organisation/tenancy.ts'
import type { Role } from '../../../../contract/role.ts'
import { call, Refusal } from '../../api/client.ts'
import { type Lifetime, lifetimeDays } from './lifetime.ts'

/** A token whose secret is shown. */
export interface NewToken {
  readonly made: z.output<typeof CreatedAccessToken>
  /** The token that it is made to replace. */
  readonly replaces: AccessToken | null
}

interface Wanted {
  readonly name: string
  readonly role: Role
  readonly lifetime: Lifetime
}

export function useMakeToken(replaces: AccessToken | null, onMade: (token: NewToken) => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ lifetime, name, role }: Wanted) => {
      const days = lifetimeDays(lifetime)
      return call(tenancyOperations.createToken, {
        body: { name, role, ...(typeof days === 'number' && { expires_in_days: days }) },
      })
    },
    onSuccess: (made) => {
      onMade({ made, replaces })
      return client.invalidateQueries({ queryKey: ['tokens'] })
    },
    // The cache of responses would keep the secret.
    gcTime: 0,
  })
}

/** The error of the service about the lifetime; null where the error is about something else. */
export function lifetimeProblem(error: Error | null): string | null {
  if (!(error instanceof Refusal)) return null
  return error.problems.find(({ loc }) => loc.at(-1) === 'expires_in_days')?.msg ?? null
}
