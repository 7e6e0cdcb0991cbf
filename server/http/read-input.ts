// Reads the input of an operation once: every part by its schema, then the body by the rule of the feature.
// One refusal has all problems of all parts.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { ValidationProblem } from '../../contract/errors.ts'
import type { Operation } from '../../contract/operation.ts'
import { InvalidInput } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { readJsonBody } from '../core/input/json-body.ts'
import { type Parsed, type ReadPart, readPart, type SentBody } from '../core/input/parsed.ts'
import { callerOf, mediaTypeOf } from './request.ts'
import type { SentNames } from './sent-names.ts'

/** The input of a handler. */
export interface OperationInput<Params, Query, Body, Headers, Value> {
  /** With a signal that aborts when the client has disconnected. */
  readonly caller: Caller
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly headers: Headers
  /** The result of `parse`; undefined where there is no such rule. */
  readonly value: Value
  /** The media type of the body, without parameters. */
  readonly mediaType: string
  /** The Accept header; all of them where there are several. */
  readonly accept: string | undefined
}

/** The input of a rule across the fields of a body. */
export interface SentInput<Params, Body> extends SentBody<Body> {
  readonly caller: Caller
  /** Undefined where they are refused. */
  readonly params: Params | undefined
  readonly mediaType: string
}

/** How a feature reads the body further; see `Serving` of `serve.ts`. */
interface BodyRule<Params, Body, Value> {
  readonly parse?: (sent: SentInput<Params, Body>) => Parsed<Value> | Promise<Parsed<Value>>
  readonly onInvalid?: (caller: Caller, problems: readonly ValidationProblem[]) => Promise<void>
}

interface Reading {
  readonly request: FastifyRequest
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal
  readonly names: SentNames
}

const noParameters = z.strictObject({})

/** Throws InvalidInput with every problem of every part. */
export async function readInput<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Headers extends z.ZodType,
  Value,
>(
  operation: Operation<z.ZodType, Params, Query, Body, Headers>,
  rule: BodyRule<z.output<Params>, z.output<Body>, Value>,
  { names, request, signal }: Reading,
): Promise<OperationInput<z.output<Params>, z.output<Query>, z.output<Body>, z.output<Headers>, Value>> {
  const caller = { ...callerOf(request), signal }
  const mediaType = mediaTypeOf(request)
  const problems: ValidationProblem[] = []
  const read = <T extends z.ZodType>(part: string, schema: T | undefined, input: unknown) => {
    const found = readOptional(part, schema, input)
    problems.push(...found.problems)
    return found
  }
  const params = read('path', operation.params, request.params)
  const querySchema = operation.query ?? noParameters
  const query = read('query', querySchema, names.rename('query', querySchema, request.query, problems))
  const raw =
    operation.body === undefined
      ? undefined
      : names.rename('body', operation.body, rawBody(request, problems), problems)
  const isUnreadable = problems.some(({ type }) => type === 'json_invalid')
  const body = read('body', isUnreadable ? undefined : operation.body, raw)
  const sent = { caller, mediaType, raw, params: params.value, body: body.value, fields: body.fields }
  const parsed = isUnreadable ? undefined : await rule.parse?.(sent)
  if (parsed !== undefined && 'problems' in parsed) problems.push(...parsed.problems)
  const headers = readOptional('header', operation.headers, request.headers)
  problems.push(...headers.problems.map(underHeaderName))
  if (problems.length > 0) {
    await rule.onInvalid?.(caller, problems)
    throw new InvalidInput(problems)
  }
  if (parsed !== undefined && !('value' in parsed))
    throw new Error(`${operation.id} is refused without a problem.`)
  // Without a problem each part has its value, which the type of the parts can't express.
  return {
    caller,
    mediaType,
    accept: request.headers.accept,
    params: params.value as z.output<Params>,
    query: query.value as z.output<Query>,
    body: body.value as z.output<Body>,
    headers: headers.value as z.output<Headers>,
    value: parsed?.value as Value,
  }
}

/** A header is read by its name in lower case, and named in a problem as the standards spell it. */
function underHeaderName(found: ValidationProblem): ValidationProblem {
  const [part, name = '', ...rest] = found.loc
  const written = String(name).replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())
  return { ...found, loc: [String(part), written, ...rest] }
}

function readOptional<T extends z.ZodType>(
  part: string,
  schema: T | undefined,
  input: unknown,
): ReadPart<z.output<T>> {
  return schema === undefined ? { value: undefined, fields: {}, problems: [] } : readPart(part, schema, input)
}

function rawBody(request: FastifyRequest, problems: ValidationProblem[]): unknown {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const { value, problems: found } = readJsonBody(bytes)
  problems.push(...found)
  return value
}
