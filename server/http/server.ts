// The HTTP front that all routes share: who is asking, how refusals look, how large a body may be. The order is
// fixed: authentication, role, content type, size, validation, work; so someone without a right learns nothing
// from the errors behind it. Every refusal has the documented body, also the ones that arise in Fastify itself.

import type { Socket } from 'node:net'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import type { ErrorCode } from '../../contract/errors.ts'
import { AppError, InvalidInput, storageRefusal } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import { storageFaultOf } from '../core/storage-fault.ts'
import { type AnswerLimits, AnswersUnderWay } from './answers-under-way.ts'
import { type Authenticate, challengeOf, identify } from './authentication.ts'
import type { RouteAccess } from './route.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Every address that answers and who may call it, for whoever wants to hold the whole list against another. */
    readonly routeTable: RouteTable
    /** Does work again, with the reserve, where it failed because the disk is full. */
    readonly withReserve: WithReserve
  }
}

/** By URL pattern, then by method. Access is undefined on routes that aren't ours, such as the reference page's files. */
export type RouteTable = ReadonlyMap<string, ReadonlyMap<string, RouteAccess | undefined>>

export type WithReserve = <T>(work: () => Promise<T>) => Promise<T>

export interface HttpOptions {
  readonly clock: Clock
  readonly logger: FastifyBaseLogger
  readonly authenticate: Authenticate
  /** False while starting or draining: guarded routes answer 503 then. */
  readonly isReady: () => boolean
  /** No reserve is kept where absent. */
  readonly withReserve?: WithReserve
  /** The usual ones where absent. */
  readonly answers?: AnswerLimits
}

/** Bodies of control operations are small; ingest raises this for its own routes. */
const bodyLimitBytes = 64 * 1024

/** Long enough for a slow uplink to send a telemetry batch, short enough not to hoard sockets. */
const requestTimeoutMs = 60_000

export function createHttp(options: HttpOptions): FastifyInstance {
  const http = Fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    routerOptions: { maxParamLength: 16_384 },
    genReqId: () => newId('req', options.clock.nowMs()),
    requestIdHeader: false,
    // The guard answers while the service stops, in the words of the contract.
    return503OnClosing: false,
    clientErrorHandler: answerUnreadable,
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  })
  const routeTable = new Map<string, Map<string, RouteAccess | undefined>>()
  http.addHook('onRoute', (added) => {
    const known = routeTable.get(added.url) ?? new Map<string, RouteAccess | undefined>()
    for (const method of [added.method].flat()) known.set(method, added.config?.access)
    routeTable.set(added.url, known)
  })
  http.decorate('routeTable', routeTable)
  http.decorate('withReserve', options.withReserve ?? ((work) => work()))
  http.setValidatorCompiler(() => (value) => ({ value }))
  http.setSerializerCompiler(serializerCompiler)
  http.decorateRequest('caller', null)
  http.removeAllContentTypeParsers()
  http.addContentTypeParser(
    ['application/json', 'application/merge-patch+json'],
    { parseAs: 'buffer' },
    (_request, body, done) => done(null, body),
  )
  http.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    reply.header('cache-control', 'no-store')
    await guard(request, options)
  })
  new AnswersUnderWay(options.clock, options.answers).watch(http)
  http.addHook('onSend', async (_request, reply) => {
    // Whoever is answered while the service stops must not keep the connection, and with it the process, alive.
    if (!options.isReady()) reply.header('connection', 'close')
  })
  http.setErrorHandler((error, request, reply) => sendError(error, request, reply))
  http.setNotFoundHandler((request, reply) => {
    const allowed = allowedMethods(routeTable, request.url)
    if (allowed === null) throw new AppError('not_found', { sentence: 'There is nothing at this address.' })
    reply.header('allow', allowed)
    throw new AppError('method_not_allowed')
  })
  return http
}

async function guard(request: FastifyRequest, options: HttpOptions): Promise<void> {
  const { access, takesBasic } = request.routeOptions.config ?? {}
  if (access === undefined || access === 'public') return
  if (!options.isReady()) throw new AppError('not_ready', { retryAfterSeconds: 1 })
  const { authorization } = request.headers
  const caller = await identify(authorization, options.authenticate, { takesBasic: takesBasic === true })
  if (!access.includes(caller.role)) {
    throw new AppError('role_not_permitted', {
      sentence: `This operation is for ${access.join(', ')}; your token has the role ${caller.role}.`,
    })
  }
  request.caller = caller
}

function allowedMethods(table: RouteTable, url: string): string | null {
  const path = url.split('?')[0] ?? url
  for (const [pattern, methods] of table) {
    const shape = pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/:[a-z_]+/g, '[^/]+')
      .replace(/\*/g, '.*')
    if (new RegExp(`^${shape}$`).test(path)) return [...methods.keys()].sort().join(', ')
  }
  return null
}

/** Fastify's own refusals, by its codes. */
const frameworkCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
}

/** Reasons by Node's and its parser's codes; anything else is 400. */
const unreadable: Record<string, string> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** What can't be read as HTTP never becomes a request, so its answer is written by hand. */
function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable) {
    const { message, code } = new AppError('bad_request')
    const body = JSON.stringify({ detail: message, code })
    const status = unreadable[error.code ?? ''] ?? '400 Bad Request'
    socket.write(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    )
  }
  socket.destroy()
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof InvalidInput) {
    return reply
      .status(422)
      .serializer(JSON.stringify)
      .type('application/json')
      .send({ detail: error.problems })
  }
  const known = knownError(error)
  // A fault of the disk has a cause where something met it, and none where nothing was tried.
  const isDisk = known.code === 'storage_full' || known.code === 'storage_unavailable'
  if (known.code === 'internal' || (isDisk && known.cause !== undefined))
    request.log.error({ err: error, requestId: request.id }, 'request failed')
  setRefusalHeaders(reply, known)
  return reply
    .status(known.status)
    .serializer(JSON.stringify)
    .type('application/json')
    .send({ detail: known.message, code: known.code, ...known.facts })
}

/** The headers that belong to a refusal, whatever form its body has. */
export function setRefusalHeaders(reply: FastifyReply, refusal: AppError): void {
  const challenge = challengeOf(refusal)
  const { retryAfterSeconds } = refusal
  if (challenge !== null) reply.header('www-authenticate', challenge)
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
}

/** What a client may be told about anything thrown; a fault of the disk has a code of its own, everything else unexpected becomes `internal`; without its message. */
export function knownError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (!(error instanceof Error)) return new AppError('internal', { cause: error })
  const fault = storageFaultOf(error)
  if (fault !== null) return storageRefusal(fault, error)
  const code = 'code' in error && typeof error.code === 'string' ? frameworkCodes[error.code] : undefined
  if (code !== undefined) return new AppError(code, { cause: error })
  const status = 'statusCode' in error ? Number(error.statusCode) : 500
  return new AppError(status >= 400 && status < 500 ? 'bad_request' : 'internal', { cause: error })
}
