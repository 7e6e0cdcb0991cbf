// Limits how often an organisation may use expensive operations: counting a selection, replaying a detector,
// signing. Each operation has a rate of its own for each organisation, so that using one too often does not
// limit the others. A branch of tokens that asks for less than a tenth of it is not refused for what the
// others ask, so that no token keeps an owner from revoking it.

import type { Rate } from '../../../contract/operation.ts'
import { AppError } from '../../core/app-error.ts'
import type { CallerLine } from '../../core/caller.ts'
import type { Clock } from '../../core/clock.ts'
import { organisationsKept, RateLimit } from './rate-limit.ts'

/** The parts of a rate that stay for a branch, and for all branches of a line beside its root. */
const ofBranch = 1 / 10
const ofLine = 1 / 2

/** Who asks: an organisation, and the line and branch of its token. */
export interface Requester {
  readonly tenantId: string
  readonly line?: CallerLine
}

/**
 * An organisation gets at most its rate and, for each token that the operator made, {@link ofBranch} and
 * {@link ofLine} of it: descendants of a root can't make more lines.
 */
interface OperationLimits {
  readonly organisation: RateLimit
  /** What branches used beyond the rate of the organisation, by line. */
  readonly line: RateLimit
  /** All that branches used: a branch that used its part within the rate has none beyond it. */
  readonly branch: RateLimit
}

export class OperationRates {
  readonly #clock: Pick<Clock, 'elapsedMs'>
  readonly #limits = new Map<string, OperationLimits>()

  constructor(clock: Pick<Clock, 'elapsedMs'>) {
    this.#clock = clock
  }

  /** Throws `too_many_requests` with the seconds after which the organisation may retry. */
  take({ line, tenantId }: Requester, operation: string, rate: Rate): void {
    const limits = this.#limits.get(operation) ?? this.#limitsOf(rate)
    this.#limits.set(operation, limits)
    const lineKey = `${tenantId} ${line?.root ?? ''}`
    const isFew = limits.branch.take(`${lineKey} ${line?.branch ?? ''}`) === null
    const retryAfterSeconds = limits.organisation.take(tenantId)
    if (retryAfterSeconds === null) return
    const isRoot = line !== undefined && line.branch === line.root
    if (isFew && (isRoot || limits.line.take(lineKey) === null)) return
    throw new AppError('too_many_requests', {
      sentence: `Your organisation may ask for this ${rate.perMinute} times a minute; repeat after Retry-After.`,
      retryAfterSeconds,
    })
  }

  #limitsOf({ burst, perMinute }: Rate): OperationLimits {
    const limit = (part: number) =>
      new RateLimit({
        clock: this.#clock,
        burst: Math.max(1, burst * part),
        perSecond: (perMinute / 60) * part,
        keysMax: organisationsKept,
      })
    return { organisation: limit(1), line: limit(ofLine), branch: limit(ofBranch) }
  }
}
