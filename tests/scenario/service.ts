// The real service in this process, used over HTTP as by a client: a port that the system chose, a temporary
// data folder, the machine's own clock. Two organisations, acme and globex, each with a token of every role.
// One service at a time, because the embedded engine allows one data folder per process.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import type { z } from 'zod'
import { DeletionRequest } from '../../contract/deletion/requests.ts'
import { ValidationError, type ValidationProblem } from '../../contract/errors.ts'
import { type Role, roles } from '../../contract/role.ts'
import { type App, createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { type Clock, systemClock } from '../../server/core/clock.ts'
import type { Failpoint } from '../../server/deletion/attempt/eraser.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { silent, temporaryFolder } from '../fixtures.ts'
import { waitFor } from '../wait-for.ts'
import { undeclaredAnswer } from './declared-answers.ts'

export const tenants = ['acme', 'globex'] as const
export type Tenant = (typeof tenants)[number]
/** A token of an organisation by its role, such as `acme/owner`. */
export type Who = `${Tenant}/${Role}`

interface ServiceOptions {
  /** Settings that matter for the test, by their environment variable. */
  readonly settings?: Readonly<Record<string, string>>
  /** The machine's own clock where absent. */
  readonly clock?: Clock
  /** Of a service that ran on the same data folder before; no organisation is created then. */
  readonly secrets?: ReadonlyMap<string, string>
  /** Called at every step of an erasure; the erasure waits for its promise. */
  readonly failpoint?: Failpoint
}

export interface Sent {
  /** The sender's token; `acme/owner` where absent. */
  readonly as?: Who
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as these bytes or this text, with the content type in `headers` or none at all. */
  readonly body?: string | Uint8Array
  /** These override what `as` and `json` set; null removes one. */
  readonly headers?: Readonly<Record<string, string | null>>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly text: string
}

export interface Service {
  readonly app: App
  readonly address: string
  /** The data folder: everything that the service stores. */
  readonly folder: string
  /** The secrets of all tokens, by role. */
  readonly secrets: ReadonlyMap<string, string>
  /** The secret of a token. */
  secretOf(who: Who): string
  send(method: string, path: string, sent?: Sent): Promise<Answer>
  /** Sends a GET, which must return 200, and parses its body by the contract. */
  read<T extends z.ZodType>(path: string, body: T, as?: Who): Promise<z.output<T>>
  /**
   * Fails if an uncaught error occurred since the start, because the test process would survive it and the
   * service would not.
   */
  stop(): Promise<void>
}

/** Uncaught errors: outside a test they would have ended the process. */
const escaped: unknown[] = []
process.on('uncaughtExceptionMonitor', (error) => escaped.push(error))
process.on('unhandledRejection', (reason) => escaped.push(reason))

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const folder = temporaryFolder()
  const app = await createApp({
    config: readConfig({
      LETHE_DATA_DIR: folder,
      LETHE_PORT: '0',
      LETHE_RESERVE_MB: '1',
      LETHE_ENGINE_MEMORY_MB: '1024',
      LETHE_COMMIT_DELAY_MS: '1',
      ...options.settings,
    }),
    clock: options.clock ?? systemClock,
    logger: silent,
    ...(options.failpoint && { failpoint: options.failpoint }),
  })
  const secrets = options.secrets ?? (await populate(app))
  const address = await app.start()
  const secretOf = (who: Who) => secrets.get(who) ?? assert.fail(`No token for ${who}.`)
  const send = async (method: string, path: string, sent: Sent = {}) => {
    const request = requestOf(method, secretOf(sent.as ?? 'acme/owner'), sent)
    const answer = await answerOf(await fetch(`${address}${path}`, request))
    assert.equal(undeclaredAnswer(method, path, answer), null)
    return answer
  }
  return {
    app,
    address,
    folder,
    secrets,
    secretOf,
    send,
    async read(path, body, as = 'acme/owner') {
      const answer = await send('GET', path, { as })
      assert.equal(answer.status, 200, `GET ${path}: ${answer.text}`)
      return body.parse(JSON.parse(answer.text))
    },
    async stop() {
      await app.close()
      rmSync(folder, { recursive: true, force: true })
      assert.deepEqual(escaped, [], 'an uncaught error would have ended the service')
    },
  }
}

async function populate(app: App): Promise<ReadonlyMap<string, string>> {
  const secrets = new Map<string, string>()
  for (const tenantId of tenants) {
    await app.createOrganisation(
      { tenantId, name: tenantId, actor: operatorActor('test') },
      newTokenSecret('owner'),
    )
    for (const role of roles) {
      const secret = newTokenSecret(role)
      secrets.set(`${tenantId}/${role}`, secret)
      await app.tenancy.createToken({
        tenantId,
        name: role,
        role,
        secret,
        expiresAtMs: null,
        actor: operatorActor('test'),
      })
    }
  }
  return secrets
}

function requestOf(method: string, secret: string, { json, body, headers = {} }: Sent): RequestInit {
  const all: Record<string, string | null> = {
    authorization: `Bearer ${secret}`,
    ...(json !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
  // As bytes, because `fetch` adds a content type to a text.
  const bytes = json === undefined ? body : JSON.stringify(json)
  return {
    method,
    headers: Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null),
    ...(bytes !== undefined && { body: Buffer.from(bytes) }),
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString('utf8') }
}

/**
 * The problems of a validation response, which must have the five fields of the interface and no other. A
 * failure shows what came instead.
 */
export function problemsOf(answer: Answer): ValidationProblem[] {
  assert.equal(answer.status, 422, answer.text)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  const body: unknown = JSON.parse(answer.text)
  const { detail } = ValidationError.strict().parse(body)
  assert.ok(detail.length > 0)
  for (const problem of detail) {
    assert.deepEqual(Object.keys(problem).sort(), ['ctx', 'input', 'loc', 'msg', 'type'])
    assert.ok(problem.loc.length > 0 && problem.msg !== '' && problem.type !== '')
  }
  return detail
}

/** Location and type of each problem, such as `body.confirm missing`, in alphabetical order. */
export function placesOf(problems: readonly ValidationProblem[]): string[] {
  return problems.map(({ loc, type }) => `${loc.join('.')} ${type}`).sort()
}

/** Checks that a refusal has its status, its stable code, a sentence, and nothing else. */
export function assertRefused(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text)
  const body = JSON.parse(answer.text)
  assert.deepEqual(Object.keys(body).sort(), ['code', 'detail'])
  assert.equal(body.code, code)
  assert.equal(typeof body.detail, 'string')
}

/** Requests an erasure, which must be accepted, and waits until the service reports it as completed. */
export async function eraseCompletely(
  service: Service,
  body: Readonly<Record<string, unknown>>,
  as: Who = 'acme/owner',
): Promise<DeletionRequest> {
  const answer = await service.send('POST', '/usage/storage/deletions', { as, json: body })
  assert.equal(answer.status, 202, answer.text)
  return waitUntilCompleted(service, DeletionRequest.parse(JSON.parse(answer.text)).request_id, as)
}

export function waitUntilCompleted(service: Service, requestId: string, as: Who): Promise<DeletionRequest> {
  return waitFor(
    () => service.read(`/usage/storage/deletions/${requestId}`, DeletionRequest, as),
    ({ status }) => status === 'completed',
  )
}
