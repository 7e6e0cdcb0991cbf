// The reference has every refusal that an operation can really send: each one is provoked here over a real
// socket, for every kind of operation, and looked up under its operation.

import assert from 'node:assert/strict'
import { type AddressInfo, connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import pino from 'pino'
import { z } from 'zod'
import { ErrorBody, errorCatalogue } from '../../../contract/errors.ts'
import { pageOperations } from '../../../contract/operations/pages.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../authentication.ts'
import { testOperation } from '../operation-fixture.ts'
import { serve } from '../serve.ts'
import { createHttp } from '../server.ts'
import { addHealthRoutes } from './health.ts'
import { openApiAnswer } from './openapi.ts'
import { addReferencePage } from './reference-page.ts'

const secret = 'the-one-valid-token-0123456789'
let isReady = true
const http = createHttp({
  clock: new ManualClock(1_763_717_400_000),
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async (given) =>
    given === secret
      ? {
          tenantId: 'acme',
          placement: 0,
          organisationName: 'Acme',
          role: 'viewer',
          requester: tokenNamed('x'),
        }
      : null,
  ),
  isReady: () => isReady,
})

const result = z.object({})
const viewers = { path: '/things', access: ['viewer'] as const, result }
const things = [
  testOperation(viewers),
  testOperation({ ...viewers, method: 'DELETE' }),
  testOperation({ ...viewers, method: 'POST' }),
]
const withBodies = [
  testOperation({ ...viewers, method: 'PATCH', body: z.object({}) }),
  testOperation({ method: 'PUT', path: '/chiefs', body: z.object({}), result }),
]
const operations = [...things, ...withBodies]

interface Document {
  readonly paths: Record<string, Record<string, { responses: Record<string, { description: string }> }>>
}
let paths: Document['paths']
let port = 0
before(async () => {
  const { health, readiness } = pageOperations
  const document = openApiAnswer([...operations, health, readiness], '9')
  addReferencePage(http, { document, canTry: true })
  addHealthRoutes(http, {
    isReady: () => true,
    isClockInDoubt: () => false,
    disk: { fault: null, sentence: null },
    controlWatch: { fault: async () => null },
  })
  const handle = async () => ({ body: {} })
  for (const operation of things) serve(http, operation, { handle })
  for (const operation of withBodies) serve(http, operation, { handle })
  await http.listen({ host: '127.0.0.1', port: 0 })
  port = (http.server.address() as AddressInfo).port
  paths = ((await http.inject('/openapi.json')).json() as Document).paths
})
after(() => http.close())

/** Sends a head and a body, and reads until the connection ends. */
function ask(method: string, url: string, lines: readonly string[], body = ''): Promise<[number, unknown]> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .setEncoding('utf8')
      .on('error', () => undefined)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.once('close', () => {
      const sent = text.slice(text.indexOf('\r\n\r\n') + 4)
      resolve([Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), JSON.parse(sent)])
    })
    const head = [`${method} ${url} HTTP/1.1`, 'host: lethe', 'connection: close', ...lines]
    socket.write([...head, '', body].join('\r\n'))
  })
}

const token = `authorization: Bearer ${secret}`
const bodyOf = (type: string, length: number) => [`content-type: ${type}`, `content-length: ${length}`]
const large = 'x'.repeat(70_000)

interface Provoked {
  readonly name: string
  readonly status: number
  readonly lines: readonly string[]
  readonly body?: string
  readonly on: (operation: { readonly method: string; readonly path: string }) => boolean
}
const isGuarded = ({ path }: { path: string }) => path !== '/healthz'
const hasBody = ({ method }: { method: string }) => method !== 'GET'
const provoked: readonly Provoked[] = [
  { name: 'an expectation', status: 417, lines: [token, 'expect: tea'], on: () => true },
  { name: 'large headers', status: 431, lines: [`x: ${'y'.repeat(17_000)}`], on: () => true },
  { name: 'two lengths', status: 400, lines: ['content-length: 1', 'content-length: 2'], on: () => true },
  { name: 'no token', status: 401, lines: [], on: isGuarded },
  { name: 'another role', status: 403, lines: [token], on: ({ path }) => path === '/chiefs' },
  {
    name: 'another type',
    status: 415,
    lines: [token, ...bodyOf('text/plain', 2)],
    body: '{}',
    on: (operation) => hasBody(operation) && operation.path === '/things',
  },
  {
    name: 'a large body',
    status: 413,
    lines: [token, ...bodyOf('application/json', large.length)],
    body: large,
    on: (operation) => hasBody(operation) && operation.path === '/things',
  },
]

describe('a refusal of the HTTP server', () => {
  for (const { name, status, lines, body, on } of provoked) {
    test(`for ${name} is ${status}, in the documented form, and in the reference`, async () => {
      const all = [...operations, pageOperations.health].filter(on)
      assert.ok(all.length > 0)
      for (const { method, path } of all) {
        const [answered, refusal] = await ask(method, path, lines, body)
        assert.equal(answered, status, `${method} ${path}`)
        const { code } = ErrorBody.strict().parse(refusal)
        assert.equal(errorCatalogue[code as keyof typeof errorCatalogue].status, status)
        const { description } = paths[path]?.[method.toLowerCase()]?.responses[status] ?? assert.fail(path)
        assert.ok(description.includes(`\`${code}\``), description)
      }
    })
  }

  test('while the service starts is in the reference of guarded operations', async () => {
    isReady = false
    const [status] = await ask('GET', '/things', [token])
    isReady = true
    assert.equal(status, 503)
    assert.ok(paths['/things']?.get?.responses[503])
    assert.equal(paths['/healthz']?.get?.responses[503], undefined)
  })

  test('is not listed where it can’t occur', () => {
    const at = (url: string, method: string) => Object.keys(paths[url]?.[method]?.responses ?? {})
    for (const status of ['401', '403', '413', '415', '429'])
      assert.ok(!at('/healthz', 'get').includes(status))
    for (const status of ['413', '415']) assert.ok(!at('/things', 'get').includes(status))
    for (const status of ['408', '429', '431']) assert.ok(at('/things', 'get').includes(status))
  })
})
