// The two refusals that a feature may throw, and nothing else reaches a client as more than `internal`.
// The world's failures are AppErrors with a code of the catalogue; our own mistakes are assertions.

import { type ErrorCode, errorCatalogue, type ValidationProblem } from '../../contract/errors.ts'
import { shortText, shortValue } from './shortened.ts'
import type { StorageFault } from './storage-fault.ts'

interface AppErrorOptions {
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

/**
 * Long enough that senders don't add to the load of a disk in trouble, short enough to go on
 * soon after it is mended.
 */
export const storageRetrySeconds = 10

/** The refusal that a fault of the disk is for whoever asked for something to be written. */
export function storageRefusal(fault: StorageFault, cause: unknown): AppError {
  return fault === 'full'
    ? new AppError('storage_full', { cause })
    : new AppError('storage_unavailable', { cause, retryAfterSeconds: storageRetrySeconds })
}

/**
 * Input that breaks a rule: answered with status 422 and the problems found, as many as an answer has room
 * for.
 */
export class InvalidInput extends Error {
  readonly problems: readonly ValidationProblem[]

  constructor(found: readonly ValidationProblem[]) {
    const problems = withinAnswer(found)
    super(problems.map((problem) => `${problem.loc.join('.')}: ${problem.msg}`).join('; '))
    this.name = 'InvalidInput'
    this.problems = problems
  }
}

/** Problems in one answer: more than anybody mends at a time. */
export const problemsMax = 50

/** Bytes of JSON of all problems of an answer: as large as the bodies that they are about. */
const problemsBytesMax = 64 * 1024

/** Characters of one part of a place. */
const partMax = 100

/** Characters of a message, and of the texts in `ctx`: ours, as the words that a field takes. */
const ownMax = 1_000

/** Characters of the texts in `input`, and of one of them. */
const [inputMax, inputTextMax] = [500, 300]

/** Parts of a place; bodies have places of six. */
const partsMax = 12

/**
 * One problem of a body or parameter, with the defaults that most rules need. An absent input is null on the
 * wire; what is long is cut, since a problem may quote the whole body.
 */
export function problem(
  loc: readonly string[],
  type: string,
  msg: string,
  input: unknown,
  ctx: Record<string, unknown> = {},
): ValidationProblem {
  return {
    loc: shortPlace(loc),
    msg: shortText(msg, ownMax),
    type,
    input: shortValue(input ?? null, inputMax, inputTextMax),
    ctx: shortValue(ctx, ownMax, ownMax) as Record<string, unknown>,
  }
}

function shortPlace(loc: readonly string[]): string[] {
  const parts = loc.slice(0, partsMax).map((part) => shortText(part, partMax))
  return loc.length <= partsMax ? parts : [...parts, `… (${loc.length - partsMax} more)`]
}

const restType = 'more_problems'

/**
 * The first problems, and where there are more than an answer has room for, a last one that counts them. The
 * others are never made, so that a body of 30,000 mistakes costs no more than one of fifty.
 *
 * @param part of the request, such as `body`
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

/** Within the bounds of one answer; the counts of several lists that {@link firstProblems} cut become one. */
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
  const sentence = `${more} more problems are not shown; mend the others and send it again`
  return { loc: [part], msg: sentence, type: restType, input: null, ctx: { more } }
}
