// Signing in to the console and out of it: an access token or a one-time code becomes a cookie. The secret of
// the cookie is only in the Set-Cookie header.

import type { FastifyInstance } from 'fastify'
import { sessionOperations } from '../../contract/operations/sessions.ts'
import { serve } from '../http/serve.ts'
import { sessionCookie } from '../http/session-cookie.ts'
import type { SessionStore } from './sessions.ts'

export function addSessionRoutes(http: FastifyInstance, store: SessionStore): void {
  serve(http, sessionOperations.signIn, {
    // On a full disk a person must be able to sign in and erase.
    usesReserve: true,
    handle: async ({ caller, headers }) => {
      const { secret, session } = await store.create(caller)
      const seconds = (Date.parse(session.ends_at) - Date.parse(session.created_at)) / 1000
      return {
        body: session,
        headers: { 'set-cookie': sessionCookie(secret, Math.floor(seconds), headers.origin) },
      }
    },
  })

  serve(http, sessionOperations.signOut, {
    usesReserve: true,
    handle: async ({ caller, headers }) => {
      await store.end(caller)
      return { body: undefined, headers: { 'set-cookie': sessionCookie('', 0, headers.origin) } }
    },
  })
}
