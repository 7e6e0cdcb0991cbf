// HTTP requests to a service, as any client sends them, from the operations that the contract declares. Every
// failure of a request becomes a sentence that says what to do; none contains the token.

import type { z } from 'zod'
import { ErrorBody, ValidationError, type ValidationProblem } from '../../../contract/errors.ts'
import { type Operation, requestPath } from '../../../contract/operation.ts'
import { CommandFailure, exitCodes } from '../failure.ts'
import type { Connection } from './settings.ts'

export interface ApiResponse<T> {
  readonly status: number
  readonly value: T
  /** The body as it was sent, also with fields that this version doesn't know. */
  readonly json: unknown
}

/** The HTTP request was not sent, or its response did not arrive completely. */
class ServiceUnreachable extends CommandFailure {
  /** Whether the service may have accepted the HTTP request. */
  readonly mayBeTaken: boolean

  constructor(message: string, mayBeTaken: boolean) {
    super(message, exitCodes.unreachable)
    this.mayBeTaken = mayBeTaken
  }
}

/** The service, or a proxy in front of it, returned an error. */
export class ServiceRefusal extends CommandFailure {
  readonly status: number
  /** The body as it was sent; null where it is not JSON. */
  readonly body: unknown
  /** Seconds to wait before a retry; 0 where the response doesn't say. */
  readonly retryAfterSeconds: number

  constructor(
    message: string,
    { retryAfterSeconds, status }: Received,
    body: unknown,
    details: readonly string[] = [],
  ) {
    super(message, statusesOfAbsence.has(status) ? exitCodes.unreachable : exitCodes.failed, details)
    this.status = status
    this.body = body
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Statuses of a service that starts or stops, and of a proxy that does not reach it. */
const statusesOfAbsence = new Set([502, 503, 504])

/** Whether a later retry may succeed. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ServiceUnreachable) return true
  return error instanceof ServiceRefusal && (error.status === 429 || statusesOfAbsence.has(error.status))
}

interface Received {
  readonly status: number
  readonly text: string
  readonly retryAfterSeconds: number
}

interface SentBody {
  readonly json?: unknown
  readonly idempotencyKey?: string
}

/** The parts of an HTTP request besides the token. */
interface Sent extends SentBody {
  /** Path parameters. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
}

export class ApiClient {
  readonly #connection: Connection
  /** Names of options by the location of a problem, such as `--until` for `body.range_end`. */
  readonly #options: Readonly<Record<string, string>>

  constructor(connection: Connection, options: Readonly<Record<string, string>> = {}) {
    this.#connection = connection
    this.#options = options
  }

  get url(): string {
    return this.#connection.url
  }

  /** Calls an operation and parses its response by the declaration. */
  async call<Result extends z.ZodType>(
    operation: Operation<Result>,
    { params, query, ...sent }: Sent = {},
  ): Promise<ApiResponse<z.output<Result>>> {
    const path = requestPath(operation, params, query)
    return this.#read(path, await this.#sendSafely(operation.method, path, sent), operation)
  }

  /** Returns the text of a response that is written to a file unchanged. */
  async callForText(operation: Operation, { params, query }: Sent = {}): Promise<string> {
    const received = await this.#send(operation.method, requestPath(operation, params, query))
    if (!isSuccess(received)) throw this.#refusalOf(received, jsonOf(received.text))
    return received.text
  }

  /**
   * Retries an HTTP request with an idempotency key once if its response was lost, because the key makes the
   * retry the same request.
   */
  async #sendSafely(method: string, path: string, sent: SentBody): Promise<Received> {
    try {
      return await this.#send(method, path, sent)
    } catch (error) {
      const mayRepeat = error instanceof ServiceUnreachable && error.mayBeTaken
      if (!mayRepeat || sent.idempotencyKey === undefined) throw error
      return this.#send(method, path, sent)
    }
  }

  async #send(method: string, path: string, { idempotencyKey, json }: SentBody = {}): Promise<Received> {
    const { token, url } = this.#connection
    let response: Response
    let text: string
    try {
      response = await fetch(`${url}${path}`, {
        method,
        // Following a redirect would send an erasure to an address that nobody configured.
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${token}`,
          ...(json !== undefined && { 'content-type': 'application/json' }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      })
      text = await response.text()
    } catch (error) {
      throw unreachable(url, error, method !== 'GET')
    }
    const { headers, status } = response
    if (status < 300 || status > 399) {
      return { status, text, retryAfterSeconds: Number(headers.get('retry-after') ?? 0) || 0 }
    }
    throw new CommandFailure(
      `${url} redirects to ${response.headers.get('location') ?? 'somewhere else'}. Set LETHE_URL to the address of the service itself.`,
      exitCodes.unreachable,
    )
  }

  #read<Result extends z.ZodType>(
    path: string,
    received: Received,
    { results }: Operation<Result>,
  ): ApiResponse<z.output<Result>> {
    const json = jsonOf(received.text)
    if (!isSuccess(received)) throw this.#refusalOf(received, json)
    const read = results[received.status]?.body.safeParse(json)
    if (read?.success === true) return { status: received.status, value: read.data, json }
    const [issue] = read?.error.issues ?? []
    const what =
      issue === undefined
        ? `status ${received.status}`
        : `${issue.path.join('.') || 'body'}: ${issue.message}`
    throw new CommandFailure(
      `${this.url}${path} responded in a form that this version doesn't know (${what}). Is that the address of a Lethe service of this version?`,
      exitCodes.unreachable,
    )
  }

  #refusalOf(received: Received, json: unknown): CommandFailure {
    const { status } = received
    const invalid = ValidationError.safeParse(json)
    if (status === 422 && invalid.success) {
      const problems = invalid.data.detail.map((problem) => `  ${this.#problemLine(problem)}`)
      return new ServiceRefusal('The service refused the request:', received, json, problems)
    }
    const known = ErrorBody.safeParse(json)
    if (known.success) {
      return new ServiceRefusal(`${known.data.detail} (${status} ${known.data.code})`, received, json)
    }
    const hint = 'which is not a refusal of a Lethe service; is LETHE_URL its address?'
    return new ServiceRefusal(`${this.url} responded with ${status}, ${hint}`, received, json)
  }

  #problemLine({ input, loc, msg }: ValidationProblem): string {
    const location = loc.join('.')
    const named = Object.keys(this.#options).find((one) => location === one || location.startsWith(`${one}.`))
    const option = named === undefined ? undefined : this.#options[named]
    const given = typeof input === 'string' || typeof input === 'number' ? ` (given: ${input})` : ''
    return `${option === undefined ? location : `${option} (${location})`}: ${msg}${given}`
  }
}

function isSuccess({ status }: Received): boolean {
  return status >= 200 && status <= 299
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there. Start the service (lethe serve), or set LETHE_URL to where it runs.',
  ENOTFOUND: 'there is no such host. Correct LETHE_URL.',
  EAI_AGAIN: 'the host’s address could not be looked up. Try again, or correct LETHE_URL.',
  ETIMEDOUT: 'it does not respond. Is it behind a firewall?',
  UND_ERR_CONNECT_TIMEOUT: 'it does not respond. Is it behind a firewall?',
  UND_ERR_HEADERS_TIMEOUT: 'it accepted the request and did not respond within five minutes.',
  UND_ERR_BODY_TIMEOUT: 'it began to respond and then sent nothing for five minutes.',
  ECONNRESET: 'the connection was closed before the response was complete. Is the service restarting?',
  UND_ERR_SOCKET: 'the connection was closed before the response was complete. Is the service restarting?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS. Write http:// in LETHE_URL.',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS. Write http:// in LETHE_URL.',
}

const certificateCodes =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY|GET)_.*|CERT_.*|ERR_TLS_CERT_ALTNAME_INVALID)$/

/** Failures after which the HTTP request cannot have reached the service. */
const notSent =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_.*)$/

function unreachable(url: string, error: unknown, isChange: boolean): ServiceUnreachable {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  // Several addresses of one name were tried, such as ::1 and 127.0.0.1.
  const first = cause instanceof AggregateError ? cause.errors.find((one) => one?.code)?.code : undefined
  const found = code === '' ? String(first) : code
  const why = certificateCodes.test(found)
    ? `its TLS certificate is not trusted here (${found}). Name the file of the authority that signed it in NODE_EXTRA_CA_CERTS.`
    : (reasons[found] ?? messageOf(cause ?? error))
  const mayBeTaken = isChange && !notSent.test(found) && !certificateCodes.test(found)
  const more = mayBeTaken
    ? ' The service may still have accepted the request: check before you repeat it.'
    : ''
  return new ServiceUnreachable(`${url} can't be reached: ${why}${more}`, mayBeTaken)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
