// Answers that are on their way to a client, and how much of them may lie here unread. An answer is written
// in pieces as the client takes them, so it is known when it takes none. Whoever has too much unread gets no
// further large answer; whoever takes too little of one in a while loses the connection; and of all answers
// together the largest holder's oldest one goes first. So nobody fills the memory by asking and not reading,
// and nobody else pays for it.

import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'

export interface AnswerLimits {
  /** Unread bytes of an organisation; one answer is let out whatever its size. */
  readonly ownerBytes: number
  /** Unread bytes of everybody. */
  readonly totalBytes: number
  /** How long a client may take for {@link leastBytes}, or for the rest of the answer. */
  readonly patienceMs: number
  readonly leastBytes: number
}

const mebibyte = 1024 * 1024

export const answerLimits: AnswerLimits = {
  /** Several times what the panels of a page hold, and an eighth of the total. */
  ownerBytes: 32 * mebibyte,
  /** A tenth of the memory that the service is meant to live in. */
  totalBytes: 256 * mebibyte,
  /** As long as a train is in a tunnel. */
  patienceMs: 30_000,
  /** 17 kB a second: a poor mobile line has twice that. */
  leastBytes: 512 * 1024,
}

/**
 * What is written at once. An answer that is no larger is never held back: the system's own buffers take it.
 */
const pieceBytes = 64 * 1024

/** Clients read within seconds, or not at all. */
const retryAfterSeconds = 1

/** Without a reason, Node makes an error with a stack for each answer that ends. */
const ended = 'ended'

interface Answer {
  readonly owner: string
  readonly reply: FastifyReply
  readonly ended: AbortController
  /** All of it, to the end: what was taken is let go with the rest. Of a stream, one piece. */
  readonly unreadBytes: number
  takenBytes: number
  /** Whether it waits for its client, and not for whoever makes it. */
  isOffered: boolean
}

export class AnswersUnderWay {
  readonly #clock: Clock
  readonly #limits: AnswerLimits
  /** By owner, oldest first. */
  readonly #open = new Map<string, Set<Answer>>()
  readonly #bytes = new Map<string, number>()
  #totalBytes = 0
  /** Since the start: requests that got 429, and answers whose connection was closed. */
  readonly totals = { refused: 0, givenUp: 0 }

  constructor(clock: Clock, limits: AnswerLimits = answerLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Bytes of answers that are not read to their end. */
  get unreadBytes(): number {
    return this.#totalBytes
  }

  /**
   * Counts every answer of the service. To be called behind the guard's hook, which says who is asking.
   */
  watch(http: FastifyInstance): void {
    http.addHook('onRequest', async (request) => {
      // Nothing that changes or brings something has to wait for a reader.
      if (request.method === 'GET' && request.caller !== null) this.#requireRoom(ownerOf(request), 0)
    })
    http.addHook('onSend', async (request, reply, payload) => this.#send(request, reply, payload))
  }

  #send(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
    const owner = ownerOf(request)
    if (request.method === 'HEAD' || payload === null || payload === undefined) return payload
    if (payload instanceof Readable)
      return Readable.from(this.#pieces(this.#begin(owner, reply, pieceBytes), payload))
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
    const bytes = Buffer.byteLength(payload)
    if (bytes <= pieceBytes) {
      this.#begin(owner, reply, bytes)
      return payload
    }
    this.#requireRoom(owner, bytes)
    reply.header('content-length', bytes)
    const whole = typeof payload === 'string' ? Buffer.from(payload) : payload
    return Readable.from(this.#pieces(this.#begin(owner, reply, bytes), piecesOf(whole)))
  }

  /** Throws `too_many_requests` where so many more bytes are too many for those who have some already. */
  #requireRoom(owner: string, bytes: number): void {
    const unread = this.#bytes.get(owner) ?? 0
    if (unread === 0 || unread + bytes <= this.#limits.ownerBytes) return
    this.totals.refused += 1
    throw new AppError('too_many_requests', {
      sentence: `${Math.ceil(unread / mebibyte)} MiB of answers to your organisation are not read yet; read them, and repeat after Retry-After.`,
      retryAfterSeconds,
    })
  }

  #begin(owner: string, reply: FastifyReply, unreadBytes: number): Answer {
    const answer = { owner, reply, ended: new AbortController(), unreadBytes, takenBytes: 0, isOffered: true }
    const open = this.#open.get(owner) ?? new Set()
    this.#open.set(owner, open.add(answer))
    this.#count(owner, unreadBytes)
    const end = () => this.#end(answer)
    // Handed over to the system as a whole, or given up.
    reply.raw.once('finish', end)
    reply.raw.once('close', end)
    this.#makeRoom()
    // Most have ended by then.
    setImmediate(() => void this.#watchEnd(answer))
    return answer
  }

  #end(answer: Answer): void {
    if (answer.ended.signal.aborted) return
    answer.ended.abort(ended)
    this.#count(answer.owner, -answer.unreadBytes)
    const open = this.#open.get(answer.owner)
    open?.delete(answer)
    if (open?.size !== 0) return
    this.#open.delete(answer.owner)
    this.#bytes.delete(answer.owner)
  }

  #count(owner: string, bytes: number): void {
    this.#totalBytes += bytes
    this.#bytes.set(owner, (this.#bytes.get(owner) ?? 0) + bytes)
  }

  /** The pieces as the client takes them. */
  async *#pieces(answer: Answer, source: AsyncIterable<unknown> | Iterable<unknown>) {
    answer.isOffered = false
    for await (const piece of source) {
      answer.isOffered = true
      const bytes = typeof piece === 'string' || Buffer.isBuffer(piece) ? Buffer.byteLength(piece) : 0
      yield piece
      answer.takenBytes += bytes
      answer.isOffered = false
    }
    answer.isOffered = true
  }

  /** Waits for the end of an answer, and gives it up once its client takes too little of it. */
  async #watchEnd(answer: Answer): Promise<void> {
    const { patienceMs, leastBytes } = this.#limits
    while (!answer.ended.signal.aborted) {
      const before = answer.takenBytes
      await this.#clock.sleep(patienceMs, answer.ended.signal)
      if (answer.isOffered && answer.takenBytes - before < leastBytes) this.#giveUp(answer)
    }
  }

  /** Gives up the oldest answers of whoever holds most, until all together are within the total. */
  #makeRoom(): void {
    while (this.#totalBytes > this.#limits.totalBytes) {
      const [most] = [...this.#bytes].reduce((a, b) => (b[1] > a[1] ? b : a))
      const [oldest] = this.#open.get(most) ?? []
      if (oldest === undefined) return
      this.#giveUp(oldest)
    }
  }

  #giveUp(answer: Answer): void {
    if (answer.ended.signal.aborted) return
    this.totals.givenUp += 1
    this.#end(answer)
    answer.reply.log.warn({ requestId: answer.reply.request.id }, 'an answer was not read and is given up')
    answer.reply.raw.destroy()
  }
}

/** An organisation; of those who show no token, the address. */
function ownerOf(request: FastifyRequest): string {
  return request.caller?.tenantId ?? `address ${request.ip}`
}

function* piecesOf(whole: Buffer): Generator<Buffer> {
  for (let at = 0; at < whole.length; at += pieceBytes) yield whole.subarray(at, at + pieceBytes)
}
