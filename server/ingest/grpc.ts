// OTLP/gRPC: the Export method of the three collector services, over HTTP/2 without TLS. The bytes of a
// message use the same budget and decoder as those of OTLP/HTTP, so only the envelope differs. The order of
// checks is that of HTTP: readiness, token, role, size. The caller is known before a byte of the message is
// read, and of a refused call no message is read. Status codes and retry hints are those of the OTLP
// specification: only a client that receives RetryInfo should retry. gRPC is implemented here on `node:http2`
// and not by its library, because the library buffers a message before it reports its size
// (docs/decisions/0033).

import assert from 'node:assert/strict'
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { senders } from '../../contract/role.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { EndedToken } from '../core/ended-token.ts'
import type { LoopTurns } from '../core/turns/loop-turns.ts'
import { identifiedForMs, type RequestHead } from '../http/authentication.ts'
import type { ClientLimits } from '../http/client-limits.ts'
import type { RefusalPace } from '../http/limits/refusal-pace.ts'
import { knownError } from '../http/refusal.ts'
import { type OnRefusal, refusalReasonOf, type Sender } from '../http/refused-request.ts'
import { type Signal, signals } from '../telemetry/schema/tables.ts'
import type { BodyBudget } from './body-budget.ts'
import { type GrpcEncoding, GrpcMessage, grpcEncodings, incompleteMessage } from './grpc-message.ts'
import { type GrpcPeer, GrpcSessions, resetsMax, resetsPerSecond } from './grpc-sessions.ts'
import { grpcDetails, grpcStatusOf } from './grpc-status.ts'
import type { Intake } from './intake.ts'
import { encodeExportResponse } from './otlp/response.ts'
import { readBody } from './read-body.ts'
import type { ReadTurns } from './read-turns.ts'
import { OtlpDecodeError } from './rows/otlp-decode-error.ts'
import { claimedBytes } from './uncompress.ts'

interface GrpcIngestOptions {
  readonly intake: Intake
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  /** Largest message, before and after decompression, bytes. */
  readonly bodyLimitBytes: number
  readonly budget: BodyBudget
  readonly reads: ReadTurns
  readonly clients: ClientLimits
  /** The turns that HTTP uses too. */
  readonly turns: LoopTurns
  /** Of refusals by a limit, HTTP's too. */
  readonly refusalPace: RefusalPace
  /** False while starting or draining. */
  readonly isReady: () => boolean
  /** Called for every refused call of a known token. */
  readonly onRefusal: OnRefusal
}

const http2Bounds = {
  settings: {
    // The most open calls on one connection: the least that RFC 9113 recommends; a Collector has some ten.
    maxConcurrentStreams: 100,
    // The limit of Node's HTTP/1.1 server.
    maxHeaderListSize: 16 * 1024,
    enablePush: false,
  },
  maxHeaderListPairs: 64,
  streamResetBurst: resetsMax,
  streamResetRate: resetsPerSecond,
  maxSessionInvalidFrames: 100,
}

/**
 * For connections of a trusted proxy. nghttp2 can't tell the clients of one connection apart, so with its
 * limit one client could end the calls of all. Each client is limited by its address instead.
 */
const proxyBounds = { ...http2Bounds, streamResetBurst: 1_000_000, streamResetRate: 1_000_000 }

/**
 * How long calls and connections may take to end when the service stops: longer than the longest delay of a
 * commit.
 */
const graceMs = 10_000

const okStatus = '0'
const unimplemented = '12'

const signalByPath: ReadonlyMap<string, Signal> = new Map(signals.map((signal) => [pathOf(signal), signal]))

export class GrpcIngest {
  readonly #options: GrpcIngestOptions
  readonly #server: Server
  readonly #sessions: GrpcSessions

  constructor(options: GrpcIngestOptions) {
    this.#options = options
    this.#sessions = new GrpcSessions(options.clock)
    const [direct, proxied] = [http2Bounds, proxyBounds].map((bounds) => createHttp2Server(bounds))
    assert(direct !== undefined && proxied !== undefined)
    this.#server = createServer((socket) => {
      const { clients } = options
      const isProxy = clients.isProxy(socket.remoteAddress)
      const peer = { address: clients.addressOf({ socket, headers: {} }), isProxy }
      this.#connect(isProxy ? proxied : direct, peer, socket)
    })
    for (const http2 of [direct, proxied]) {
      http2.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) =>
        this.#receive(stream, headers),
      )
    }
  }

  /**
   * The session begins while the connection is announced. Where none begins, the listener must not take the
   * session of the next connection, which is of another peer.
   */
  #connect(http2: Http2Server, peer: GrpcPeer, socket: Socket): void {
    const begin = (session: ServerHttp2Session) => {
      // What a client does to its connection is not an error of the service.
      session.on('error', () => {})
      this.#sessions.add(session, peer, socket)
    }
    http2.once('session', begin)
    http2.emit('connection', socket)
    http2.off('session', begin)
  }

  /** Listens and returns the port. Throws where the port is in use. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port }, () => {
        this.#server.removeListener('error', reject)
        const address = this.#server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  }

  /** Accepts no new calls and lets running ones end within the grace period. */
  async close(): Promise<void> {
    if (this.#server.listening) this.#server.close()
    await this.#sessions.close(graceMs)
  }

  #receive(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => {})
    const { session } = stream
    const { clients, logger, turns } = this.#options
    const address = clients.addressOf({ socket: session?.socket, headers })
    const isProxied = this.#sessions.isProxied(session)
    if (isProxied) {
      stream.once('close', () => {
        // The end of a connection ends all of its calls, which is nobody's reset.
        const isReset = stream.rstCode !== constants.NGHTTP2_NO_ERROR && session?.destroyed === false
        if (isReset) this.#sessions.countResetOf(address)
      })
      if (this.#sessions.resetsTooMany(address)) {
        respondOnce(stream, refusalHeaders(tooManyResets()))
        return
      }
    }
    const noteFailure = (err: unknown) => logger.error({ err }, 'a call could not be answered')
    turns.take(this.#sessions.ownerOf(session, address), () => {
      if (!stream.destroyed) return void this.#answer(stream, headers, address).catch(noteFailure)
      if (!isProxied) this.#sessions.countReset(session)
      return false
    })
  }

  async #answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, address: string): Promise<void> {
    const { session } = stream
    let sender: Sender | null = null
    this.#sessions.callBegins(session)
    try {
      const signal = signalByPath.get(headers[':path'] ?? '')
      const encoding = encodingOf(headers)
      if (!isGrpc(headers) || signal === undefined || encoding === undefined) {
        if (!isGrpc(headers) || signal === undefined) this.#sessions.strike(session)
        await this.#options.clients.admit(headOf(headers, address))
        return respondOnce(stream, notImplemented(headers, signal === undefined))
      }
      const identify = () => this.#identify(headers, address)
      const caller = await identify()
      sender = { tenantId: caller.tenantId, actor: caller.requester }
      requireSendingRole(caller)
      succeed(stream, await this.#take(signal, encoding, stream, { caller, identify }))
    } catch (error) {
      const known = refusalOf(error)
      this.#report(known instanceof EndedToken ? known.sender : sender, known, headers)
      if (known.status === 401 || known.code === 'too_many_requests') this.#sessions.strike(session)
      if (known.code === 'internal') this.#options.logger.error({ err: error }, 'an export failed')
      if (sender !== null && known.status === 429) {
        await this.#options.refusalPace.turnOf(sender.tenantId, closedSignal(stream))
      }
      respondOnce(stream, refusalHeaders(known))
    } finally {
      this.#sessions.callEnds(session)
    }
  }

  async #take(
    signal: Signal,
    encoding: GrpcEncoding,
    stream: ServerHttp2Stream,
    { caller, identify }: { readonly caller: Caller; readonly identify: () => Promise<Caller> },
  ): Promise<Buffer> {
    const { placement, tenantId } = caller
    this.#sessions.isKnown(stream.session, tenantId)
    const place = { tenantId, placement }
    const { bodyLimitBytes: limitBytes, clock } = this.#options
    const sinceMs = clock.elapsedMs()
    const { body, coding } = await this.#read(tenantId, encoding, stream)
    try {
      // As over HTTP: a token that has ended while its message arrived sends nothing.
      if (clock.elapsedMs() - sinceMs >= identifiedForMs) await identify()
      const [result] = await this.#options.intake.take(place, signal, {
        bodyBytes: claimedBytes(coding, body.bytes, limitBytes),
        job: () => {
          const [bytes, receivedNs] = [body.bytes, clock.nowNs()]
          const encoding = 'protobuf'
          return { protocol: 'otlp', signal, encoding, coding, body: bytes, limitBytes, place, receivedNs }
        },
        release: () => body.release(),
      })
      assert(result)
      const { rejected, reasons } = result
      return encodeExportResponse(signal, 'protobuf', { rejected, message: reasons })
    } finally {
      body.release()
    }
  }

  #report(sender: Sender | null, { code, status }: AppError, headers: IncomingHttpHeaders): void {
    if (sender === null) return
    const path = headers[':path'] ?? ''
    this.#options.onRefusal({
      sender,
      reason: refusalReasonOf(code),
      status,
      protocol: 'grpc',
      method: 'POST',
      path,
      hasOperation: true,
    })
  }

  async #identify(headers: IncomingHttpHeaders, address: string): Promise<Caller> {
    if (!this.#options.isReady()) throw new AppError('not_ready', { retryAfterSeconds: 1 })
    return this.#options.clients.identify(headOf(headers, address))
  }

  async #read(tenantId: string, encoding: GrpcEncoding, stream: ServerHttp2Stream) {
    const { bodyLimitBytes: limitBytes, budget, reads } = this.#options
    // The caller may have disconnected while it was authenticated; then the stream emits nothing more.
    if (stream.destroyed) throw incompleteMessage()
    const message = new GrpcMessage(encoding, limitBytes)
    // Errors after the refusal concern nobody.
    message.on('error', () => {})
    stream.once('close', () => message.destroy(incompleteMessage()))
    const body = readBody(
      { tenantId, incoming: stream, payload: message, declaredBytes: 0 },
      { limitBytes, budget, reads },
    )
    stream.pipe(message)
    return { body: await body, coding: message.coding }
  }
}

function headOf(headers: IncomingHttpHeaders, address: string): RequestHead {
  return { method: 'POST', headers, address, takesBasic: true, storesTelemetry: true }
}

function tooManyResets(): AppError {
  return new AppError('too_many_requests', {
    sentence: 'Too many cancelled calls from your address; repeat later.',
    retryAfterSeconds: 1,
  })
}

function requireSendingRole({ role }: Caller): void {
  if (senders.some((sender) => sender === role)) return
  throw new AppError('role_not_permitted', {
    sentence: `This operation is for ${senders.join(', ')}; your token has the role ${role}.`,
  })
}

/** Such as `/opentelemetry.proto.collector.trace.v1.TraceService/Export`. */
function pathOf(signal: Signal): string {
  const [folder, name] =
    signal === 'traces' ? ['trace', 'Trace'] : [signal, `${signal[0]?.toUpperCase()}${signal.slice(1)}`]
  return `/opentelemetry.proto.collector.${folder}.v1.${name}Service/Export`
}

function isGrpc(headers: IncomingHttpHeaders): boolean {
  return (
    headers[':method'] === 'POST' &&
    /^application\/grpc(?:\+proto)?(?:;|$)/.test(headers['content-type'] ?? '')
  )
}

function encodingOf(headers: IncomingHttpHeaders): GrpcEncoding | undefined {
  const named = headers['grpc-encoding'] ?? 'identity'
  return grpcEncodings.find((encoding) => encoding === named)
}

const commonHeaders = { ':status': 200, 'content-type': 'application/grpc+proto' }
const acceptedEncodings = { 'grpc-accept-encoding': grpcEncodings.join() }

function notImplemented(headers: IncomingHttpHeaders, isUnknownMethod: boolean) {
  if (!isGrpc(headers)) return { ':status': 415 }
  const sentence = isUnknownMethod
    ? `There is no method ${headers[':path']?.slice(0, 200)}.`
    : `The compression ${headers['grpc-encoding']} is not understood; send ${grpcEncodings.join(', ')}.`
  return { ...commonHeaders, ...acceptedEncodings, ...statusHeaders(unimplemented, sentence) }
}

function refusalHeaders(refusal: AppError) {
  return {
    ...commonHeaders,
    ...statusHeaders(String(grpcStatusOf(refusal)), refusal.message),
    'grpc-status-details-bin': grpcDetails(refusal).toString('base64'),
  }
}

/** Percent-encodes the sentence, as gRPC over HTTP/2 requires. */
function statusHeaders(status: string, sentence: string) {
  return { 'grpc-status': status, 'grpc-message': encodeURI(sentence.toWellFormed()) }
}

/** Aborts when the stream closes. */
function closedSignal(stream: ServerHttp2Stream): AbortSignal {
  const gone = new AbortController()
  if (isOver(stream)) gone.abort()
  stream.once('close', () => gone.abort())
  return gone.signal
}

/** A stream that its client has reset is closed, and destroyed only once what it sent has been read. */
function isOver(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed
}

/** Responds with headers only. The rest of the message is not read. */
function respondOnce(stream: ServerHttp2Stream, headers: Readonly<Record<string, string | number>>): void {
  if (isOver(stream) || stream.headersSent) return
  stream.respond(headers, { endStream: true })
  if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
}

function succeed(stream: ServerHttp2Stream, answer: Buffer): void {
  if (isOver(stream)) return
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(answer.length, 1)
  stream.respond({ ...commonHeaders, ...acceptedEncodings }, { waitForTrailers: true })
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': okStatus }))
  stream.end(Buffer.concat([prefix, answer]))
}

function refusalOf(error: unknown): AppError {
  return error instanceof OtlpDecodeError
    ? new AppError('bad_request', { sentence: error.message, cause: error })
    : knownError(error)
}
