// A run of random requests against a service. A second organisation has canaries in its telemetry and names.
// Tokens that requests revoke are created again, so that every role keeps sending.

import { LegalHold } from '../../contract/deletion/governance.ts'
import { holdOperations } from '../../contract/operations/governance.ts'
import type { Role } from '../../contract/role.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import type { Service, Who } from '../scenario/service.ts'
import { Answers } from './answers.ts'
import { Chance } from './chance.ts'
import { Known } from './known.ts'
import { Document, type Operation, operationsOf } from './operations.ts'
import { type Request, Requests, type Sender } from './requests.ts'

const Holds = pageOf(LegalHold)

const tenantId = 'acme'

/** In telemetry and names of the other organisation; no response to this one may contain it. */
const canary = 'canary-of-globex-9f31'

/** Operations that would end the run, because they erase everything including tokens. */
const leftOut = new Set(['postOrganisationRemove'])

/**
 * After so many requests the legal holds of the organisation are released: requests place many, and while one
 * is in force hardly any erasure completes.
 */
const holdRequests = 200

/** A request without a response for this long is a fault. */
const answerMs = 60_000

interface Finding {
  /** What is wrong; the same text for all requests with this fault. */
  readonly fault: string
  /** Method and path of the operation, as in the document. */
  readonly operation: string
  /** The first request with this fault, and its response, shortened. */
  readonly example: string
  count: number
}

export class FuzzRun {
  readonly findings = new Map<string, Finding>()
  /** Number of requests by status of their responses. */
  readonly statuses = new Map<number, number>()
  /** By operation: whether it ever succeeded. */
  readonly reached = new Map<string, boolean>()
  readonly #service: Service
  readonly #requests: Requests
  readonly #answers: Answers
  readonly #known: Known
  readonly #secrets = new Map<Sender, string>()
  #steps = 0

  private constructor(service: Service, document: Document, operations: readonly Operation[], seed: number) {
    const chance = new Chance(seed)
    this.#service = service
    this.#known = new Known(chance)
    this.#requests = new Requests(document, operations, tenantId, chance, this.#known)
    for (const role of ['owner', 'admin', 'member', 'viewer', 'ingest'] as const)
      this.#secrets.set(role, service.secretOf(`${tenantId}/${role}` satisfies Who))
    this.#secrets.set('stranger', newTokenSecret('owner'))
    this.#answers = new Answers(document, { canaries: [canary], secrets: [...this.#secrets.values()] })
    for (const { method, path } of operations) this.reached.set(`${method} ${path}`, false)
  }

  /** Reads the document of the service and stores canaries for the other organisation. */
  static async begin(service: Service, seed: number): Promise<FuzzRun> {
    const document = await service.read('/openapi.json', Document)
    await plantCanaries(service)
    const operations = operationsOf(document).filter(({ id }) => !leftOut.has(id))
    return new FuzzRun(service, document, operations, seed)
  }

  async step(): Promise<void> {
    if (++this.#steps % holdRequests === 0) await this.#releaseHolds()
    const request = this.#requests.next()
    let answer: Awaited<ReturnType<FuzzRun['ask']>>
    try {
      answer = await this.ask(request)
    } catch (error) {
      this.#found(
        request,
        `there is no response: ${error instanceof Error ? (error.cause ?? error.message) : error}`,
        '',
      )
      return
    }
    const { headers, status, text } = answer
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    for (const fault of this.#answers.faults(request, answer)) this.#found(request, fault, text)
    if (status === 401) await this.#renew(request.sender)
    if (status >= 300 || request.operation === null) return
    this.reached.set(nameOf(request.operation), true)
    const etag = headers.get('etag')
    if (etag !== null) this.#known.keep('etag', etag)
    if (/application\/json/.test(headers.get('content-type') ?? '') && text !== '')
      this.#known.learn(request.operation.path, JSON.parse(text))
  }

  async #releaseHolds(): Promise<void> {
    const asOwner = (method: string, path: string) =>
      this.ask({ method, path, operation: null, sender: 'owner', headers: {}, body: null })
    const { status, text } = await asOwner('GET', `${holdOperations.list.path}?active=true`)
    // The token of the owner may have been revoked; it is created again at its next request.
    if (status !== 200) return
    const { items } = Holds.parse(JSON.parse(text))
    for (const { hold_id } of items) await asOwner('POST', `${holdOperations.list.path}/${hold_id}/release`)
  }

  async ask({ body, headers, method, path, sender }: Request) {
    const secret = this.#secrets.get(sender)
    const response = await fetch(`${this.#service.address}${path}`, {
      method,
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMs),
      headers: { ...headers, ...(secret !== undefined && { authorization: `Bearer ${secret}` }) },
      ...(body !== null && method !== 'GET' && method !== 'HEAD' && { body: Buffer.from(body) }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** Lines for people: every finding with its first example. */
  report(): string[] {
    return [...this.findings.values()].map(
      ({ count, example, fault, operation }) => `${operation}: ${fault} (${count} times)\n    ${example}`,
    )
  }

  #found(request: Request, fault: string, answer: string): void {
    const operation = request.operation === null ? 'no operation' : nameOf(request.operation)
    const key = `${operation} ${fault}`
    const known = this.findings.get(key)
    if (known !== undefined) {
      known.count++
      return
    }
    const sent = request.body === null ? '' : Buffer.from(request.body).toString('utf8').slice(0, 400)
    const example = `${request.sender}: ${request.method} ${request.path.slice(0, 300)} ${JSON.stringify(request.headers)} ${sent} -> ${answer.slice(0, 300)}`
    this.findings.set(key, { fault, operation, example, count: 1 })
  }

  /** Creates a new token for a role whose token a request of this run has revoked, or has expired. */
  async #renew(sender: Sender): Promise<void> {
    if (sender === 'nobody' || sender === 'stranger') return
    const secret = newTokenSecret(sender)
    const token = {
      tenantId,
      name: 'made again',
      role: sender satisfies Role,
      secret,
      expiresAtMs: null,
      actor: operatorActor('fuzz'),
    }
    await this.#service.app.tenancy.createToken(token)
    this.#secrets.set(sender, secret)
  }
}

function nameOf({ method, path }: Operation): string {
  return `${method} ${path}`
}

async function plantCanaries(service: Service): Promise<void> {
  const timeUnixNano = String(BigInt(Date.now()) * 1_000_000n)
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: canary } }] }
  const logRecords = [{ timeUnixNano, severityNumber: 17, body: { stringValue: canary } }]
  await service.send('POST', '/v1/logs', {
    as: 'globex/owner',
    json: { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] },
  })
  const names = [
    ['/tokens', { name: canary, role: 'viewer' }],
    ['/usage/storage/holds', { case_ref: canary }],
  ] as const
  for (const [path, json] of names) await service.send('POST', path, { as: 'globex/owner', json })
}
