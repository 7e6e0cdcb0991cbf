// Sessions of the console on the wire. A session stands for an access token in a browser: its cookie replaces
// the token, which no script and no storage of the browser keeps.

import { z } from 'zod'
import { Instant } from '../values/fields.ts'
import { Me } from './tenancy.ts'

/** A session without any request ends after this time. */
export const sessionIdleMinutes = 12 * 60
/** A session ends after this time at the latest. */
export const sessionDaysMax = 7

/** What a one-time sign-in code begins with; the rest is 256 random bits. */
export const signInCodePrefix = 'lethe_code_'

/** Cookies of a session: the first one over TLS, where the browser sends it only to this host. */
export const sessionCookies = { secure: '__Host-lethe_session', plain: 'lethe_session' } as const

/**
 * The request header in which a page of a session names the access token that it shows, by its id. All
 * windows of a browser share the cookie, so a sign-in in one of them would make the others act for a token
 * that they do not show.
 */
export const shownTokenHeader = 'lethe-token-id'

/** Headers in which a browser names the page that sends a request. */
export const SessionHeaders = z.object({
  origin: z.string().optional().describe('Sent by browsers. With `https`, the cookie is sent over TLS only.'),
})

export const Session = z
  .object({
    id: z.string(),
    ...Me.shape,
    created_at: Instant,
    ends_at: Instant.describe(
      `It ends then at the latest; ${sessionDaysMax} days after the sign-in, or with its token. Without requests it ends after ${sessionIdleMinutes / 60} hours.`,
    ),
  })
  .describe('Who you are in this browser, and until when.')
  .meta({ id: 'Session' })
export type Session = z.infer<typeof Session>
