// How a feature declares an operation: method, address, who may call it, what comes in and what goes out.
// From the one declaration come authentication, the role check, validation with all problems at once, the
// OpenAPI page and the handler's types. A route can't be declared without saying who may call it.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { ValidationProblem } from '../../contract/errors.ts'
import type { Role } from '../../contract/tenancy.ts'
import { AppError, InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { problemsOf } from '../core/schema-problems.ts'
import { answerWriter } from './answer-text.ts'
import { whenOver } from './answered.ts'
import { readJsonBody } from './json-body.ts'
import type { Rate } from './limits/rates.ts'
import { callerOf } from './request.ts'
import { SentNames } from './sent-names.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, on every route that isn't public. */
    caller: Caller | null
  }
  interface FastifyContextConfig {
    /** Who may call. A route without it is open to everyone. */
    access?: RouteAccess
    /**
     * Whether it answers also those who ask too often: a prober must not be told apart
     * from an attacker beside it.
     */
    isUnmetered?: boolean
    /**
     * Whether a token may also come as the password of Basic authentication, for senders that know no bearer.
     */
    takesBasic?: boolean
  }
}

/** The roles that may call, or `public` where no token is asked for. */
export type RouteAccess = readonly Role[] | 'public'

interface RouteInput<Params, Query, Body> {
  readonly caller: Caller
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly headers: FastifyRequest['headers']
  /** The media type of the body, without parameters. */
  readonly mediaType: string
}

interface Answer<Body> {
  /** 200 where absent. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Body
  /** A page that is sent in place of the body, where the declaration says that there is one. */
  readonly html?: string
}

interface RouteDeclaration<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Result extends z.ZodType,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly access: readonly Role[]
  readonly tag: string
  readonly summary: string
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** Headers that mean something to this operation, for the reference page; the handler reads them itself. */
  readonly headers?: z.ZodType
  /** Media types of the body; JSON where absent. */
  readonly bodyTypes?: readonly string[]
  readonly status?: number
  /** A second status with the same body, and what it means. */
  readonly alsoStatus?: { readonly status: number; readonly meaning: string }
  readonly result: Result
  /** What the page is, where the operation also answers with HTML. */
  readonly alsoHtml?: string
  /** How often an organisation may ask, where it is dear. Counted before anything is read of the request. */
  readonly rate?: Rate
  /** Refusals worth naming on the reference page, beside those every route has. */
  readonly refusals?: readonly number[]
  /**
   * Whether it has to be taken on a full disk too, as what frees space or keeps evidence: it may use the
   * reserve.
   */
  readonly usesReserve?: boolean
  /** Refusals whose body says more than `detail` and `code`. */
  readonly ownRefusals?: Readonly<Record<number, z.ZodType>>
  /**
   * Rules across fields, or that need the caller or what is stored; run on the raw body beside the schema, so
   * that nothing is left for a second answer.
   */
  readonly check?: (
    body: unknown,
    caller: Caller,
    request: FastifyRequest,
  ) => readonly ValidationProblem[] | Promise<readonly ValidationProblem[]>
  /** Told of refused input before the answer is sent, for the audit log. */
  readonly onInvalid?: (caller: Caller, problems: readonly ValidationProblem[]) => Promise<void>
  readonly handle: (
    input: RouteInput<z.output<Params>, z.output<Query>, z.output<Body>>,
  ) => Promise<Answer<z.output<Result>>>
}

/** Adds an operation to the service. */
export function route<
  Result extends z.ZodType,
  Params extends z.ZodType = z.ZodUnknown,
  Query extends z.ZodType = z.ZodUnknown,
  Body extends z.ZodType = z.ZodUnknown,
>(http: FastifyInstance, declaration: RouteDeclaration<Params, Query, Body, Result>): void {
  const write = answerWriter(declaration.result)
  http.route({
    method: declaration.method,
    url: declaration.url,
    config: { access: declaration.access },
    preParsing: async (request) => requireReadable(declaration, request),
    handler: async (request, reply) => {
      const names = new SentNames()
      const signal = goneSignal(request, reply)
      const work = async () => declaration.handle(await readInput(declaration, request, signal, names))
      try {
        if (declaration.rate !== undefined) takeRate(http, request, declaration.rate)
        const answer = await (declaration.usesReserve === true ? http.withReserve(work) : work())
        for (const [name, value] of Object.entries(answer.headers ?? {})) reply.header(name, value)
        reply.status(answer.status ?? declaration.status ?? 200)
        if (answer.html !== undefined) return reply.type('text/html; charset=utf-8').send(answer.html)
        const text = await write(answer.body, () => http.turns.turnOf(callerOf(request).tenantId))
        return reply.type('application/json; charset=utf-8').send(text)
      } catch (error) {
        // What was given up because nobody waits for it has nobody to be told.
        if (signal.aborted && error === signal.reason) return reply.hijack()
        throw error instanceof InvalidInput ? new InvalidInput(names.placed(error.problems)) : error
      }
    },
  })
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

async function readInput<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Result extends z.ZodType,
>(
  declaration: RouteDeclaration<Params, Query, Body, Result>,
  request: FastifyRequest,
  signal: AbortSignal,
  names: SentNames,
): Promise<RouteInput<z.output<Params>, z.output<Query>, z.output<Body>>> {
  const caller = { ...callerOf(request), signal }
  const problems: ValidationProblem[] = []
  const params = read('path', declaration.params, request.params, problems)
  const querySchema = declaration.query ?? z.strictObject({})
  const sentQuery = names.rename('query', querySchema, request.query, problems)
  const query = read('query', querySchema, sentQuery, problems)
  const raw =
    declaration.body === undefined
      ? undefined
      : names.rename('body', declaration.body, rawBody(request, problems), problems)
  const unreadable = problems.some((found) => found.type === 'json_invalid')
  const body = unreadable ? undefined : read('body', declaration.body, raw, problems)
  if (!unreadable && declaration.check !== undefined)
    problems.push(...(await declaration.check(raw, caller, request)))
  if (problems.length > 0) {
    await declaration.onInvalid?.(caller, problems)
    throw new InvalidInput(problems)
  }
  return {
    caller,
    params: params as z.output<Params>,
    query: query as z.output<Query>,
    body: body as z.output<Body>,
    headers: request.headers,
    mediaType: mediaTypeOf(request),
  }
}

/** The parsers are shared by all routes; a body of a type that only another route takes is refused here. */
function requireReadable(
  declaration: { readonly body?: unknown; readonly bodyTypes?: readonly string[] },
  request: FastifyRequest,
): void {
  if (declaration.body === undefined) return
  const coding = request.headers['content-encoding'] ?? 'identity'
  if (coding !== 'identity') {
    throw new AppError('unsupported_media_type', { sentence: 'Send the body without a Content-Encoding.' })
  }
  const mediaType = mediaTypeOf(request)
  if (mediaType !== '' && !bodyTypesOf(declaration).includes(mediaType)) {
    throw new AppError('unsupported_media_type')
  }
}

function bodyTypesOf({ bodyTypes }: { readonly bodyTypes?: readonly string[] }): readonly string[] {
  return bodyTypes ?? ['application/json']
}

/** The media type of the body in lower case, without parameters; empty where none was sent. */
function mediaTypeOf(request: FastifyRequest): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

function rawBody(request: FastifyRequest, problems: ValidationProblem[]): unknown {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const { value, problems: found } = readJsonBody(bytes)
  problems.push(...found)
  return value
}

function read(
  part: string,
  schema: z.ZodType | undefined,
  input: unknown,
  problems: ValidationProblem[],
): unknown {
  if (schema === undefined) return undefined
  const result = schema.safeParse(input)
  if (result.success) return result.data
  problems.push(...problemsOf(part, result.error.issues, input))
  return undefined
}
