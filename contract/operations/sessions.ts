// Signing in to the console and out of it. The credential is exchanged for a cookie, as in every other
// operation it is sent as a bearer token; a one-time code is accepted here and nowhere else.

import { z } from 'zod'
import { sessionExample } from '../examples/organisation.ts'
import { operation } from '../operation.ts'
import { Session, SessionHeaders } from '../organisation/session.ts'
import { readers, roles } from '../role.ts'
import { NoBody } from '../values/fields.ts'

/** People sign in a few times a day. Each sign-in is a row and an audit entry. */
const signInRate = { perMinute: 30, burst: 30 }

export const sessionOperations = {
  signIn: operation({
    id: 'postSession',
    method: 'POST',
    path: '/session',
    access: readers,
    tag: 'Organisation',
    summary: 'Sign in to the console: exchange an access token, or a one-time code, for a session cookie',
    headers: SessionHeaders,
    body: NoBody,
    results: { 201: { body: Session, headers: ['set-cookie'], example: sessionExample } },
    rate: signInRate,
    takesSignInCode: true,
  }),
  signOut: operation({
    id: 'deleteSession',
    method: 'DELETE',
    path: '/session',
    access: roles,
    tag: 'Organisation',
    summary: 'Sign out of the console: the session ends, its access token stays valid',
    headers: SessionHeaders,
    results: {
      204: {
        meaning: 'The session of the request has ended; there is none where it was sent with a token.',
        body: z.undefined(),
        headers: ['set-cookie'],
      },
    },
  }),
} as const
