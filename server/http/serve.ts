// Serves an operation of the contract: the declaration says who may call, what comes in and what goes out,
// and the feature adds the handler. From the one declaration come authentication, the role check, validation
// with all problems at once, and the handler's types.

import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify'
import { z } from 'zod'
import type { ValidationProblem } from '../../contract/errors.ts'
import type { ResponseHeader } from '../../contract/headers.ts'
import { type Access, bodyTypesOf, type Operation, type Rate } from '../../contract/operation.ts'
import { AppError, InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Parsed } from '../core/parsed.ts'
import { answerWriter } from './answer-text.ts'
import { whenOver } from './answered.ts'
import { type OperationInput, readInput, type SentInput } from './read-input.ts'
import { callerOf, mediaTypeOf } from './request.ts'
import { SentNames } from './sent-names.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call. A route without it is open to everyone. */
    access?: Access
    /**
     * Whether it answers also those who ask too often: a prober must not be told apart
     * from an attacker beside it.
     */
    isUnmetered?: boolean
    /**
     * Whether a token may also come as the password of Basic authentication, for senders that know no bearer.
     */
    takesBasic?: boolean
    /** What the route serves. */
    operation?: Operation
  }
}

export interface Answer<Body> {
  /** May be left out where the operation has one status of success. */
  readonly status?: number
  readonly headers?: Readonly<Partial<Record<ResponseHeader | 'content-security-policy', string>>>
  readonly body: Body
  /** A page that is sent in place of the body, where the declaration says that there is one. */
  readonly html?: string
  /** What is sent in place of the body where it is no JSON, as it is made. */
  readonly stream?: Readable
}

/** What the server alone knows of an operation. */
interface Serving<Result, Params, Query, Body, Headers, Value> {
  /**
   * Whether it has to be taken on a full disk too, as what frees space or keeps evidence: it may use the
   * reserve.
   */
  readonly usesReserve?: boolean
  /**
   * What the body means, by rules across its fields, or that need the caller or what is stored. It is
   * asked also where the schema refuses the body, so that nothing is left for a second answer. Its
   * value goes to the handler.
   */
  readonly parse?: (sent: SentInput<Params, Body>) => Parsed<Value> | Promise<Parsed<Value>>
  /** Told of refused input before the answer is sent, for the audit log. */
  readonly onInvalid?: (caller: Caller, problems: readonly ValidationProblem[]) => Promise<void>
  readonly handle: (input: OperationInput<Params, Query, Body, Headers, Value>) => Promise<Answer<Result>>
}

/** Adds an operation to the service. */
export function serve<
  Result extends z.ZodType,
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Headers extends z.ZodType,
  Value = undefined,
>(
  http: FastifyInstance,
  operation: Operation<Result, Params, Query, Body, Headers>,
  serving: Serving<
    z.output<Result>,
    z.output<Params>,
    z.output<Query>,
    z.output<Body>,
    z.output<Headers>,
    Value
  >,
): void {
  const send = sender(operation)
  http.route({
    ...routeOf(operation),
    preParsing: async (request) => requireReadable(operation, request),
    handler: async (request, reply) => {
      const names = new SentNames()
      const signal = goneSignal(request, reply)
      const work = async () => serving.handle(await readInput(operation, serving, { request, signal, names }))
      try {
        if (operation.rate !== undefined) takeRate(http, request, operation.rate)
        const answer = await (serving.usesReserve === true ? http.withReserve(work) : work())
        return await send(reply, answer, () => http.turns.turnOf(callerOf(request).tenantId))
      } catch (error) {
        // What was given up because nobody waits for it has nobody to be told.
        if (signal.aborted && error === signal.reason) return reply.hijack()
        throw error instanceof InvalidInput ? new InvalidInput(names.placed(error.problems)) : error
      }
    },
  })
}

/** The part of a route that its declaration says, for what is served with a handler of its own. */
export function routeOf(operation: Operation): Pick<RouteOptions, 'method' | 'url' | 'config' | 'schema'> {
  const { access, isUnmetered, method, path, takesBasic } = operation
  return {
    method,
    url: path,
    config: {
      operation,
      access,
      ...(isUnmetered !== undefined && { isUnmetered }),
      ...(takesBasic !== undefined && { takesBasic }),
    },
    schema: schemaOf(operation),
  }
}

/** Aborts when the connection closes before the answer has been handed over. */
function goneSignal(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  whenOver(request, reply, (isAnswered) => {
    if (!isAnswered) gone.abort()
  })
  return gone.signal
}

/** Counts one use of an operation that is limited per organisation. Throws `too_many_requests`. */
function takeRate(http: FastifyInstance, request: FastifyRequest, rate: Rate): void {
  const { method, url } = request.routeOptions
  http.rates.take(callerOf(request).tenantId, `${method} ${url}`, rate)
}

/** The parsers are shared by all routes; a body of a type that only another route takes is refused here. */
function requireReadable(operation: Operation, request: FastifyRequest): void {
  if (operation.body === undefined) return
  const coding = request.headers['content-encoding'] ?? 'identity'
  if (coding !== 'identity') {
    throw new AppError('unsupported_media_type', { sentence: 'Send the body without a Content-Encoding.' })
  }
  const mediaType = mediaTypeOf(request)
  if (mediaType !== '' && !bodyTypesOf(operation).includes(mediaType)) {
    throw new AppError('unsupported_media_type')
  }
}

type Send = (reply: FastifyReply, answer: Answer<unknown>, turn: () => Promise<void>) => Promise<FastifyReply>

/**
 * Sends an answer in one of the forms that the operation declares; a large body takes
 * turns of the event loop.
 */
function sender({ id, results }: Operation): Send {
  const declared = new Map(
    Object.entries(results).map(([status, { body, types }]) => [
      Number(status),
      { write: answerWriter(body), type: types?.[0] ?? 'application/octet-stream' },
    ]),
  )
  const [only] = declared.size === 1 ? declared.keys() : []
  return async (reply, { body, headers = {}, html, status = only, stream }, turn) => {
    const form = status === undefined ? undefined : declared.get(status)
    if (status === undefined || form === undefined)
      throw new Error(`${id} does not declare this status: ${status}.`)
    for (const [name, value] of Object.entries(headers)) reply.header(name, value)
    reply.status(status)
    if (stream !== undefined) return reply.type(form.type).send(stream)
    if (html !== undefined) return reply.type('text/html; charset=utf-8').send(html)
    if (body === undefined) return reply.send()
    return reply.type('application/json; charset=utf-8').send(await form.write(body, turn))
  }
}

/** How bodies are written that a handler answers by itself: those of JSON by their schema. */
function schemaOf({ results }: Operation): FastifySchema {
  const written = Object.entries(results).filter(
    ([, { body, types }]) => types === undefined && !(body instanceof z.ZodUndefined),
  )
  return { response: Object.fromEntries(written.map(([status, { body }]) => [status, body])) }
}
