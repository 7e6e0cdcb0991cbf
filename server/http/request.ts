// What handlers ask of a request, whichever way they are served.

import type { FastifyRequest } from 'fastify'
import type { Caller } from '../core/caller.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, on every route that isn't public. */
    caller: Caller | null
    /** Elapsed time of the clock when the look-up of the caller began. */
    identifiedAtMs: number
  }
}

/** Returns the caller that passed the role check. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error('A guarded route ran without a caller.')
  return request.caller
}

/** Returns the media type of the body in lower case, without parameters; empty where none was sent. */
export function mediaTypeOf(request: FastifyRequest): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}
