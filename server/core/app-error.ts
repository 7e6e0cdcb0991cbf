// The two refusals that a feature may throw, and nothing else reaches a client as more than `internal`.
// The world's failures are AppErrors with a code of the catalogue; our own mistakes are assertions.

import { type ErrorCode, errorCatalogue, type ValidationProblem } from '../../contract/errors.ts'
import type { StorageFault } from './storage-fault.ts'

export interface AppErrorOptions {
  /** Replaces the catalogue's sentence where more can be said. Never a secret, never telemetry. */
  readonly sentence?: string
  readonly cause?: unknown
  /** Seconds, sent as Retry-After. */
  readonly retryAfterSeconds?: number
  /** Joins `detail` and `code` in the body. Never a secret. */
  readonly facts?: Readonly<Record<string, unknown>>
}

export class AppError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterSeconds: number | undefined
  readonly facts: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(options.sentence ?? errorCatalogue[code].sentence, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.status = errorCatalogue[code].status
    this.retryAfterSeconds = options.retryAfterSeconds
    this.facts = options.facts ?? {}
  }
}

/** Long enough that senders don't add to the load of a disk in trouble, short enough to go on soon after it is mended. */
export const storageRetrySeconds = 10

/** The refusal that a fault of the disk is for whoever asked for something to be written. */
export function storageRefusal(fault: StorageFault, cause: unknown): AppError {
  return fault === 'full'
    ? new AppError('storage_full', { cause })
    : new AppError('storage_unavailable', { cause, retryAfterSeconds: storageRetrySeconds })
}

/** Input that breaks a rule: answered with status 422 and every problem found. */
export class InvalidInput extends Error {
  readonly problems: readonly ValidationProblem[]

  constructor(problems: readonly ValidationProblem[]) {
    super(problems.map((problem) => `${problem.loc.join('.')}: ${problem.msg}`).join('; '))
    this.name = 'InvalidInput'
    this.problems = problems
  }
}

/** One problem of a body or parameter, with the defaults that most rules need. An absent input is null on the wire. */
export function problem(
  loc: readonly string[],
  type: string,
  msg: string,
  input: unknown,
  ctx: Record<string, unknown> = {},
): ValidationProblem {
  return { loc: [...loc], msg, type, input: input ?? null, ctx }
}
