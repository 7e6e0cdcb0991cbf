// Serves an operation of the contract: the declaration says who may call, and defines input and output; the
// feature adds the handler. From the one declaration come authentication, the role check, validation with all
// problems at once, and the handler's types.

import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify'
import { z } from 'zod'
import type { ValidationProblem } from '../../contract/errors.ts'
import type { ResponseHeader } from '../../contract/headers.ts'
import { type Access, bodyTypesOf, type Operation, type Rate } from '../../contract/operation.ts'
import { AppError, InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Parsed } from '../core/input/parsed.ts'
import { Pace } from '../core/turns/pace.ts'
import { workFor } from '../core/work-owner.ts'
import { type OperationInput, readInput, type SentInput } from './read-input.ts'
import { callerOf, mediaTypeOf } from './request.ts'
import { goneSignal } from './response-end.ts'
import { responseWriter } from './response-text.ts'
import { SentNames } from './sent-names.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Roles that may call. A route without it is public. */
    access?: Access
    /**
     * Whether it is exempt from the limit of requests without a token: a prober can't be distinguished from
     * an attacker at the same address.
     */
    isUnmetered?: boolean
    /**
     * Whether a token may also be the password of Basic authentication, for senders that can't send a bearer
     * token.
     */
    takesBasic?: boolean
    /** Whether it accepts a one-time sign-in code in place of an access token. */
    takesSignInCode?: boolean
    /** The operation that the route serves. */
    operation?: Operation
  }
}

export interface Answer<Body> {
  /** May be absent where the operation has one status of success. */
  readonly status?: number
  readonly headers?: Readonly<Partial<Record<ResponseHeader | 'content-security-policy', string>>>
  readonly body: Body
  /**
   * Called before the response is sent, when its JSON is written, and after each hiding until it was passed
   * to the system. Throws where it may no longer be sent.
   */
  readonly requireCurrent?: () => void
  /**
   * Whether it is computed again where it may no longer be sent. Only for reads of telemetry, which is hidden
   * at once: what the control plane has of it is cleared by a commit that may still be in progress.
   */
  readonly isRepeatable?: boolean
  /** A page that is sent in place of the body, where the operation declares one. */
  readonly html?: string
  /** A body that is not JSON, sent while it is produced. */
  readonly stream?: Readable
}

/** The part of an operation that only the server knows. */
interface Serving<Result, Params, Query, Body, Headers, Value> {
  /**
   * Whether it must also work on a full disk, such as an operation that frees space or keeps evidence: it may
   * use the reserve.
   */
  readonly usesReserve?: boolean
  /**
   * Parses the body by rules across its fields, or rules that need the caller or stored data. Called also
   * where the schema refuses the body, so that one response has all problems. The handler gets its value.
   */
  readonly parse?: (sent: SentInput<Params, Body>) => Parsed<Value> | Promise<Parsed<Value>>
  /** Receives the problems of refused input before the response is sent, for the audit log. */
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
  const write = answerWriter(operation)
  http.route({
    ...routeOf(operation),
    preParsing: async (request) => requireReadable(operation, request),
    handler: async (request, reply) => {
      const names = new SentNames()
      const signal = goneSignal(request, reply)
      const handle = async () =>
        serving.handle(await readInput(operation, serving, { request, signal, names }))
      const work = () => (request.caller === null ? handle() : workFor(request.caller.tenantId, handle))
      const turn = () => http.turns.turnOf(callerOf(request).tenantId)
      const answer = async () =>
        write(await (serving.usesReserve === true ? http.withReserve(work) : work()), turn)
      try {
        if (operation.rate !== undefined) await takeRate(http, request, operation.rate, signal)
        const written = await answer()
        if (written.answer.isRepeatable !== true) return await send(reply, written)
        await http.confirm(request)
        return await send(reply, isCurrent(written.answer) ? written : await answer())
      } catch (error) {
        // Work that was aborted because its client disconnected has no response.
        if (signal.aborted && error === signal.reason) return reply.hijack()
        throw error instanceof InvalidInput ? new InvalidInput(names.withSentNames(error.problems)) : error
      }
    },
  })
}

/** Returns the part of a route that its declaration defines, for routes with a handler of their own. */
export function routeOf(operation: Operation): Pick<RouteOptions, 'method' | 'url' | 'config' | 'schema'> {
  const { access, isUnmetered, method, path, takesBasic, takesSignInCode } = operation
  return {
    method,
    url: path,
    config: {
      operation,
      access,
      ...(isUnmetered !== undefined && { isUnmetered }),
      ...(takesBasic !== undefined && { takesBasic }),
      ...(takesSignInCode !== undefined && { takesSignInCode }),
    },
    schema: schemaOf(operation),
  }
}

/**
 * Counts one use of an operation that is limited per organisation, and waits where others of the organisation
 * come first. Throws `too_many_requests`, and the reason of the signal.
 */
async function takeRate(
  http: FastifyInstance,
  request: FastifyRequest,
  rate: Rate,
  signal: AbortSignal,
): Promise<void> {
  const { method, url } = request.routeOptions
  const name = `${method} ${url}`
  http.rates.take(callerOf(request), name, rate)
  if (rate.pace === undefined) return
  await http.paces.turnOf(callerOf(request), name, rate.pace, signal)
  signal.throwIfAborted()
}

/** All routes share the parsers; a body of a type that only another route accepts is refused here. */
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

interface WrittenAnswer {
  readonly answer: Answer<unknown>
  readonly status: number
  /** Null where there is no body. */
  readonly type: string | null
  readonly payload: Buffer | Readable | string | undefined
}

/**
 * Writes a response in one of the declared forms; a large body takes turns on the event loop. Throws where
 * the operation does not declare it.
 */
function answerWriter({ id, results }: Operation) {
  const declared = new Map(
    Object.entries(results).map(([status, { body, types }]) => [
      Number(status),
      { write: responseWriter(body), type: types?.[0] ?? 'application/octet-stream' },
    ]),
  )
  const [only] = declared.size === 1 ? declared.keys() : []
  return async (answer: Answer<unknown>, turn: () => Promise<void>): Promise<WrittenAnswer> => {
    const { body, html, status = only, stream } = answer
    const form = status === undefined ? undefined : declared.get(status)
    if (status === undefined || form === undefined)
      throw new Error(`${id} does not declare this status: ${status}.`)
    const written = { answer, status }
    if (stream !== undefined) return { ...written, type: form.type, payload: stream }
    if (html !== undefined) return { ...written, type: 'text/html; charset=utf-8', payload: html }
    if (body === undefined) return { ...written, type: null, payload: undefined }
    const payload = await form.write(body, new Pace(turn))
    return { ...written, type: 'application/json; charset=utf-8', payload }
  }
}

function isCurrent({ requireCurrent }: Answer<unknown>): boolean {
  try {
    requireCurrent?.()
    return true
  } catch {
    return false
  }
}

function send(reply: FastifyReply, { answer, payload, status, type }: WrittenAnswer): FastifyReply {
  for (const [name, value] of Object.entries(answer.headers ?? {})) reply.header(name, value)
  reply.requireCurrent = answer.requireCurrent ?? null
  if (type !== null) reply.type(type)
  return reply.status(status).send(payload)
}

/** The schema for bodies that a handler returns: JSON bodies are written by their schema. */
function schemaOf({ results }: Operation): FastifySchema {
  const written = Object.entries(results).filter(
    ([, { body, types }]) => types === undefined && !(body instanceof z.ZodUndefined),
  )
  return { response: Object.fromEntries(written.map(([status, { body }]) => [status, body])) }
}
