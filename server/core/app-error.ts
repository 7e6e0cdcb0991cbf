// The two refusals that a feature may throw. Any other error reaches a client only as `internal`. Failures
// from outside are AppErrors with a code of the catalogue; our own mistakes are assertions.

import { type ErrorCode, errorCatalogue, type ValidationProblem } from '../../contract/errors.ts'
import { shortText, shortValue } from './shortened.ts'
import type { StorageFault } from './storage-fault.ts'

interface AppErrorOptions {
  /** Replaces the sentence of the catalogue where more is known. Never a secret, never telemetry. */
  readonly sentence?: string
  readonly cause?: unknown
  /** Seconds, sent as Retry-After. */
  readonly retryAfterSeconds?: number
  /** Added to `detail` and `code` in the body. Never a secret. */
  readonly facts?: Readonly<Record<string, unknown>>
  /** Called when the response is written. Throws where the facts may no longer be sent. */
  readonly requireCurrent?: () => void
}

export class AppError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly retryAfterSeconds: number | undefined
  readonly facts: Readonly<Record<string, unknown>>
  readonly requireCurrent: (() => void) | undefined

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(options.sentence ?? errorCatalogue[code].sentence, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.status = errorCatalogue[code].status
    this.retryAfterSeconds = options.retryAfterSeconds
    this.facts = options.facts ?? {}
    this.requireCurrent = options.requireCurrent
  }
}

/** Whether an error leaves open if the change is stored. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof AppError && error.code === 'outcome_unknown'
}

/**
 * Long enough that senders do not add load to a failing disk, short enough to continue soon after it is
 * repaired.
 */
export const storageRetrySeconds = 10

/** Returns the refusal for a client whose write failed because of the disk. */
export function storageRefusal(fault: StorageFault, cause: unknown): AppError {
  return fault === 'full'
    ? new AppError('storage_full', { cause })
    : new AppError('storage_unavailable', { cause, retryAfterSeconds: storageRetrySeconds })
}

/** Input that breaks a rule: status 422 with the problems, as many as a response may contain. */
export class InvalidInput extends Error {
  readonly problems: readonly ValidationProblem[]

  constructor(found: readonly ValidationProblem[]) {
    const problems = withinAnswer(found)
    super(problems.map((problem) => `${problem.loc.join('.')}: ${problem.msg}`).join('; '))
    this.name = 'InvalidInput'
    this.problems = problems
  }
}

/** The most problems in one response: more than a person corrects at once. */
export const problemsMax = 50

/** Bytes of JSON of all problems in a response: as large as the bodies that they are about. */
const problemsBytesMax = 64 * 1024

/** Characters of one part of a location. */
const partMax = 100

/**
 * Characters of a message, and of the texts in `ctx`, which are ours, such as the words that a field accepts.
 */
const ownMax = 1_000

/** Characters of all texts in `input`, and of one of them. */
const [inputMax, inputTextMax] = [500, 300]

/** Parts of a location; locations in bodies have up to six. */
const partsMax = 12

/**
 * Returns one problem of a body or parameter, with the defaults that most rules need. An absent input is null
 * on the wire. Long values are cut, because a problem may quote the whole body.
 */
export function problem(
  loc: readonly string[],
  type: string,
  msg: string,
  input: unknown,
  ctx: Record<string, unknown> = {},
): ValidationProblem {
  return {
    loc: shortLocation(loc),
    msg: shortText(msg, ownMax),
    type,
    input: shortValue(input ?? null, inputMax, inputTextMax),
    ctx: shortValue(ctx, ownMax, ownMax) as Record<string, unknown>,
  }
}

function shortLocation(loc: readonly string[]): string[] {
  const parts = loc.slice(0, partsMax).map((part) => shortText(part, partMax))
  return loc.length <= partsMax ? parts : [...parts, `… (${loc.length - partsMax} more)`]
}

const restType = 'more_problems'

/**
 * Returns the first problems and, where there are more than a response may contain, a last one that counts
 * the others. The others are never created, so that a body with 30,000 mistakes costs no more than one with
 * fifty.
 *
 * @param part the part of the request, such as `body`
 */
export function firstProblems(part: string, makers: Iterable<() => ValidationProblem>): ValidationProblem[] {
  const made: ValidationProblem[] = []
  let more = 0
  for (const make of makers) {
    if (made.length < problemsMax) made.push(make())
    else more++
  }
  return more === 0 ? made : [...made, restOf(part, more)]
}

/**
 * Limits the problems to those of one response; combines the counts where {@link firstProblems} cut several
 * lists.
 */
function withinAnswer(found: readonly ValidationProblem[]): ValidationProblem[] {
  const kept: ValidationProblem[] = []
  let [bytes, more, part] = [0, 0, '']
  for (const one of found) {
    if (more === 0 && one.type !== restType && kept.length < problemsMax) {
      bytes += Buffer.byteLength(JSON.stringify(one))
      if (bytes <= problemsBytesMax) {
        kept.push(one)
        continue
      }
    }
    if (more === 0) part = one.loc[0] ?? ''
    more += one.type === restType ? Number(one.ctx.more) : 1
  }
  return more === 0 ? kept : [...kept, restOf(part, more)]
}

function restOf(part: string, more: number): ValidationProblem {
  const sentence = `${more} more problems are not shown; correct the others and send it again`
  return { loc: [part], msg: sentence, type: restType, input: null, ctx: { more } }
}
