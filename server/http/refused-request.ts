// A refused request of a known token, in the form in which refusals are counted: the reason and the
// operation, and nothing of the body, the query or the headers.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RefusalReason } from '../../contract/organisation/refusals.ts'
import type { Actor } from '../core/actor.ts'

/** The organisation and the token of a request, also where the token has ended or the role is refused. */
export interface Sender {
  readonly tenantId: string
  readonly actor: Actor
}

export interface RefusedRequest {
  readonly sender: Sender
  readonly reason: RefusalReason
  /** The status of HTTP, also for gRPC. */
  readonly status: number
  readonly protocol: 'http' | 'grpc'
  readonly method: string
  /** The path of the operation, or of the request where no operation matches; without the query. */
  readonly path: string
  /** False where no operation matches: then the client chose the path, and there is no end of others. */
  readonly hasOperation: boolean
}

/** Must not throw. */
export type OnRefusal = (refused: RefusedRequest) => void

declare module 'fastify' {
  interface FastifyRequest {
    /** Null where no token was sent, or an unknown one. */
    sender: Sender | null
    /** Why it was refused; null where it was not, or where the refusal had no reason of its own. */
    refusedFor: RefusalReason | null
  }
}

/** Reports every refusal of a server when its response was sent. */
export function reportRefusals(http: FastifyInstance, onRefusal: OnRefusal | undefined): void {
  http.decorateRequest('sender', null)
  http.decorateRequest('refusedFor', null)
  http.addHook('onResponse', async (request, reply) => {
    const refused = refusedRequestOf(request, reply)
    if (refused !== null) onRefusal?.(refused)
  })
}

/** Returns the refusal of a response; null where the response is not a refusal or its token is unknown. */
function refusedRequestOf(request: FastifyRequest, { statusCode }: FastifyReply): RefusedRequest | null {
  const { is404, method, refusedFor, routeOptions, sender } = request
  if (statusCode < 400 || sender === null) return null
  return {
    sender,
    reason: refusalReasonOf(refusedFor ?? (statusCode < 500 ? 'bad_request' : 'internal')),
    status: statusCode,
    protocol: 'http',
    method,
    path: (is404 ? request.url.split('?')[0] : routeOptions.url) ?? '',
    hasOperation: !is404,
  }
}

/** The token was read from the headers, so the part that could not be read is the body. */
export function refusalReasonOf(reason: RefusalReason): RefusalReason {
  return reason === 'bad_request' ? 'undecodable_body' : reason
}
