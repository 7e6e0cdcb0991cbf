// The session: who is signed in, and what that role may do. Roles come from the declarations of the
// operations, so the console offers exactly what the service permits.

import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Operation } from '../../../contract/operation.ts'
import { sessionOperations } from '../../../contract/operations/sessions.ts'
import { tenancyOperations } from '../../../contract/operations/tenancy.ts'
import type { Me } from '../../../contract/organisation/tenancy.ts'
import type { Role } from '../../../contract/role.ts'
import { call } from './client.ts'
import { noteSignIn } from './connection.ts'
import { queryClient } from './query-client.ts'

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => call(tenancyOperations.me, { signal }),
  staleTime: 60_000,
})

/** Exchanges an access token or a one-time code for a session, and reads everything again. */
export async function signIn(secret: string): Promise<void> {
  await call(sessionOperations.signIn, { headers: { authorization: `Bearer ${secret}` } })
  noteSignIn()
  await queryClient.invalidateQueries()
}

export async function signOut(): Promise<void> {
  await call(sessionOperations.signOut)
  queryClient.clear()
  // All state of the page belongs to the person who signs out.
  window.location.assign('/console/')
}

/** Returns who is signed in. Use it only below the component Gate, which waits for the session. */
export function useMe(): Me {
  const { data } = useQuery(meQuery)
  if (data === undefined) throw new Error('Nobody is signed in.')
  return data
}

type Guarded = Pick<Operation, 'access'>

/** Returns whether the role may call the operation. */
export function mayCall(role: Role, { access }: Guarded): boolean {
  return access === 'public' || access.includes(role)
}

/** Returns the roles that may call it as text, such as `owner or admin`. */
export function rolesText({ access }: Guarded): string {
  const named: readonly string[] = access === 'public' ? ['everybody'] : access
  return named.length < 2 ? named.join('') : `${named.slice(0, -1).join(', ')} or ${named.at(-1)}`
}

export function useMay(operation: Guarded): boolean {
  return mayCall(useMe().role, operation)
}
