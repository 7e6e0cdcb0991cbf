// The HTTP server, with real requests into Fastify without a socket: who is admitted, the form of each
// refusal, and what must never appear in a response or the log.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import pino from 'pino'
import { z } from 'zod'
import type { Role } from '../../contract/role.ts'
import { withOldNames } from '../../contract/values/old-names.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { AppError, InvalidInput, problem } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from './authentication.ts'
import { testOperation } from './operation-fixture.ts'
import { serve } from './serve.ts'
import { createHttp } from './server.ts'

const secretOf = (role: Role) => `secret-of-the-${role}-0123456789`
const innerMessage = 'connection to control.internal refused for user lethe_admin'

/** Everything that the service wrote to its log, at the lowest level. */
const logged: string[] = []
let isReady = true
const http = createHttp({
  clock: new ManualClock(1_763_717_400_000),
  logger: pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) }),
  authenticate: byAccessToken(async (secret) => callerOf(secret)),
  isReady: () => isReady,
})
const Thing = z.object({ name: z.string() })
addRoutes()
await http.ready()
after(() => http.close())

function callerOf(secret: string): Caller | null {
  const role = (['owner', 'viewer', 'ingest'] as const).find((candidate) => secretOf(candidate) === secret)
  if (role === undefined) return null
  return { tenantId: 'acme', placement: 3, organisationName: 'Acme', role, requester: tokenNamed(role) }
}

function addRoutes(): void {
  const things = { access: ['owner', 'viewer'] as const, result: Thing }
  const read = testOperation({
    ...things,
    path: '/things/:thing_id',
    params: z.object({ thing_id: z.string() }),
    query: z.strictObject({ size: z.enum(['s', 'l']).optional() }),
  })
  serve(http, read, {
    handle: async ({ params, caller }) => ({ body: { name: `${caller.tenantId} ${params.thing_id}` } }),
  })
  const create = testOperation({
    ...things,
    method: 'POST',
    path: '/things/:thing_id',
    access: ['owner'],
    params: z.object({ thing_id: z.string().max(5) }),
    query: z.strictObject({}),
    body: z.strictObject({ name: z.string().min(2), kind: z.enum(['a', 'b']) }),
    status: 201,
  })
  serve(http, create, {
    parse: ({ caller, fields: { kind, name } }) => {
      if (name === caller.tenantId) {
        const sentence = 'It should differ from the tenant'
        return { problems: [problem(['body', 'name'], 'value_error', sentence, caller.tenantId)] }
      }
      return name === undefined || kind === undefined ? { problems: [] } : { value: { name, kind } }
    },
    handle: async ({ value }) => ({ body: value, headers: { location: '/things/1' } }),
  })
  const renamed = withOldNames(z.strictObject({ size: z.enum(['s', 'l']), name: z.string().optional() }), {
    format: 'size',
  })
  const rename = testOperation({
    ...things,
    method: 'POST',
    path: '/renamed',
    query: renamed,
    body: renamed,
  })
  serve(http, rename, {
    parse: ({ body, fields: { name } }) =>
      name === 'checked' || body === undefined
        ? { problems: name === 'checked' ? [problem(['body', 'size'], 'value_error', 'No.', null)] : [] }
        : { value: body },
    handle: async ({ query, body }) => {
      if (body.name === 'refused') throw new InvalidInput([problem(['body', 'size'], 'late', 'No.', null)])
      return { body: { name: JSON.stringify([query, body]) } }
    },
  })
  const lateAnswer = {
    body: { name: 'no longer to be seen' },
    requireCurrent: () => {
      throw new AppError('erasing', { retryAfterSeconds: 1 })
    },
  }
  const failures: Record<string, () => unknown> = {
    plain: () => new Error(innerMessage),
    typed: () => Object.assign(new TypeError(innerMessage), { statusCode: 500 }),
    text: () => innerMessage,
    shape: () => ({ name: 5 }),
    full: () => Object.assign(new Error(innerMessage), { code: 'ENOSPC' }),
    readonly: () => Object.assign(new Error(innerMessage), { code: 'ERR_SQLITE_ERROR', errcode: 8 }),
    refused: () => new AppError('overloaded', { retryAfterSeconds: 7, cause: new Error(innerMessage) }),
    worded: () => new AppError('not_found', { sentence: 'There is no such thing.' }),
    invalid: () => new InvalidInput([problem(['body'], 'missing', 'Field required', undefined)]),
  }
  const fail = testOperation({ ...things, path: '/failures/:kind', params: z.object({ kind: z.string() }) })
  serve(http, fail, {
    handle: async ({ params }) => {
      const thrown = failures[params.kind]?.()
      if (params.kind === 'shape') return { body: thrown as z.output<typeof Thing> }
      if (params.kind === 'late') return lateAnswer
      throw thrown
    },
  })
  addHiddenOnce('/hidden-once', true)
  addHiddenOnce('/hidden-once-stored', false)
  http.post('/v1/things', { config: { access: ['ingest'], takesBasic: true } }, async () => {
    throw new Error(innerMessage)
  })
  http.get('/healthz', { config: { access: 'public' } }, async (_request, reply) => reply.send('{"ok":true}'))
}

/** Its first answer has what is hidden before that is sent, the second has not. */
function addHiddenOnce(path: string, isRepeatable: boolean): void {
  let answers = 0
  serve(http, testOperation({ path, result: z.object({ answer: z.number() }) }), {
    handle: async () => {
      const answer = ++answers
      const requireCurrent = () => {
        if (answer === 1) throw new AppError('erasing', { retryAfterSeconds: 1 })
      }
      return {
        body: { answer },
        headers: { location: `/answers/${answer}` },
        requireCurrent,
        isRepeatable,
      }
    },
  })
}

function ask(options: InjectOptions, role: Role | null = 'owner'): Promise<LightMyRequestResponse> {
  const authorization = role === null ? {} : { authorization: `Bearer ${secretOf(role)}` }
  return http.inject({ ...options, headers: { ...authorization, ...options.headers } })
}

const json = { 'content-type': 'application/json' }
const post = (payload: string | Buffer, headers: Record<string, string> = json) =>
  ask({ method: 'POST', url: '/things/1', payload, headers })

function assertRefusal(answer: LightMyRequestResponse, status: number, code: string): void {
  assert.equal(answer.statusCode, status, answer.body)
  assert.deepEqual(Object.keys(answer.json()).sort(), ['code', 'detail'])
  assert.equal(answer.json().code, code)
  assert.match(answer.json().detail, /^[A-Z].*\.$/)
  assert.match(String(answer.headers['content-type']), /^application\/json/)
}

describe('who is admitted', () => {
  test('a valid token is accepted, and the scheme may be in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER ']) {
      const headers = { authorization: `${scheme} ${secretOf('viewer')}` }
      const answer = await ask({ url: '/things/1', headers }, null)
      assert.equal(answer.statusCode, 200)
      assert.deepEqual(answer.json(), { name: 'acme 1' })
    }
  })

  test('no token, a header without one and an unknown token are distinguished, as RFC 6750 says', async () => {
    const challenges = new Map<string, Set<unknown>>()
    const refused = async (code: string, headers: Record<string, string>) => {
      const answer = await ask({ url: '/things/1', headers }, null)
      assertRefusal(answer, 401, code)
      assert.doesNotMatch(answer.body, /secret-of|xxx/)
      const seen = [answer.body, answer.headers['www-authenticate']].join(' ')
      challenges.set(code, (challenges.get(code) ?? new Set()).add(seen))
      return String(answer.headers['www-authenticate'])
    }
    const realm = 'Bearer realm="lethe"'
    assert.equal(await refused('unauthenticated', {}), realm)
    assert.equal(await refused('unauthenticated', { authorization: ' ' }), realm)
    for (const authorization of [
      'Bearer',
      'Bearer ',
      `Basic ${secretOf('owner')}`,
      secretOf('owner'),
      `Bearer ${secretOf('owner')} extra`,
      `Bearer ${'x'.repeat(600)}`,
    ]) {
      const said = 'error="invalid_request", error_description="The Authorization header has no bearer token"'
      assert.equal(await refused('token_malformed', { authorization }), `${realm}, ${said}`)
    }
    for (const secret of ['unknown', secretOf('owner').slice(1), `${secretOf('owner')}0`]) {
      const said = 'error="invalid_token", error_description="The access token is unknown"'
      assert.equal(await refused('token_unknown', { authorization: `Bearer ${secret}` }), `${realm}, ${said}`)
    }
    assert.deepEqual(
      [...challenges.values()].map(({ size }) => size),
      [1, 1, 1],
      'one answer for each, whatever was sent',
    )
  })

  test('a role without the right is refused with the roles that have it, before anything of the body is read', async () => {
    const answer = await ask(
      { method: 'POST', url: '/things/1', payload: 'not json', headers: { 'content-type': 'text/plain' } },
      'viewer',
    )
    assertRefusal(answer, 403, 'role_not_permitted')
    assert.match(answer.json().detail, /for owner; your token has the role viewer/)
    assertRefusal(await ask({ url: '/things/1' }, 'ingest'), 403, 'role_not_permitted')
  })

  test('a caller without a token learns nothing from later errors', async () => {
    const answer = await ask({ method: 'POST', url: '/things/1', payload: 'x'.repeat(70_000) }, null)
    assertRefusal(answer, 401, 'unauthenticated')
  })

  test('before it is ready, guarded addresses are refused with 503 and Retry-After, and public ones are served', async () => {
    isReady = false
    try {
      const answer = await ask({ url: '/things/1' })
      assertRefusal(answer, 503, 'not_ready')
      assert.equal(answer.headers['retry-after'], '1')
      assert.equal((await ask({ url: '/healthz' }, null)).statusCode, 200)
    } finally {
      isReady = true
    }
  })
})

describe('addresses and methods', () => {
  test('an unknown address is refused with 404', async () => {
    for (const url of ['/nothing', '/', '/things', '/things/1/2', '/nothing/%2e%2e']) {
      assertRefusal(await ask({ url }), 404, 'not_found')
    }
  })

  test('a known address with another method is refused with 405 and the methods that it has', async () => {
    for (const method of ['PATCH', 'DELETE', 'PUT', 'OPTIONS'] as const) {
      const answer = await ask({ method, url: '/things/1?size=s' }, null)
      assertRefusal(answer, 405, 'method_not_allowed')
      assert.equal(answer.headers.allow, 'GET, HEAD, POST')
    }
  })

  test('an address that is not a URL is refused with 400, and an endless one with 404', async () => {
    assertRefusal(await ask({ url: '/things/%zz' }), 400, 'bad_request')
    assertRefusal(await ask({ url: `/things/${'x'.repeat(20_000)}` }), 404, 'not_found')
  })

  test('an address of many parts is searched quickly, whatever it repeats', async () => {
    assertRefusal(await ask({ method: 'PUT', url: `/things/${'a/'.repeat(2000)}` }), 404, 'not_found')
  })
})

describe('bodies', () => {
  test('a valid body is handled, and the response has status, headers and only declared fields', async () => {
    const answer = await post('{"name":"ab","kind":"a"}')
    assert.deepEqual([answer.statusCode, answer.headers.location], [201, '/things/1'])
    assert.deepEqual(answer.json(), { name: 'ab' })
  })

  test('another content type is refused with 415, also an empty and a misspelt one', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application',
      'multipart/form-data',
    ]) {
      assertRefusal(await post('{}', { 'content-type': type }), 415, 'unsupported_media_type')
    }
    assertRefusal(await post('{}', {}), 415, 'unsupported_media_type')
  })

  test('parameters of the content type have no effect', async () => {
    const answer = await post('{"name":"ab","kind":"a"}', {
      'content-type': 'Application/JSON; charset=utf-8',
    })
    assert.equal(answer.statusCode, 201)
  })

  test('a body above the limit is refused with 413', async () => {
    assertRefusal(await post(`{"name":"${'x'.repeat(70_000)}","kind":"a"}`), 413, 'body_too_large')
  })

  test('every problem of path, query and body is in one response', async () => {
    const answer = await ask({
      method: 'POST',
      url: '/things/toolong?size=xl',
      payload: '{"name":"x","kind":"c","colour":1}',
      headers: json,
    })
    assert.equal(answer.statusCode, 422)
    assert.deepEqual(Object.keys(answer.json()), ['detail'])
    assert.deepEqual(
      answer
        .json()
        .detail.map(({ loc, type }: { loc: string[]; type: string }) => `${loc.join('.')} ${type}`),
      [
        'path.thing_id string_too_long',
        'query.size extra_forbidden',
        'body.name string_too_short',
        'body.kind enum',
        'body.colour extra_forbidden',
      ],
    )
  })

  test('rules that need the caller run beside the schema, and an absent body is missing', async () => {
    const answer = await post('{"name":"acme","kind":"c"}')
    assert.deepEqual(
      answer
        .json()
        .detail.map(({ loc, type }: { loc: string[]; type: string }) => `${loc.join('.')} ${type}`),
      ['body.kind enum', 'body.name value_error'],
    )
    const empty = await ask({ method: 'POST', url: '/things/1', headers: json })
    assert.equal(empty.statusCode, 422)
    assert.deepEqual(empty.json().detail, [
      { loc: ['body'], type: 'missing', msg: 'Field required', input: null, ctx: {} },
    ])
  })

  test('every problem has an input, which may be null', async () => {
    const answer = await ask({ url: '/failures/invalid' })
    assert.equal(answer.statusCode, 422)
    assert.deepEqual(Object.keys(answer.json().detail[0]).sort(), ['ctx', 'input', 'loc', 'msg', 'type'])
  })
})

describe('a field that had another name', () => {
  const send = (query: string, body: object) =>
    ask({ method: 'POST', url: `/renamed${query}`, payload: body, headers: json })
  const locations = (answer: LightMyRequestResponse) => {
    assert.equal(answer.statusCode, 422, answer.body)
    return answer
      .json()
      .detail.map(({ loc, type }: { loc: string[]; type: string }) => `${loc.join('.')} ${type}`)
  }

  test('is accepted under either name, and under both where they have the same value', async () => {
    for (const [query, body] of [
      ['?size=s', { size: 'l' }],
      ['?format=s', { format: 'l' }],
      ['?size=s&format=s', { format: 'l', size: 'l' }],
    ] as const) {
      const answer = await send(query, body)
      assert.equal(answer.statusCode, 200, answer.body)
      assert.deepEqual(JSON.parse(answer.json().name), [{ size: 's' }, { size: 'l' }])
    }
  })

  test('is refused where both are given and differ', async () => {
    const answer = await send('?size=s&format=l', { size: 's', format: 'l' })
    assert.deepEqual(locations(answer), ['query.format value_error', 'body.format value_error'])
    const [, inBody] = answer.json().detail
    assert.deepEqual([inBody.input, inBody.ctx], ['l', { current_name: 'size' }])
    assert.match(inBody.msg, /format is the old name of size/)
  })

  test('is refused under the name that was sent, by any rule', async () => {
    assert.deepEqual(locations(await send('?format=xl', { format: 5 })), [
      'query.format enum',
      'body.format enum',
    ])
    assert.deepEqual(locations(await send('?size=xl', { size: 5 })), ['query.size enum', 'body.size enum'])
    assert.deepEqual(locations(await send('?size=s', { format: 'l', name: 'checked' })), [
      'body.format value_error',
    ])
    assert.deepEqual(locations(await send('?size=s', { format: 'l', name: 'refused' })), ['body.format late'])
  })

  test('is missing under its current name, and another field keeps its position', async () => {
    const answer = await send('?format=s', { nam: 'x' })
    assert.deepEqual(locations(answer), ['body.size missing', 'body.nam extra_forbidden'])
    assert.deepEqual(answer.json().detail[0].input, { nam: 'x' })
    assert.deepEqual(locations(await send('?format=s', { format: 'l', name: 5 })), ['body.name string_type'])
    assert.deepEqual(locations(await send('?format=s', [1])), ['body dict_type'])
  })
})

describe('failures', () => {
  test('any internal failure is a 500 without its message, and the log has it with the request id', async () => {
    for (const kind of ['plain', 'typed']) {
      logged.length = 0
      const answer = await ask({ url: `/failures/${kind}` })
      assertRefusal(answer, 500, 'internal')
      assert.doesNotMatch(answer.body, /control\.internal|lethe_admin/)
      assert.equal(logged.length, 1)
      assert.match(logged[0] ?? '', /control\.internal/)
      assert.ok(logged[0]?.includes(String(answer.headers['x-request-id'])))
    }
  })

  test('a fault of the disk has a code of its own, and the log has its cause', async () => {
    logged.length = 0
    const full = await ask({ url: '/failures/full' })
    assertRefusal(full, 507, 'storage_full')
    const failing = await ask({ url: '/failures/readonly' })
    assertRefusal(failing, 503, 'storage_unavailable')
    assert.equal(failing.headers['retry-after'], '10')
    assert.doesNotMatch(full.body + failing.body, /control\.internal|lethe_admin/)
    assert.equal(logged.filter((line) => /control\.internal/.test(line)).length, 2)
  })

  test('what is thrown but is no error, and a body that was not declared, are a 500 too', async () => {
    for (const kind of ['text', 'shape']) {
      const answer = await ask({ url: `/failures/${kind}` })
      assertRefusal(answer, 500, 'internal')
      assert.doesNotMatch(answer.body, /control\.internal|lethe_admin/)
    }
  })

  test('a refusal of ours keeps its sentence, and its cause stays inside', async () => {
    const overloaded = await ask({ url: '/failures/refused' })
    assertRefusal(overloaded, 503, 'overloaded')
    assert.equal(overloaded.headers['retry-after'], '7')
    assert.doesNotMatch(overloaded.body, /control\.internal/)
    assert.equal((await ask({ url: '/failures/worded' })).json().detail, 'There is no such thing.')
    const late = await ask({ url: '/failures/late' })
    assert.deepEqual([late.statusCode, late.json().code, late.headers['retry-after']], [503, 'erasing', '1'])
    assert.ok(!late.body.includes('no longer to be seen'), 'what was written is not sent')
  })
})

describe('a response in which something was hidden before it is sent', () => {
  test('is computed again where the operation allows that', async () => {
    const { headers, statusCode, ...again } = await ask({ url: '/hidden-once' })
    assert.deepEqual([statusCode, again.json(), headers.location], [200, { answer: 2 }, '/answers/2'])
  })

  test('is refused otherwise', async () => {
    assertRefusal(await ask({ url: '/hidden-once-stored' }), 503, 'erasing')
  })
})

describe('every response', () => {
  test('has a request id of its own, is not stored and not sniffed, refusals included', async () => {
    const answers = [
      await ask({ url: '/things/1' }),
      await ask({ url: '/things/1' }, null),
      await ask({ url: '/nothing' }),
      await ask({ url: '/failures/plain' }),
      await ask({ url: '/healthz' }, null),
      await post('{}', { 'content-type': 'text/plain' }),
    ]
    for (const { headers } of answers) {
      assert.match(String(headers['x-request-id']), /^req_[0-9a-z]{26}$/)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['cache-control'], 'no-store')
    }
    assert.equal(new Set(answers.map(({ headers }) => headers['x-request-id'])).size, answers.length)
  })

  test('accepts no request id from outside', async () => {
    const answer = await ask({ url: '/things/1', headers: { 'x-request-id': 'mine', 'request-id': 'mine' } })
    assert.match(String(answer.headers['x-request-id']), /^req_/)
  })
})

test('no secret is ever logged, at the lowest level and for every kind of response', async () => {
  logged.length = 0
  const headers = { cookie: `session=${secretOf('owner')}`, 'x-api-key': secretOf('owner') }
  await ask({ url: '/things/1', headers })
  await ask({ url: `/things/1?access_token=${secretOf('owner')}` })
  await ask({ url: '/failures/plain', headers })
  await ask({ url: '/failures/text', headers })
  await ask({ url: '/failures/shape', headers })
  await ask({ url: '/nothing', headers })
  await ask({ method: 'PUT', url: '/things/1', headers })
  await post(`{"name":"${secretOf('owner')}","kind":"a"`)
  await post('{}', { 'content-type': 'text/plain' })
  await ask({ url: '/things/1', headers: { authorization: 'Bearer secret-of-nobody' } }, null)
  const encoded = Buffer.from(`user:${secretOf('ingest')}`).toString('base64')
  const sent = { method: 'POST', url: '/v1/things', headers: { authorization: `Basic ${encoded}` } } as const
  assert.equal((await ask(sent, null)).statusCode, 500, 'the password is a token that may send')
  assert.ok(logged.length > 0, 'the failures were logged')
  assert.doesNotMatch(logged.join(''), /secret-of/)
  assert.ok(!logged.join('').includes(encoded.slice(8, 40)))
})

test('a request while the service closes is refused with a code of the contract', async () => {
  let isServing = true
  const own = createHttp({
    clock: new ManualClock(1_763_717_400_000),
    logger: pino({ level: 'silent' }),
    authenticate: byAccessToken(async (secret) => callerOf(secret)),
    isReady: () => isServing,
  })
  serve(own, testOperation({ path: '/late', result: Thing }), {
    handle: async () => ({ body: { name: 'late' } }),
  })
  let askAgain = async () => ''
  let answer = ''
  own.addHook('preClose', async () => {
    answer = await askAgain()
  })
  await own.listen({ host: '127.0.0.1', port: 0 })
  const address = own.server.address()
  assert.ok(address !== null && typeof address === 'object')
  const socket = connect(address.port, '127.0.0.1').setEncoding('utf8')
  askAgain = async () => {
    socket.write(`GET /late HTTP/1.1\r\nhost: lethe\r\nauthorization: Bearer ${secretOf('owner')}\r\n\r\n`)
    return String((await once(socket, 'data'))[0])
  }
  assert.match(await askAgain(), /^HTTP\/1.1 200/)
  isServing = false
  await own.close()
  assert.match(answer, /^HTTP\/1.1 503.*retry-after: 1.*"code":"not_ready"/s)
})
