// HTTP requests of the console, made from the operations that the contract declares. The session cookie is
// added by the browser; no script sees a credential. Every failure is a `Refusal` of the service or an
// `Unreachable`, and never contains what was sent.

import type { z } from 'zod'
import type { ErrorCode, ValidationProblem } from '../../../contract/errors.ts'
import { type Operation, requestPath } from '../../../contract/operation.ts'
import { shownTokenHeaders } from './shown-token.ts'

/** The service responded with an error. */
export class Refusal extends Error {
  readonly status: number
  /** `invalid_input` where the service found problems; empty where a proxy responded. */
  readonly code: ErrorCode | 'invalid_input' | ''
  readonly problems: readonly ValidationProblem[]
  /** The body as it was sent; null where it is not JSON. */
  readonly body: unknown
  /** The id of the HTTP request in the log of the service. */
  readonly requestId: string | null
  /** Seconds to wait before a retry; null where the response doesn't say. */
  readonly retryAfterSeconds: number | null

  constructor(response: Response, body: unknown) {
    const { code, problems, sentence } = readRefusal(response, body)
    super(sentence)
    this.name = 'Refusal'
    this.status = response.status
    this.code = code
    this.problems = problems
    this.body = body
    this.requestId = response.headers.get('x-request-id')
    const seconds = Number(response.headers.get('retry-after'))
    this.retryAfterSeconds = Number.isFinite(seconds) && seconds > 0 ? seconds : null
  }
}

/** No response arrived: the browser is offline, or the service does not run. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('The service can’t be reached.', { cause })
    this.name = 'Unreachable'
  }
}

/** Texts of a query; a missing one is left out. */
type Query = Readonly<Record<string, string | undefined>>

interface Sent<Params, Body> {
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Calls an operation and returns the body of its response. */
export async function call<
  Result extends z.ZodType,
  Params extends z.ZodType,
  Search extends z.ZodType,
  Body extends z.ZodType,
  Headers extends z.ZodType,
>(
  operation: Operation<Result, Params, Search, Body, Headers>,
  { params, query = {}, body, headers, signal }: Sent<z.input<Params>, z.input<Body>> = {},
): Promise<z.output<Result>> {
  const path = requestPath(
    operation as unknown as Operation,
    params as Record<string, string>,
    present(query),
  )
  const response = await send(path, {
    method: operation.method,
    headers: {
      ...shownTokenHeaders(),
      ...headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  })
  const received = response.status === 204 ? undefined : await readJson(response)
  if (!response.ok) throw new Refusal(response, received)
  return received as z.output<Result>
}

async function send(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...request, credentials: 'same-origin', redirect: 'error' })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new Unreachable(error)
  }
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json()
  } catch {
    return null
  }
}

function present(query: Query): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined),
  )
}

function readRefusal(
  response: Response,
  body: unknown,
): Pick<Refusal, 'code' | 'problems'> & { readonly sentence: string } {
  const { code, detail } = (typeof body === 'object' ? (body ?? {}) : {}) as {
    code?: ErrorCode
    detail?: string | readonly ValidationProblem[]
  }
  if (Array.isArray(detail)) {
    const problems = detail as readonly ValidationProblem[]
    const sentence = problems.map(({ loc, msg }) => `${loc.at(-1)}: ${msg}`).join('. ')
    return { code: 'invalid_input', problems, sentence }
  }
  if (typeof detail === 'string' && code !== undefined) return { code, problems: [], sentence: detail }
  const sentence = `The address responded with ${response.status}, which is not a response of Lethe.`
  return { code: '', problems: [], sentence }
}
