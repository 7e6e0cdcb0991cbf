// What a client may do that has not shown a valid token: how often it may ask, and how often it may try a
// token. Counted by address, on HTTP and gRPC together. A valid token is never refused here, whatever others
// do from the same address, so that neither a proxy nor a shared network lets one client lock out another.

import type { ErrorCode } from '../../contract/errors.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { type Authenticate, hasCredential, type RequestHead } from './authentication.ts'
import type { ClientAddresses } from './limits/client-address.ts'
import { RateLimit } from './limits/rate-limit.ts'

/** What a request of either protocol tells of where it comes from. */
interface Sender {
  readonly socket: { readonly remoteAddress?: string | undefined } | undefined
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

interface ClientLimitsOptions {
  readonly clock: Clock
  readonly authenticate: Authenticate
  readonly addresses: ClientAddresses
}

/**
 * Requests of an address without a valid token. A page of the reference takes six, a monitoring system a few
 * a second; an answer takes some 0.1 ms, so that at this rate an address takes half a percent of a core.
 */
const anonymous = { burst: 300, perSecond: 50 }

/**
 * Tokens that an address may get wrong. Guessing one of 256 random bits is hopeless at any rate, so this is
 * about the work: a fleet of senders whose token was revoked keeps trying, and is told to wait.
 */
const failing = { burst: 100, perSecond: 5 }

/**
 * Some 100 bytes each. Who has more networks than this can forget their own past, and
 * gets nothing else for it.
 */
const keysMax = 20_000

const sentences = {
  anonymous: 'Too many requests without a valid access token from your address; repeat after Retry-After.',
  failing: 'Too many requests with a wrong access token from your address; repeat after Retry-After.',
} as const

export class ClientLimits {
  readonly #options: ClientLimitsOptions
  readonly #limits: Readonly<Record<keyof typeof sentences, RateLimit>>
  /** Refused for want of a valid token since the start, by code; those that were throttled too. */
  readonly failures = new Map<ErrorCode, number>()
  /** Answered 429 since the start. */
  readonly throttled = { anonymous: 0, failing: 0 }

  constructor(options: ClientLimitsOptions) {
    const { clock } = options
    this.#options = options
    this.#limits = {
      anonymous: new RateLimit({ ...anonymous, clock, keysMax }),
      failing: new RateLimit({ ...failing, clock, keysMax }),
    }
  }

  /** The key of the client that sent the request. */
  addressOf({ socket, headers }: Sender): string {
    const { addresses } = this.#options
    const named = headers[addresses.header]
    return addresses.keyOf(socket?.remoteAddress, typeof named === 'object' ? named.join() : named)
  }

  /**
   * Returns the caller. Throws why there is none, or `too_many_requests` where the
   * address has failed too often.
   */
  async identify(request: RequestHead): Promise<Caller> {
    try {
      const caller = await this.#options.authenticate(request)
      if (caller === null) throw new AppError('token_unknown')
      return caller
    } catch (error) {
      if (!(error instanceof AppError) || error.status !== 401) throw error
      this.failures.set(error.code, (this.failures.get(error.code) ?? 0) + 1)
      this.#require(error.code === 'unauthenticated' ? 'anonymous' : 'failing', request.address)
      throw error
    }
  }

  /**
   * Admits a request to what is open to everyone, or to nothing at all. Throws `too_many_requests` where the
   * address asks too often, unless the request has a valid token after all.
   */
  async admit(request: RequestHead): Promise<void> {
    try {
      this.#require('anonymous', request.address)
    } catch (refusal) {
      if (!hasCredential(request)) throw refusal
      await this.identify(request).catch(() => {
        throw refusal
      })
    }
  }

  #require(kind: keyof typeof sentences, address: string): void {
    const retryAfterSeconds = this.#limits[kind].take(address)
    if (retryAfterSeconds === null) return
    this.throttled[kind] += 1
    throw new AppError('too_many_requests', { sentence: sentences[kind], retryAfterSeconds })
  }
}
