// The HTTP server that all routes share: authentication, the form of refusals, sizes of bodies. The order is
// fixed: authentication, role, content type, size, validation, work; so a caller without a right learns
// nothing from later errors. A caller whose body took long is authenticated again before the validation, and
// a caller who reads again before the answer and while it is sent, so that an ended token reads no further.
// Every refusal has the documented body, also those that arise in Fastify itself.

import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { z } from 'zod'
import type { Access } from '../../contract/operation.ts'
import { AppError, InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, elapsedMs } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { type Authenticate, identifiedForMs, type RequestHead } from './authentication.ts'
import { ClientLimits } from './client-limits.ts'
import { ClientAddresses } from './limits/client-address.ts'
import { Connections, isGone } from './limits/connections.ts'
import { OperationPaces } from './limits/operation-paces.ts'
import { OperationRates } from './limits/rates.ts'
import { RefusalPace } from './limits/refusal-pace.ts'
import { RequestsInProgress } from './limits/requests-in-progress.ts'
import { type Confirm, ResponsesInProgress } from './limits/responses-in-progress.ts'
import { answerUnreadable, createListener } from './listener.ts'
import { currentRefusal, knownError, setRefusalHeaders } from './refusal.ts'
import { type OnRefusal, reportRefusals, type Sender } from './refused-request.ts'
import { callerOf } from './request.ts'
import { goneSignal, whenResponseEnds } from './response-end.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Every address with its methods and who may call it, for comparing the whole list with another. */
    readonly routeTable: RouteTable
    /** Repeats work with the reserve where it failed because the disk is full. */
    readonly withReserve: WithReserve
    /** How often organisations may use expensive operations. */
    readonly rates: OperationRates
    /** Throws where the caller may read no further. */
    readonly confirm: Confirm
    /** When requests of organisations begin that send many at once. */
    readonly paces: OperationPaces
    /** The order of work on the event loop. */
    readonly turns: LoopTurns
  }
}

/**
 * By URL pattern, then by method. Access is undefined on routes without a declaration, such as the files of
 * the reference page.
 */
type RouteTable = ReadonlyMap<string, ReadonlyMap<string, Access | undefined>>

export type WithReserve = <T>(work: () => Promise<T>) => Promise<T>

export interface HttpOptions {
  readonly clock: Clock
  readonly logger: FastifyBaseLogger
  /** Finds the caller of a request; or the limits around that, where several listeners share them. */
  readonly authenticate: Authenticate | ClientLimits
  /** The default limits where absent. */
  readonly connections?: Connections
  /** False while starting or stopping: guarded routes are refused with 503 then. */
  readonly isReady: () => boolean
  /** No reserve is kept where absent. */
  readonly withReserve?: WithReserve
  /** Shared by the listeners of a service; the default limits where absent. */
  readonly answers?: ResponsesInProgress
  /** Shared by all work on the event loop for organisations. */
  readonly turns?: LoopTurns
  /** Shared by all protocols; one of its own where absent. */
  readonly refusalPace?: RefusalPace
  /** Called for every refused request of a known token. */
  readonly onRefusal?: OnRefusal
}

/** Bodies of control operations are small; ingest has a larger limit for its own routes. */
const bodyLimitBytes = 64 * 1024

/** Some 15 kB each while idle, so that all of them take 60 MB. */
const defaultConnections = { total: 4096, perAddress: 1024 } as const

function neverBuilt(): never {
  throw new Error('Every route uses the compilers of createHttp.')
}

/** Without these, Fastify also loads its compilers of JSON Schema, 90 ms of each start. */
const ownCompilers = { compilersFactory: { buildValidator: neverBuilt, buildSerializer: neverBuilt } }

function compileSerializer({ schema }: { readonly schema: unknown }): (data: unknown) => string {
  const body = z.instanceof(z.ZodType).parse(schema)
  return (data) => JSON.stringify(z.encode(body, data))
}

export function createHttp(options: HttpOptions): FastifyInstance {
  const { answers, clients, connections, turns } = limitsOf(options)
  const http = Fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyLimitBytes,
    routerOptions: { maxParamLength: 16_384 },
    genReqId: () => newId('req', options.clock.nowMs()),
    requestIdHeader: false,
    schemaController: ownCompilers,
    // While the service stops, the guard refuses with the codes of the contract.
    return503OnClosing: false,
    serverFactory: (handler) => createListener(handler, connections),
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, connections),
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  })
  const underWay = new RequestsInProgress()
  const routeTable = new Map<string, Map<string, Access | undefined>>()
  http.addHook('onRoute', (added) => {
    const known = routeTable.get(added.url) ?? new Map<string, Access | undefined>()
    for (const method of [added.method].flat()) known.set(method, added.config?.access)
    routeTable.set(added.url, known)
  })
  http.decorate('routeTable', routeTable)
  addSharedLimits(http, options, turns)
  http.setValidatorCompiler(() => (value) => ({ value }))
  http.setSerializerCompiler(compileSerializer)
  http.decorateRequest('caller', null)
  http.decorateRequest('identifiedAtMs', 0)
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
    request.identifiedAtMs = options.clock.elapsedMs()
    await guard(request, options.isReady, clients)
    if (request.caller !== null) connections.trust(request.raw.socket, request.caller.tenantId)
    if (isGone(request.raw.socket)) return connections.drop(reply.hijack())
    if (isCounted(request)) whenResponseEnds(request, reply, underWay.begin(callerOf(request)))
  })
  checkAfterBody(http, options, clients, connections)
  const confirm = confirming(options.clock, clients)
  http.decorate('confirm', confirm)
  checkBeforeAnswer(http, confirm)
  answers.watch(http, confirm)
  http.addHook('onSend', async (_request, reply) => {
    // A connection that gets a response while the service stops must not stay open and keep the process
    // running.
    if (!options.isReady()) reply.header('connection', 'close')
  })
  paceRefusals(http, options.refusalPace ?? new RefusalPace(options.clock))
  reportRefusals(http, options.onRefusal)
  http.setErrorHandler((error, request, reply) => sendError(error, request, reply))
  let allowedMethods: ReturnType<typeof methodFinder> | null = null
  http.setNotFoundHandler((request, reply) => {
    allowedMethods ??= methodFinder(routeTable)
    const allowed = allowedMethods(request.url)
    if (allowed === null) throw new AppError('not_found', { sentence: 'There is nothing at this address.' })
    reply.header('allow', allowed)
    throw new AppError('method_not_allowed')
  })
  return http
}

/** What all organisations share, and each has a part of. */
function addSharedLimits(
  http: FastifyInstance,
  { clock, withReserve = (work) => work() }: HttpOptions,
  turns: LoopTurns,
): void {
  http.decorate('withReserve', withReserve)
  http.decorate('turns', turns)
  http.decorate('rates', new OperationRates(clock))
  http.decorate('paces', new OperationPaces(clock))
}

/** What may have changed while the body arrived. */
function checkAfterBody(
  http: FastifyInstance,
  { clock, isReady }: HttpOptions,
  clients: ClientLimits,
  connections: Connections,
): void {
  http.addHook('preHandler', async (request, reply) => {
    // A body of another form has reserved a part of a budget; its handler releases it.
    const holdsNothing = request.body === undefined || Buffer.isBuffer(request.body)
    if (holdsNothing && isGone(request.raw.socket)) return connections.drop(reply.hijack())
    // A sender that holds the end of its body back must not act with a token that has ended meanwhile.
    await whereIdentifiedLongAgo(request, clock, () => guard(request, isReady, clients))
  })
}

/** Calls `identifyAgain` where the caller was identified a second ago or more. */
async function whereIdentifiedLongAgo(
  request: FastifyRequest,
  clock: Clock,
  identifyAgain: () => Promise<void>,
): Promise<void> {
  const nowMs = clock.elapsedMs()
  if (request.caller === null || nowMs - request.identifiedAtMs < identifiedForMs) return
  request.identifiedAtMs = nowMs
  await identifyAgain()
}

/** Also while the service stops, so that answers under way are not cut off. */
function confirming(clock: Clock, clients: ClientLimits): Confirm {
  return (request) => whereIdentifiedLongAgo(request, clock, () => identify(request, clients))
}

/**
 * A read may have waited for minutes while its token was revoked. The answer to a change says what was done
 * while the token worked, so it is sent.
 */
function checkBeforeAnswer(http: FastifyInstance, confirm: Confirm): void {
  http.addHook('onSend', async (request, reply) => {
    const isRead = request.method === 'GET' || reply.requireCurrent !== null
    if (isRead && reply.statusCode < 400) await confirm(request)
  })
}

/** Delays refusals by a limit, before the error handler of the route sends them. */
function paceRefusals(http: FastifyInstance, pace: RefusalPace): void {
  http.addHook('onError', async (request, reply, error) => {
    if (request.caller === null || knownError(error).status !== 429) return
    await pace.turnOf(request.caller.tenantId, goneSignal(request, reply))
  })
}

function limitsOf({ answers, authenticate, clock, connections, turns: shared }: HttpOptions) {
  const turns = shared ?? new LoopTurns({ nowMs: elapsedMs })
  const addresses = new ClientAddresses([], 'x-forwarded-for')
  return {
    clients:
      authenticate instanceof ClientLimits
        ? authenticate
        : new ClientLimits({ clock, authenticate, addresses }),
    connections: connections ?? new Connections(defaultConnections, addresses, turns, clock),
    answers: answers ?? new ResponsesInProgress(clock),
    turns,
  }
}

async function guard(request: FastifyRequest, isReady: () => boolean, clients: ClientLimits): Promise<void> {
  const { access, isUnmetered } = request.routeOptions.config ?? {}
  const head = headOf(request, clients)
  if (access === undefined || access === 'public') {
    if (isUnmetered !== true) await clients.admit(head)
    // New senders often use a wrong address; they find it in the list of refusals.
    if (request.is404 && isReady()) request.sender = senderOf(await clients.find(head))
    return
  }
  if (!isReady()) throw new AppError('not_ready', { retryAfterSeconds: 1 })
  await identify(request, clients)
}

function headOf(request: FastifyRequest, clients: ClientLimits): RequestHead {
  const { operation, takesBasic, takesSignInCode } = request.routeOptions.config ?? {}
  return {
    method: request.method,
    headers: request.headers,
    address: clients.addressOf(request.raw),
    takesBasic: takesBasic === true,
    takesSignInCode: takesSignInCode === true,
    // Operations with a protocol of their own are exports of telemetry.
    storesTelemetry: operation?.protocol !== undefined,
  }
}

/** Finds the caller of a request to a guarded route. Throws where there is none, or its role may not call. */
async function identify(request: FastifyRequest, clients: ClientLimits): Promise<void> {
  const { access = 'public' } = request.routeOptions.config ?? {}
  const roles = access === 'public' ? [] : access
  const caller = await clients.identify(headOf(request, clients))
  request.sender = senderOf(caller)
  if (!roles.includes(caller.role)) {
    throw new AppError('role_not_permitted', {
      sentence: `This operation is for ${roles.join(', ')}; your token has the role ${caller.role}.`,
    })
  }
  request.caller = caller
}

function senderOf(caller: Caller | null): Sender | null {
  return caller === null ? null : { tenantId: caller.tenantId, actor: caller.requester }
}

/** Exports of telemetry have a budget of their own, by the size of their bodies. */
function isCounted({ caller, routeOptions }: FastifyRequest): boolean {
  const { access } = routeOptions.config ?? {}
  return caller !== null && Array.isArray(access) && !access.includes('ingest')
}

/**
 * Returns a function that finds the methods of a path for the Allow header; null where the path is unknown.
 * Patterns are compiled once.
 */
function methodFinder(table: RouteTable): (url: string) => string | null {
  const patterns = [...table].map(([pattern, methods]) => {
    const shape = pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/:[a-z_]+/g, '[^/]+')
      .replace(/\*/g, '.*')
    return { shape: new RegExp(`^${shape}$`), allowed: [...methods.keys()].sort().join(', ') }
  })
  return (url) => {
    const path = url.split('?')[0] ?? url
    return patterns.find(({ shape }) => shape.test(path))?.allowed ?? null
  }
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof InvalidInput) {
    request.refusedFor = 'invalid_input'
    return reply
      .status(422)
      .serializer(JSON.stringify)
      .type('application/json')
      .send({ detail: error.problems })
  }
  const known = currentRefusal(knownError(error))
  // A fault of the disk has a cause where an operation failed, and none where nothing was tried.
  const isDisk = ['storage_full', 'storage_unavailable', 'outcome_unknown'].includes(known.code)
  if (known.code === 'internal' || (isDisk && known.cause !== undefined))
    request.log.error({ err: error, requestId: request.id }, 'request failed')
  setRefusalHeaders(reply, known)
  return reply
    .status(known.status)
    .serializer(JSON.stringify)
    .type('application/json')
    .send({ detail: known.message, code: known.code, ...known.facts })
}
