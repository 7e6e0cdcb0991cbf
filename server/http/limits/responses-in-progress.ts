// Watches responses until their clients have read them, and limits the memory of unread ones. A response is
// written in pieces as the client reads them, so it is known when the client does not read. A client that
// reads too little in a time loses its connection. Of an organisation with too much unread, only a line or
// branch of tokens with less than an equal share gets a further response. Of an organisation with twice as
// much, and of all together, the oldest response of who has the most is ended first. So a client that
// requests and does not read can't fill the memory, and neither other organisations nor an owner who looks
// for its token are affected. And a response ends where it may no longer be sent: no piece of it leaves the
// process after something in it was hidden, or a second after its caller's token has ended.

import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { Shares, unknownLine } from './shares.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Throws where the response may no longer be sent; see {@link ResponsesInProgress.endOutdated}. */
    requireCurrent: (() => void) | null
  }
}

/** Throws where the caller of a request may read no further. */
export type Confirm = (request: FastifyRequest) => Promise<void>

export interface ResponseLimits {
  /**
   * Unread bytes of an organisation; a single response may have any size. Above it, a line or branch of
   * tokens with less than an equal share of it is not refused.
   */
  readonly ownerBytes: number
  /** Unread bytes of all. */
  readonly totalBytes: number
  /** How long a client may take for {@link leastBytes}, or for the rest of the response. */
  readonly pieceTimeoutMs: number
  readonly leastBytes: number
}

const mebibyte = 1024 * 1024

export const responseLimits: ResponseLimits = {
  /** Several times the data of a page's panels, and an eighth of the total. */
  ownerBytes: 32 * mebibyte,
  /** A tenth of the memory for which the service is designed. */
  totalBytes: 256 * mebibyte,
  /** Long enough for a client that has no connection for a moment, such as in a tunnel. */
  pieceTimeoutMs: 30_000,
  /** 17 kB a second: a poor mobile connection has twice that. */
  leastBytes: 512 * 1024,
}

/**
 * The size of a piece. A response of this size or less is written at once: the buffers of the system accept
 * it.
 */
const pieceBytes = 64 * 1024

/**
 * The most that an organisation has unread, as a multiple of its limit. Three lines or branches, one after
 * another, get less than that with their equal shares; it is reached by more of them.
 */
const sharesMax = 2

/** Clients read within seconds, or not at all. */
const retryAfterSeconds = 1

/** Without a reason, Node creates an error with a stack for each response that ends. */
const ended = 'ended'

/** The organisation, the line and the branch of tokens; without a token the address instead of the first. */
type Owner = readonly [string, string, string]

interface OpenResponse {
  readonly owner: Owner
  readonly reply: FastifyReply
  readonly ended: AbortController
  readonly requireCurrent: (() => void) | null
  /** The whole body, until the end: the part that was read is freed with the rest. Of a stream, one piece. */
  readonly unreadBytes: number
  takenBytes: number
  /** Whether it waits for its client, and not for its source. */
  isOffered: boolean
}

export class ResponsesInProgress {
  readonly #clock: Clock
  readonly #limits: ResponseLimits
  /** Oldest first. */
  readonly #open = new Set<OpenResponse>()
  /** Bytes of all, divided by owner. */
  readonly #unread = new Shares()
  /**
   * Since the start: requests that were refused with 429, responses that were not read, and responses that
   * could no longer be sent. The connections of both are closed.
   */
  readonly totals = { refused: 0, givenUp: 0, outdated: 0 }

  constructor(clock: Clock, limits: ResponseLimits = responseLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Bytes of responses that are not read to their end. */
  get unreadBytes(): number {
    return this.#unread.amount
  }

  /** Counts every response of the service. Call it after the guard's hook, which identifies the caller. */
  watch(http: FastifyInstance, confirm: Confirm): void {
    http.decorateReply('requireCurrent', null)
    http.addHook('onRequest', async (request) => {
      // Requests that change or send something never wait for a reader.
      if (request.method === 'GET' && request.caller !== null) this.#requireRoom(ownerOf(request), 0)
    })
    http.addHook('onSend', async (request, reply, payload) => this.#send(request, reply, payload, confirm))
  }

  /**
   * Ends the responses of an organisation that may no longer be sent, with their connections. Called when
   * something was hidden, before that is acknowledged. What the client's system has received stays there.
   */
  endOutdated(organisation: string): void {
    for (const answer of [...this.#open]) {
      if (answer.owner[0] !== organisation || answer.requireCurrent === null) continue
      try {
        answer.requireCurrent()
      } catch {
        this.#cutOff(answer, 'telemetry in a response was hidden before its client had read it')
      }
    }
  }

  #cutOff(answer: OpenResponse, reason: string): void {
    if (answer.ended.signal.aborted) return
    this.totals.outdated += 1
    this.#end(answer)
    cut(answer.reply, reason)
  }

  #send(request: FastifyRequest, reply: FastifyReply, payload: unknown, confirm: Confirm): unknown {
    const owner = ownerOf(request)
    requireCurrent(reply)
    if (request.method === 'HEAD' || payload === null || payload === undefined) return payload
    if (payload instanceof Readable)
      return Readable.from(this.#pieces(this.#begin(owner, reply, pieceBytes), payload, confirm))
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
    const bytes = Buffer.byteLength(payload)
    if (bytes <= pieceBytes) {
      this.#begin(owner, reply, bytes)
      return payload
    }
    this.#requireRoom(owner, bytes)
    reply.header('content-length', bytes)
    const whole = typeof payload === 'string' ? Buffer.from(payload) : payload
    return Readable.from(this.#pieces(this.#begin(owner, reply, bytes), piecesOf(whole), confirm))
  }

  /** Throws `too_many_requests` where this many more bytes are too many for who has some already. */
  #requireRoom([organisation, ...line]: Owner, bytes: number): void {
    const { ownerBytes } = this.#limits
    const parts = this.#unread.part(organisation)
    const unread = parts.amount
    if (unread === 0 || unread + bytes <= ownerBytes || parts.hasLess(line, ownerBytes, bytes)) return
    this.totals.refused += 1
    throw new AppError('too_many_requests', {
      sentence: `${Math.ceil(unread / mebibyte)} MiB of answers to your organisation are not read yet; read them, and repeat after Retry-After.`,
      retryAfterSeconds,
    })
  }

  #begin(owner: Owner, reply: FastifyReply, unreadBytes: number): OpenResponse {
    const answer: OpenResponse = {
      owner,
      reply,
      ended: new AbortController(),
      requireCurrent: reply.requireCurrent,
      unreadBytes,
      takenBytes: 0,
      isOffered: true,
    }
    this.#open.add(answer)
    this.#unread.add(owner, unreadBytes)
    const end = () => this.#end(answer)
    // Passed to the system completely, or given up.
    reply.raw.once('finish', end)
    reply.raw.once('close', end)
    // Where the client was gone before, neither comes any more.
    if (reply.raw.destroyed || reply.request.raw.socket.destroyed) end()
    this.#makeRoom(answer)
    // Most have ended by then.
    setImmediate(() => void this.#watchEnd(answer))
    return answer
  }

  #end(answer: OpenResponse): void {
    if (answer.ended.signal.aborted) return
    answer.ended.abort(ended)
    this.#unread.add(answer.owner, -answer.unreadBytes)
    this.#open.delete(answer)
  }

  /** Yields the pieces as the client reads them. */
  async *#pieces(answer: OpenResponse, source: AsyncIterable<unknown> | Iterable<unknown>, confirm: Confirm) {
    answer.isOffered = false
    for await (const piece of source) {
      try {
        await confirm(answer.reply.request)
      } catch {
        this.#cutOff(answer, 'the caller of a response may read no more of it')
        return
      }
      answer.isOffered = true
      const bytes = typeof piece === 'string' || Buffer.isBuffer(piece) ? Buffer.byteLength(piece) : 0
      yield piece
      answer.takenBytes += bytes
      answer.isOffered = false
    }
    answer.isOffered = true
  }

  /** Waits for the end of a response, and gives it up when its client reads too little of it. */
  async #watchEnd(answer: OpenResponse): Promise<void> {
    const { pieceTimeoutMs, leastBytes } = this.#limits
    while (!answer.ended.signal.aborted) {
      const before = answer.takenBytes
      await this.#clock.sleep(pieceTimeoutMs, answer.ended.signal)
      if (answer.isOffered && answer.takenBytes - before < leastBytes) this.#giveUp(answer)
    }
  }

  /** Gives up the oldest responses of who has the most, until the organisation and all are within limits. */
  #makeRoom({ owner: [organisation], unreadBytes }: OpenResponse): void {
    const { ownerBytes, totalBytes } = this.#limits
    // A single response may be larger.
    const most = Math.max(sharesMax * ownerBytes, unreadBytes)
    while (this.#unread.part(organisation).amount > most)
      this.#giveUpOldest([organisation, ...this.#unread.part(organisation).largest()])
    while (this.#unread.amount > totalBytes) this.#giveUpOldest(this.#unread.largest())
  }

  #giveUpOldest(owner: readonly string[]): void {
    const oldest = this.#open.values().find((answer) => answer.owner.every((name, i) => name === owner[i]))
    if (oldest === undefined) throw new Error('Bytes are counted of which no response is open.')
    this.#giveUp(oldest)
  }

  #giveUp(answer: OpenResponse): void {
    if (answer.ended.signal.aborted) return
    this.totals.givenUp += 1
    this.#end(answer)
    cut(answer.reply, 'a response was not read and is given up')
  }
}

/** Throws the refusal that is sent instead where the response may no longer be sent. */
function requireCurrent(reply: FastifyReply): void {
  try {
    reply.requireCurrent?.()
  } catch (refusal) {
    reply.requireCurrent = null
    throw refusal
  }
}

/**
 * Ends a connection by a reset: after an ordinary end the system would still send what the process has
 * passed to it, which may be megabytes.
 */
function cut({ log, raw, request }: FastifyReply, reason: string): void {
  log.warn({ requestId: request.id }, reason)
  raw.socket?.resetAndDestroy()
  raw.destroy()
}

function ownerOf(request: FastifyRequest): Owner {
  const { branch, root } = request.caller?.line ?? unknownLine
  return [request.caller?.tenantId ?? `address ${request.ip}`, root, branch]
}

function* piecesOf(whole: Buffer): Generator<Buffer> {
  for (let at = 0; at < whole.length; at += pieceBytes) yield whole.subarray(at, at + pieceBytes)
}
