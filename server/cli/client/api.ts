// Requests to a service over HTTP, as any client sends them. Bodies are read by the contract; every way in which a
// request can fail becomes a sentence that says what to do, and none holds the token.

import type { z } from 'zod'
import { ErrorBody, ValidationError, type ValidationProblem } from '../../../contract/errors.ts'
import { CommandFailure, exitCodes } from '../failure.ts'
import type { Connection } from './settings.ts'

export interface Answer<T> {
  readonly status: number
  readonly value: T
  /** As it was sent, also with fields that this version doesn't know. */
  readonly json: unknown
}

/** The service answered, and not with what was asked for. */
export class ServiceRefusal extends CommandFailure {
  readonly status: number
  /** As it was sent; null where it is no JSON. */
  readonly body: unknown

  constructor(message: string, status: number, body: unknown) {
    super(message, status >= 502 ? exitCodes.unreachable : exitCodes.failed)
    this.status = status
    this.body = body
  }
}

export interface Sent {
  readonly json?: unknown
  readonly idempotencyKey?: string
}

export class ApiClient {
  readonly #connection: Connection
  /** Names of options by the place of a problem, such as `--until` of `body.range_end`. */
  readonly #options: Readonly<Record<string, string>>

  constructor(connection: Connection, options: Readonly<Record<string, string>> = {}) {
    this.#connection = connection
    this.#options = options
  }

  get url(): string {
    return this.#connection.url
  }

  async get<T extends z.ZodType>(path: string, body: T): Promise<Answer<z.output<T>>> {
    return this.#read(path, await this.#send('GET', path, {}), body)
  }

  async post<T extends z.ZodType>(path: string, body: T, sent: Sent = {}): Promise<Answer<z.output<T>>> {
    return this.#read(path, await this.#send('POST', path, sent), body)
  }

  /** The bytes of an answer that is written to a file as it is. */
  async getText(path: string): Promise<string> {
    const response = await this.#send('GET', path, {})
    const text = await response.text()
    if (!response.ok) throw this.#refusalOf(response.status, jsonOf(text))
    return text
  }

  async #send(method: string, path: string, { idempotencyKey, json }: Sent): Promise<Response> {
    const { token, url } = this.#connection
    let response: Response
    try {
      response = await fetch(`${url}${path}`, {
        method,
        // Followed, it would carry an erasure to an address that nobody configured.
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${token}`,
          ...(json !== undefined && { 'content-type': 'application/json' }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      })
    } catch (error) {
      throw new CommandFailure(unreachable(url, error), exitCodes.unreachable)
    }
    if (response.status < 300 || response.status > 399) return response
    throw new CommandFailure(
      `${url} redirects to ${response.headers.get('location') ?? 'somewhere else'}. Set LETHE_URL to the address of the service itself.`,
      exitCodes.unreachable,
    )
  }

  async #read<T extends z.ZodType>(path: string, response: Response, body: T): Promise<Answer<z.output<T>>> {
    const json = jsonOf(await response.text())
    if (!response.ok) throw this.#refusalOf(response.status, json)
    const read = body.safeParse(json)
    if (read.success) return { status: response.status, value: read.data, json }
    const [issue] = read.error.issues
    throw new CommandFailure(
      `${this.url}${path} answered in a form that this version doesn't know (${issue?.path.join('.') || 'body'}: ${issue?.message}). Is that the address of a Lethe service, of this version?`,
      exitCodes.unreachable,
    )
  }

  #refusalOf(status: number, json: unknown): CommandFailure {
    const invalid = ValidationError.safeParse(json)
    if (status === 422 && invalid.success) {
      const problems = invalid.data.detail.map((problem) => `  ${this.#problemLine(problem)}`)
      return new ServiceRefusal(`The service refuses this:\n${problems.join('\n')}`, status, json)
    }
    const known = ErrorBody.safeParse(json)
    if (known.success) {
      return new ServiceRefusal(`${known.data.detail} (${status} ${known.data.code})`, status, json)
    }
    const hint = 'which is not how a Lethe service refuses; is LETHE_URL its address?'
    return new ServiceRefusal(`${this.url} answered ${status}, ${hint}`, status, json)
  }

  #problemLine({ input, loc, msg }: ValidationProblem): string {
    const place = loc.join('.')
    const option = this.#options[place]
    const given = typeof input === 'string' || typeof input === 'number' ? ` (given: ${input})` : ''
    return `${option === undefined ? place : `${option} (${place})`}: ${msg}${given}`
  }
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
  ENOTFOUND: 'there is no such host. Mend LETHE_URL.',
  EAI_AGAIN: 'the host’s address could not be looked up. Try again, or mend LETHE_URL.',
  ETIMEDOUT: 'it does not answer. Is it behind a firewall?',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer. Is it behind a firewall?',
  UND_ERR_HEADERS_TIMEOUT: 'it took the request and did not answer within five minutes.',
  ECONNRESET: 'the connection was closed before the answer. Is the service restarting?',
  UND_ERR_SOCKET: 'the connection was closed before the answer. Is the service restarting?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS. Write http:// in LETHE_URL.',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS. Write http:// in LETHE_URL.',
}

function unreachable(url: string, error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  // Several addresses of one name were tried, such as ::1 and 127.0.0.1.
  const first = cause instanceof AggregateError ? cause.errors.find((one) => one?.code)?.code : undefined
  const why = reasons[code] ?? reasons[String(first)]
  return `${url} can't be reached: ${why ?? (cause instanceof Error ? cause.message : String(error))}`
}
