// Limits clients without a valid token: how often they may send a request, and how often they may try a
// token. Counted by address, for HTTP and gRPC together. A valid token is never refused here, whatever others
// do from the same address, so that a proxy or a shared network does not let one client lock out another. A
// refusal is sent after a delay, so that a client that repeats at once costs little per second.

import type { ErrorCode } from '../../contract/errors.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { loopOwner } from '../core/turns/loop-owner.ts'
import { workFor } from '../core/work-owner.ts'
import { type Authenticate, hasCredential, type RequestHead } from './authentication.ts'
import type { ClientAddresses } from './limits/client-address.ts'
import { RateLimit } from './limits/rate-limit.ts'

/** The source of a request of either protocol. */
interface Sender {
  readonly socket: { readonly remoteAddress?: string | undefined } | undefined
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

interface ClientLimitsOptions {
  readonly clock: Clock
  /** Delay of a refusal; a quarter of a second by default. */
  readonly refusalDelayMs?: number
  readonly authenticate: Authenticate
  readonly addresses: ClientAddresses
}

/**
 * Requests of an address without a valid token. A page of the reference takes six, a monitoring system a few
 * a second; a response takes some 0.1 ms, so at this rate an address takes half a percent of a core.
 */
const anonymous = { burst: 300, perSecond: 50 }

/**
 * Wrong tokens of an address. Guessing 256 random bits is hopeless at any rate; this limits the work: a fleet
 * of senders whose token was revoked continues to try, and must wait.
 */
const failing = { burst: 100, perSecond: 5 }

/** Connections answer one request at a time, so this limits each to four refusals a second. */
const refusalDelayMs = 250

/**
 * Some 100 bytes each. An attacker with more networks can make us forget its own history, which gains it
 * nothing else.
 */
const keysMax = 20_000

const sentences = {
  anonymous: 'Too many requests without a valid access token from your address; repeat after Retry-After.',
  failing: 'Too many requests with a wrong access token from your address; repeat after Retry-After.',
} as const

/** Refusals before any secret is looked up. */
const untried: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['unauthenticated', 'other_origin'])

export class ClientLimits {
  readonly #options: ClientLimitsOptions
  readonly #limits: Readonly<Record<keyof typeof sentences, RateLimit>>
  /**
   * Requests that were refused for lack of a valid token since the start, by code, including throttled ones.
   */
  readonly failures = new Map<ErrorCode, number>()
  /** Requests that were refused with 429 since the start. */
  readonly throttled = { anonymous: 0, failing: 0 }

  constructor(options: ClientLimitsOptions) {
    const { clock } = options
    this.#options = options
    this.#limits = {
      anonymous: new RateLimit({ ...anonymous, clock, keysMax }),
      failing: new RateLimit({ ...failing, clock, keysMax }),
    }
  }

  /** Whether the peer of a connection is a trusted proxy. */
  isProxy(peer: string | undefined): boolean {
    return this.#options.addresses.isProxy(peer)
  }

  /** Returns the key of the client that sent the request. */
  addressOf({ socket, headers }: Sender): string {
    const { addresses } = this.#options
    const named = headers[addresses.header]
    return addresses.keyOf(socket?.remoteAddress, typeof named === 'object' ? named.join() : named)
  }

  /**
   * Returns the caller. Throws the reason where there is none, or `too_many_requests` where the address has
   * failed too often.
   */
  async identify(request: RequestHead): Promise<Caller> {
    try {
      const caller = await this.#authenticate(request)
      if (caller === null) throw new AppError('token_unknown')
      return caller
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (error.status !== 401 && error.code !== 'other_origin') throw error
      this.failures.set(error.code, (this.failures.get(error.code) ?? 0) + 1)
      const kind = untried.has(error.code) ? 'anonymous' : 'failing'
      throw (await this.#refusal(kind, request.address)) ?? error
    }
  }

  /** What only this request asks is asked for its address: look-ups of tokens are shared by all. */
  #authenticate(request: RequestHead): Promise<Caller | null> {
    return workFor(loopOwner(null, request.address), () => this.#options.authenticate(request))
  }

  /** Returns the caller of a request to an unknown address; null where there is none. Limits nothing. */
  async find(request: RequestHead): Promise<Caller | null> {
    if (!hasCredential(request)) return null
    try {
      return await this.#authenticate(request)
    } catch (error) {
      if (error instanceof AppError) return null
      throw error
    }
  }

  /**
   * Admits a request to a public operation, or to an unknown address. Throws `too_many_requests` where the
   * address sends too many, unless the request has a valid token.
   */
  async admit(request: RequestHead): Promise<void> {
    const retryAfterSeconds = this.#limits.anonymous.take(request.address)
    if (retryAfterSeconds === null) return
    const caller = hasCredential(request) ? await this.identify(request).catch(() => null) : null
    if (caller === null) throw await this.#late('anonymous', retryAfterSeconds)
  }

  /** The refusal of an address that has failed too often, after the delay; null for others. */
  async #refusal(kind: keyof typeof sentences, address: string): Promise<AppError | null> {
    const retryAfterSeconds = this.#limits[kind].take(address)
    return retryAfterSeconds === null ? null : this.#late(kind, retryAfterSeconds)
  }

  async #late(kind: keyof typeof sentences, retryAfterSeconds: number): Promise<AppError> {
    const { clock, refusalDelayMs: delayMs = refusalDelayMs } = this.#options
    this.throttled[kind] += 1
    if (delayMs > 0) await clock.sleep(delayMs)
    return new AppError('too_many_requests', { sentence: sentences[kind], retryAfterSeconds })
  }
}
