// Limits the requests in progress: of one token, of one organisation, and in all. Each takes memory until its
// response, also while it only waits, so a request above a limit is refused before its body is read. Above a
// limit, only who has an equal share or more is refused: an organisation among all, a line of tokens in its
// organisation, a branch in its line. So neither other organisations nor another person's tokens can keep an
// owner from revoking one of them.

import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { CallerLine } from '../../core/caller.ts'
import { Shares, unknownLine } from './shares.ts'

interface RequestLimits {
  readonly byToken: number
  /** Above it, a line or branch with less than an equal share of it is not refused. */
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

/**
 * The most that the branches of an organisation get above its share, as a multiple of that. Whoever has the
 * secret of a root can make many branches, and each gets one request at least.
 */
const branchesMax = 2

/** A refused client can retry when one of its requests has been answered. */
const retryAfterSeconds = 1

interface Requester {
  readonly tenantId: string
  readonly requester: Actor
  readonly line?: CallerLine
}

export class RequestsInProgress {
  readonly #limits: RequestLimits
  readonly #byToken = new Map<string, number>()
  /** All, divided into organisations, their lines, and the branches of those. */
  readonly #all = new Shares()

  constructor(limits: RequestLimits = requestLimits) {
    this.#limits = limits
  }

  /**
   * Counts a request; returns the function that ends it, to be called once. Throws `too_many_requests` above
   * a limit.
   */
  begin({ line = unknownLine, requester, tenantId }: Requester): () => void {
    const token = `${tenantId} ${requester.kind} ${requester.id}`
    const ofToken = this.#byToken.get(token) ?? 0
    if (ofToken >= this.#limits.byToken) throw refused(`This token has ${ofToken} requests under way`)
    this.#requireShare(tenantId, line)
    const path = [tenantId, line.root, line.branch]
    add(this.#byToken, token, 1)
    this.#all.add(path, 1)
    return () => {
      add(this.#byToken, token, -1)
      this.#all.add(path, -1)
    }
  }

  #requireShare(tenantId: string, { branch, root }: CallerLine): void {
    const { byOrganisation, inAll } = this.#limits
    const organisation = this.#all.part(tenantId)
    const isFull = this.#all.amount >= inAll
    if (!isFull && organisation.amount < byOrganisation) return
    const share = isFull ? Math.min(byOrganisation, inAll / this.#all.partsWith(tenantId)) : byOrganisation
    if (organisation.amount < share || organisation.hasLess([root], share)) return
    const hasLess = organisation.hasLess([root, branch], share)
    if (hasLess && organisation.amount < branchesMax * share) return
    // There are as many roots as the operator made, so that one request of each is little.
    const isFirst = organisation.part(root).part(branch).amount === 0
    if (branch === root && root !== unknownLine.root && isFirst) return
    throw refused(
      organisation.amount >= byOrganisation
        ? `Your organisation has ${organisation.amount} requests under way`
        : 'The service has too many requests under way',
    )
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
