// Limits the requests in progress: of one token, of one organisation, and in all. Each takes memory until its
// response, also while it only waits, so a request above a limit is refused before its body is read. A token
// has a limit of its own, so that a program of a viewer can't keep the owner of the same organisation from an
// erasure. The limit in all refuses nobody who has less than an equal share of it, so that a dozen
// organisations together can't keep another one out.

import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'

interface RequestLimits {
  readonly byToken: number
  readonly byOrganisation: number
  /** Above it, an organisation with less than an equal share of it is not refused. */
  readonly inAll: number
}

/**
 * A browser has six connections to a service and a program seldom more than its cores. 32 of one token is
 * well above either; three such programs may work for an organisation at once. A thousand waiting requests
 * take some megabytes.
 */
export const requestLimits: RequestLimits = { byToken: 32, byOrganisation: 96, inAll: 1024 }

/** A refused client can retry when one of its requests has been answered. */
const retryAfterSeconds = 1

export class RequestsInProgress {
  readonly #limits: RequestLimits
  readonly #byToken = new Map<string, number>()
  readonly #byOrganisation = new Map<string, number>()
  #inAll = 0

  constructor(limits: RequestLimits = requestLimits) {
    this.#limits = limits
  }

  /**
   * Counts a request; returns the function that ends it, to be called once. Throws `too_many_requests` above
   * a limit.
   */
  begin({ requester, tenantId }: { readonly tenantId: string; readonly requester: Actor }): () => void {
    const token = `${tenantId} ${requester.kind} ${requester.id}`
    const ofToken = this.#byToken.get(token) ?? 0
    const ofOrganisation = this.#byOrganisation.get(tenantId) ?? 0
    const { byOrganisation, byToken, inAll } = this.#limits
    if (ofToken >= byToken) throw refused(`This token has ${ofToken} requests under way`)
    if (ofOrganisation >= byOrganisation)
      throw refused(`Your organisation has ${ofOrganisation} requests under way`)
    if (this.#inAll >= inAll && ofOrganisation >= inAll / this.#organisationsWith(tenantId))
      throw refused('The service has too many requests under way')
    add(this.#byToken, token, 1)
    add(this.#byOrganisation, tenantId, 1)
    this.#inAll++
    return () => {
      add(this.#byToken, token, -1)
      add(this.#byOrganisation, tenantId, -1)
      this.#inAll--
    }
  }

  /** Number of organisations with a request in progress, once this one has another. */
  #organisationsWith(tenantId: string): number {
    return this.#byOrganisation.size + (this.#byOrganisation.has(tenantId) ? 0 : 1)
  }
}

function refused(what: string): AppError {
  return new AppError('too_many_requests', {
    sentence: `${what}; wait for some of them, and repeat after Retry-After.`,
    retryAfterSeconds,
  })
}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
