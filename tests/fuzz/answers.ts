// Checks a response against the OpenAPI document and against rules for every response: no fault of the
// service, a status that the document names, a body of its schema, the headers of its status, and no data of
// another organisation and no secret.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Document } from './operations.ts'
import type { Request } from './requests.ts'

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A 503 or 507 with these codes is a refusal, not a fault. */
const refusals = new Set(['erasing', 'overloaded', 'not_ready', 'storage_full', 'storage_unavailable'])

/**
 * How the body of OTLP begins for such a refusal: the status UNAVAILABLE of gRPC, as JSON and as protobuf. A
 * fault is INTERNAL.
 */
const unavailable = ['{"code":14,', '\b\x0e']

/** Statuses of requests that belong to no operation of the document, or to one by accident. */
const misdirected = new Set([200, 204, 400, 401, 403, 404, 405, 409, 412, 413, 414, 415, 417, 422, 429, 431])

/** Maximum size of a response to requests as small as these. */
const largest = 8 * 2 ** 20

interface AnswerRules {
  /** Texts that no response may contain, such as another organisation's telemetry. */
  readonly canaries: readonly string[]
  /** Secrets of tokens, which only the operation that creates a token returns, once. */
  readonly secrets: readonly string[]
}

export class Answers {
  readonly #rules: AnswerRules
  readonly #ajv: Ajv2020
  readonly #compiled = new Map<string, ValidateFunction>()

  constructor(document: Document, rules: AnswerRules) {
    this.#rules = rules
    this.#ajv = new Ajv2020({ strict: false, validateSchema: false, addUsedSchema: false })
    addFormats.default(this.#ajv)
    this.#ajv.addSchema({ ...document, $id: 'lethe:openapi' })
  }

  /** Returns what is wrong, one sentence each; empty where nothing is. */
  faults(request: Request, answer: Answer): string[] {
    const { headers, status, text } = answer
    const faults = [...this.#leaks(request, text)]
    if (text.length > largest) faults.push(`it has ${text.length} characters`)
    if (status >= 500 && !isRefusal(text)) faults.push('it is a fault of the service')
    if (headers.get('x-request-id') === null && status !== 400 && status !== 431)
      faults.push('x-request-id is missing')
    if (status === 401 && headers.get('www-authenticate') === null) faults.push('www-authenticate is missing')
    if ((status === 429 || status === 503) && !/^\d+$/.test(headers.get('retry-after') ?? ''))
      faults.push('retry-after is missing')
    const fault = request.operation === null ? this.#astrayFault(status) : this.#undeclared(request, answer)
    return fault === null ? faults : [...faults, fault]
  }

  #astrayFault(status: number): string | null {
    return misdirected.has(status) ? null : `the address does not exist, and the status is ${status}`
  }

  #leaks({ operation, sender }: Request, text: string): string[] {
    const isNewToken = operation?.method === 'POST' && operation.path === '/tokens' && sender === 'owner'
    const { canaries, secrets } = this.#rules
    return [
      ...canaries
        .filter((canary) => text.includes(canary))
        .map((canary) => `it contains ${canary} of another organisation`),
      ...(isNewToken
        ? []
        : secrets.filter((secret) => text.includes(secret)).map(() => 'it contains the secret of a token')),
    ]
  }

  #undeclared({ method, operation }: Request, { headers, status, text }: Answer): string | null {
    const declared = operation?.answers.get(status)
    if (declared === undefined) return `${status} (${codeOf(text) ?? 'no code'}) is not in the document`
    if (declared.size === 0 || method === 'HEAD')
      return text === '' ? null : `${status} has a body that is not declared`
    const type = (headers.get('content-type') ?? '').split(';')[0] ?? ''
    const place = declared.get(type)
    if (place === undefined) return `${status} as ${type || 'no type'} is not in the document`
    if (!type.includes('json') || type.includes('ndjson')) return null
    let body: unknown
    try {
      body = JSON.parse(text)
    } catch {
      return `${status} is not JSON`
    }
    const validate = this.#validatorOf(place)
    if (validate(body)) return null
    const [first] = validate.errors ?? []
    return `${status} does not match its schema: ${first?.instancePath || 'the body'} ${first?.message ?? ''}`
  }

  #validatorOf(place: string): ValidateFunction {
    const known = this.#compiled.get(place)
    if (known !== undefined) return known
    const made = this.#ajv.compile({ $ref: `lethe:openapi#${place}` })
    this.#compiled.set(place, made)
    return made
  }
}

function isRefusal(text: string): boolean {
  return refusals.has(codeOf(text) ?? '') || unavailable.some((start) => text.startsWith(start))
}

function codeOf(text: string): string | null {
  return /"code":"(\w+)"/.exec(text)?.[1] ?? null
}
