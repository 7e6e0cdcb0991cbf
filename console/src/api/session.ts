// The session: who is signed in, and what that role may do. Roles come from the declarations of the
// operations, so the console offers exactly what the service permits. A page never changes from one token to
// another: it starts over.

import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Operation } from '../../../contract/operation.ts'
import { sessionOperations } from '../../../contract/operations/sessions.ts'
import { tenancyOperations } from '../../../contract/operations/tenancy.ts'
import type { Me } from '../../../contract/organisation/tenancy.ts'
import type { Role } from '../../../contract/role.ts'
import { call, Refusal } from './client.ts'
import { noteFailure, noteSignIn, startOver } from './connection.ts'
import { queryClient } from './query-client.ts'
import { showsToken, showToken } from './shown-token.ts'

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async ({ signal }) => {
    const me = await call(tenancyOperations.me, { signal })
    if (!showToken(me.token_id)) startOver()
    return me
  },
  staleTime: 60_000,
})

/** Tells the other windows of this browser the id of the token that signed in; null after a sign-out. */
const windows = new BroadcastChannel('lethe-session')
windows.onmessage = ({ data: tokenId }: MessageEvent<string | null>) => {
  if (tokenId !== null) void continueAs(tokenId)
  else if (showsToken()) startOver()
}

/** Exchanges an access token or a one-time code for a session. */
export async function signIn(secret: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` }
  const { token_id } = await call(sessionOperations.signIn, { headers })
  windows.postMessage(token_id)
  await continueAs(token_id)
}

/** Reads everything again, where the page shows this token or none. */
async function continueAs(tokenId: string): Promise<void> {
  if (!showToken(tokenId)) return startOver()
  noteSignIn()
  await queryClient.invalidateQueries()
}

/**
 * Also where the session has ended already. Does nothing where it is another one than the page shows; then
 * the page starts over.
 */
export async function signOut(): Promise<void> {
  try {
    await call(sessionOperations.signOut)
  } catch (error) {
    const hasEnded = error instanceof Refusal && error.status === 401
    if (!hasEnded) return noteFailure(error)
  }
  windows.postMessage(null)
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
