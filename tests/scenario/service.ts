// The real service in this process, as a client over HTTP meets it: a port the system chose, a throw-away
// data folder, the machine's own clock. Two organisations, acme and globex, each with a token of every role.
// One service per test file, because the embedded engine allows one data folder per process.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import type { z } from 'zod'
import { DeletionRequest } from '../../contract/deletion.ts'
import { ValidationError, type ValidationProblem } from '../../contract/errors.ts'
import { type Role, roles } from '../../contract/tenancy.ts'
import { type App, createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { type Clock, systemClock } from '../../server/core/clock.ts'
import type { Failpoint } from '../../server/deletion/attempt/eraser.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { silent, temporaryFolder } from '../fixtures.ts'

export const tenants = ['acme', 'globex'] as const
export type Tenant = (typeof tenants)[number]
/** A token of an organisation by its role, such as `acme/owner`. */
export type Who = `${Tenant}/${Role}`

interface ServiceOptions {
  /** Settings that mean something to the test, by their environment variable. */
  readonly settings?: Readonly<Record<string, string>>
  /** The machine's own where absent. */
  readonly clock?: Clock
  /** Told of every step of an erasure; one that doesn't resolve holds the erasure there. */
  readonly failpoint?: Failpoint
}

export interface Sent {
  /** The sender's token; `acme/owner` where absent. */
  readonly as?: Who
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as these bytes or this text, with the content type in `headers` or none at all. */
  readonly body?: string | Uint8Array
  /** These win over what `as` and `json` bring; null leaves one out. */
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
  /** The data folder: everything the service keeps. */
  readonly folder: string
  /** The secret of a token. */
  secretOf(who: Who): string
  send(method: string, path: string, sent?: Sent): Promise<Answer>
  /** Sends a GET, which has to answer 200, and reads its body by the contract. */
  read<T extends z.ZodType>(path: string, body: T, as?: Who): Promise<z.output<T>>
  /**
   * Fails where an error escaped since the start, because a test would otherwise survive
   * what the service wouldn't.
   */
  stop(): Promise<void>
}

/** Errors that nobody caught: outside a test they would have ended the process. */
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
  const secrets = await populate(app)
  const address = await app.start()
  const secretOf = (who: Who) => secrets.get(who) ?? assert.fail(`No token for ${who}.`)
  const send = async (method: string, path: string, sent: Sent = {}) =>
    answerOf(await fetch(`${address}${path}`, requestOf(method, secretOf(sent.as ?? 'acme/owner'), sent)))
  return {
    app,
    address,
    folder,
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
      assert.deepEqual(escaped, [], 'an error escaped that would have ended the service')
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
  // As bytes, because to a text `fetch` adds a content type of its own.
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
 * The problems of a validation answer, which has to have the five fields of the interface and no other. Says
 * in its failure what came instead.
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

/** The place and type of each problem, such as `body.confirm missing`, in alphabetical order. */
export function placesOf(problems: readonly ValidationProblem[]): string[] {
  return problems.map(({ loc, type }) => `${loc.join('.')} ${type}`).sort()
}

/** A refusal has its status, its stable code, a sentence, and nothing else. */
export function assertRefused(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text)
  const body = JSON.parse(answer.text)
  assert.deepEqual(Object.keys(body).sort(), ['code', 'detail'])
  assert.equal(body.code, code)
  assert.equal(typeof body.detail, 'string')
}

const triesMax = 1000
const pauseMs = 10

/** Asks until the answer is wanted, at most ten seconds of tries; then fails with the last one. */
export async function waitFor<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> {
  for (let tries = 1; ; tries++) {
    const answer = await ask()
    if (isWanted(answer)) return answer
    assert.ok(tries < triesMax, `It did not come about; the last answer was ${JSON.stringify(answer)}`)
    await systemClock.sleep(pauseMs)
  }
}

/** Asks for an erasure, which has to be taken, and waits until the service says it is completed. */
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
