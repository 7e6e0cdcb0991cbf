// Judges an answer by the OpenAPI document and by what holds for every answer: no fault of the service, a
// status that the document names, a body of its schema, the headers of its status, and nothing of another
// organisation or of a secret.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Document } from './operations.ts'
import type { Request } from './requests.ts'

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** 503 and 507 with these codes are refusals, not faults. */
const refusals = new Set(['erasing', 'overloaded', 'not_ready', 'storage_full', 'storage_unavailable'])

/** What a request can get that is for no operation of the document, or for one by accident. */
const astray = new Set([200, 204, 400, 401, 403, 404, 405, 409, 412, 413, 414, 415, 417, 422, 429, 431])

/** No answer to a request as small as these may be larger. */
const largest = 8 * 2 ** 20

interface AnswerRules {
  /** Texts that no answer may hold, such as another organisation's telemetry. */
  readonly canaries: readonly string[]
  /** Secrets of tokens, which are answered once by the operation that makes one. */
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

  /** What is wrong, a sentence each; empty where nothing is. */
  faults(request: Request, answer: Answer): string[] {
    const { headers, status, text } = answer
    const faults = [...this.#leaks(request, text)]
    if (text.length > largest) faults.push(`it has ${text.length} characters`)
    if (status >= 500 && !refusals.has(codeOf(text) ?? '')) faults.push('it is a fault of the service')
    if (headers.get('x-request-id') === null && status !== 400 && status !== 431)
      faults.push('there is no x-request-id')
    if (status === 401 && headers.get('www-authenticate') === null)
      faults.push('there is no www-authenticate')
    if ((status === 429 || status === 503) && !/^\d+$/.test(headers.get('retry-after') ?? ''))
      faults.push('there is no retry-after')
    const fault = request.operation === null ? this.#astrayFault(status) : this.#undeclared(request, answer)
    return fault === null ? faults : [...faults, fault]
  }

  #astrayFault(status: number): string | null {
    return astray.has(status) ? null : `nothing is there, and it answers ${status}`
  }

  #leaks({ operation, sender }: Request, text: string): string[] {
    const isNewToken = operation?.method === 'POST' && operation.path === '/tokens' && sender === 'owner'
    const { canaries, secrets } = this.#rules
    return [
      ...canaries
        .filter((canary) => text.includes(canary))
        .map((canary) => `it holds ${canary} of another organisation`),
      ...(isNewToken
        ? []
        : secrets.filter((secret) => text.includes(secret)).map(() => 'it holds the secret of a token')),
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
      return `${status} is no JSON`
    }
    const validate = this.#validatorOf(place)
    if (validate(body)) return null
    const [first] = validate.errors ?? []
    return `${status} is not of its schema: ${first?.instancePath || 'the body'} ${first?.message ?? ''}`
  }

  #validatorOf(place: string): ValidateFunction {
    const known = this.#compiled.get(place)
    if (known !== undefined) return known
    const made = this.#ajv.compile({ $ref: `lethe:openapi#${place}` })
    this.#compiled.set(place, made)
    return made
  }
}

function codeOf(text: string): string | null {
  return /"code":"(\w+)"/.exec(text)?.[1] ?? null
}
