// Sessions of the console with a real control plane, the real HTTP server and a manual clock: what opens one
// and what ends it, and what a page of another origin, a stranger and a stolen code can do.

import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import type { InjectOptions } from 'fastify'
import { tenancyOperations } from '../../contract/operations/tenancy.ts'
import { shownTokenHeader } from '../../contract/organisation/session.ts'
import type { Role } from '../../contract/role.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { silent } from '../../tests/fixtures.ts'
import { readChain } from '../audit/log.ts'
import { figuresOf } from '../control/dialect.ts'
import { operatorActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { ClientLimits } from '../http/client-limits.ts'
import { byCredential } from '../http/credentials.ts'
import { ClientAddresses } from '../http/limits/client-address.ts'
import { serve } from '../http/serve.ts'
import { createHttp } from '../http/server.ts'
import { addTenancyRoutes } from './routes.ts'
import { addSessionRoutes } from './session-routes.ts'
import { SessionStore } from './sessions.ts'
import { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'

const [msPerHour, msPerDay] = [3_600_000, 86_400_000]
const host = 'lethe.example:8080'
const ownPage = { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }

const { control, close, filesWith } = await openSharedControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const store = new TenancyStore(control, clock)
const sessions = new SessionStore(control, clock)
const http = createHttp({
  clock,
  logger: silent,
  authenticate: new ClientLimits({
    clock,
    refusalDelayMs: 0,
    addresses: new ClientAddresses([], 'x-forwarded-for'),
    authenticate: byCredential({
      ofToken: (secret) => store.findCaller(secret),
      ofSession: (secret) => sessions.findCaller(secret),
      ofSignInCode: (code) => sessions.findCallerOfCode(code),
    }),
  }),
  isReady: () => true,
})
addTenancyRoutes(http, store, clock, async () => {})
addSessionRoutes(http, sessions)
serve(
  http,
  { ...tenancyOperations.me, id: 'postThings', method: 'POST', path: '/v1/things', takesBasic: true },
  { handle: async () => assert.fail('telemetry was accepted by cookie') },
)
await http.ready()
after(async () => {
  await http.close()
  await close()
})

let organisations = 0
let tenantId = ''
/** Creates an organisation, to which the tokens that follow belong. */
async function createOrganisation(): Promise<void> {
  tenantId = `acme-${++organisations}`
  await store.createOrganisation(
    { tenantId, name: tenantId, actor: operatorActor('command-line') },
    async () => {},
  )
}
beforeEach(createOrganisation)

async function tokenOf(role: Role, days: number | null = null): Promise<{ id: string; secret: string }> {
  const secret = newTokenSecret(role)
  const expiresAtMs = days === null ? null : clock.nowMs() + days * msPerDay
  const actor = operatorActor('command-line')
  const { id } = await store.createToken({ tenantId, name: role, role, secret, expiresAtMs, actor })
  return { id, secret }
}

async function ask(method: 'GET' | 'POST' | 'DELETE', url: string, headers: InjectOptions['headers'] = {}) {
  const answer = await http.inject({ method, url, headers })
  const body = answer.body === '' ? {} : answer.json()
  return { status: answer.statusCode, body, cookie: String(answer.headers['set-cookie'] ?? '') }
}

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })

/** Signs in and returns the Cookie header that a browser would send. */
async function signIn(secret: string, headers: Record<string, string> = ownPage): Promise<string> {
  const { cookie, status } = await ask('POST', '/session', { ...headers, ...bearer(secret) })
  assert.equal(status, 201)
  return cookie.split(';')[0] ?? ''
}

const meWith = (cookie: string, headers: Record<string, string> = ownPage) =>
  ask('GET', '/me', { ...headers, cookie })

async function codeFor(secret: string): Promise<string> {
  const caller = (await store.findCaller(secret)) ?? assert.fail('no caller')
  return sessions.createCode(caller, operatorActor('first-start'))
}

const actions = async (of = tenantId) =>
  (await readChain(control, 'audit_entries', of)).map(({ text }) => JSON.parse(text).action)

/** Names the token that a page shows. */
const shows = ({ id }: { readonly id: string }) => ({ [shownTokenHeader]: id })

describe('a session', () => {
  test('acts as its token, under its name and role, without the token', async () => {
    const { id, secret } = await tokenOf('admin')
    const { status, body } = await meWith(await signIn(secret))
    assert.deepEqual(
      [status, body.tenant_id, body.role, body.requester],
      [200, tenantId, 'admin', `token:admin (${id})`],
    )
    assert.deepEqual((await actions()).slice(-1), ['session.created'])
  })

  test('counts as a use of its token', async () => {
    const { secret } = await tokenOf('admin')
    const cookie = await signIn(secret)
    await clock.advance(msPerHour)
    assert.equal((await meWith(cookie)).status, 200)
    const [token] = await store.listTokens(tenantId, { limit: 1, beforeId: null })
    assert.equal(token?.last_used_at, new Date(clock.nowMs()).toISOString())
  })

  test('has a cookie that no script reads and no other site sends, over TLS for this host only', async () => {
    const { secret } = await tokenOf('owner')
    const plain = await ask('POST', '/session', { ...ownPage, ...bearer(secret) })
    assert.match(
      plain.cookie,
      /^lethe_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/,
    )
    const overTls = { ...ownPage, origin: `https://${host}` }
    const secure = await ask('POST', '/session', { ...overTls, ...bearer(secret) })
    assert.match(secure.cookie, /^__Host-lethe_session=[\w-]{43}; Path=\/; .*; Secure$/)
    assert.equal((await meWith(secure.cookie.split(';')[0] ?? '')).status, 200)
  })

  test('is stored as a hash, and its secret is in no response body', async () => {
    const { secret } = await tokenOf('owner')
    const answer = await ask('POST', '/session', { ...ownPage, ...bearer(secret) })
    const cookie = /=([\w-]{43});/.exec(answer.cookie)?.[1] ?? assert.fail('no secret')
    assert.equal(JSON.stringify(answer.body).includes(cookie), false)
    assert.deepEqual(filesWith(cookie), [])
  })

  test('ends with its token: revoked, with a revoked ancestor, or expired', async () => {
    const root = await tokenOf('owner')
    const made = await http.inject({
      method: 'POST',
      url: '/tokens',
      headers: bearer(root.secret),
      payload: { name: 'x', role: 'admin' },
    })
    const cookies = [await signIn(root.secret), await signIn(made.json().token)]
    await store.revokeToken({
      tenantId,
      id: root.id,
      actor: operatorActor('command-line'),
      actorRole: 'owner',
      withDescendants: true,
      onAdministratorRevoked: async () => {},
    })
    for (const cookie of cookies) assert.equal((await meWith(cookie)).body.code, 'session_ended')
    const short = await tokenOf('owner', 1)
    const cookie = await signIn(short.secret)
    await clock.advance(msPerHour * 11)
    assert.equal((await meWith(cookie)).status, 200)
    await clock.advance(msPerHour * 11)
    assert.equal((await meWith(cookie)).status, 200)
    await clock.advance(msPerHour * 3)
    assert.equal((await meWith(cookie)).body.code, 'token_expired')
  })

  test('ends after 12 hours without a request, and 7 days after the sign-in', async () => {
    const { secret } = await tokenOf('owner')
    const idle = await signIn(secret)
    await clock.advance(12 * msPerHour)
    assert.equal((await meWith(idle)).body.code, 'session_ended')
    const used = await signIn(secret)
    for (let hours = 0; hours < 7 * 24; hours += 8) {
      assert.equal((await meWith(used)).status, 200, `after ${hours} hours`)
      await clock.advance(8 * msPerHour)
    }
    assert.equal((await meWith(used)).body.code, 'session_ended')
  })

  test('ends when its person signs out, and the token still works', async () => {
    const { id, secret } = await tokenOf('owner')
    const [cookie, other] = [await signIn(secret), await signIn(secret)]
    const out = await ask('DELETE', '/session', { ...ownPage, ...shows({ id }), cookie })
    assert.equal(out.status, 204)
    assert.match(out.cookie, /^lethe_session=; .*Max-Age=0$/)
    assert.equal((await meWith(cookie)).body.code, 'session_ended')
    assert.equal((await meWith(other)).status, 200)
    assert.equal((await ask('GET', '/me', bearer(secret))).status, 200)
    assert.deepEqual((await actions()).slice(-1), ['session.ended'])
  })

  test('is not opened by a token that only sends telemetry', async () => {
    const { secret } = await tokenOf('ingest')
    const { body, cookie } = await ask('POST', '/session', { ...ownPage, ...bearer(secret) })
    assert.deepEqual([body.code, cookie], ['role_not_permitted', ''])
  })

  test('ends where its token has too many: the oldest first', async () => {
    const { secret } = await tokenOf('owner')
    const first = await signIn(secret)
    for (let i = 0; i < 20; i++) {
      await clock.advance(3_000)
      await signIn(secret)
    }
    assert.equal((await meWith(first)).body.code, 'session_ended')
    const { rows } = await control
      .selectFrom('sessions')
      .select(({ fn }) => fn.countAll<number>().as('rows'))
      .where('tenant_id', '=', tenantId)
      .executeTakeFirstOrThrow()
    assert.equal(Number(rows), 20)
  })
})

describe('a request with a session cookie', () => {
  const foreign: readonly Record<string, string>[] = [
    { host, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    { host, origin: 'http://lethe.example:9999', 'sec-fetch-site': 'same-site' },
    { host, origin: 'http://lethe.example:9999' },
    { host, origin: 'null' },
  ]

  test('of another origin is refused and changes nothing, whatever its method', async () => {
    const { secret } = await tokenOf('owner')
    const cookie = await signIn(secret)
    for (const headers of foreign) {
      for (const method of ['GET', 'POST'] as const) {
        const url = method === 'GET' ? '/me' : '/tokens'
        const { body, status } = await ask(method, url, { ...headers, cookie })
        assert.deepEqual([status, body.code], [403, 'other_origin'], JSON.stringify(headers))
      }
      assert.equal((await ask('DELETE', '/session', { ...headers, cookie })).status, 403)
    }
    assert.equal((await meWith(cookie)).status, 200)
  })

  test('that may change something needs a browser that names its page', async () => {
    const token = await tokenOf('owner')
    const cookie = await signIn(token.secret)
    const sent = { ...shows(token), cookie }
    assert.equal((await ask('DELETE', '/session', { host, ...sent })).status, 403)
    const typed = { host, 'sec-fetch-site': 'none' }
    assert.equal((await meWith(cookie, typed)).status, 200, 'an address that a person typed')
    assert.equal((await ask('DELETE', '/session', { ...typed, ...sent })).status, 403)
    const withoutTls = { host, origin: `http://${host}` }
    assert.equal((await ask('DELETE', '/session', { ...withoutTls, ...sent })).status, 204)
  })

  test('reads and changes nothing where the page shows another token, or names none for a change', async () => {
    const shown = { tenantId, ...(await tokenOf('owner')) }
    await createOrganisation()
    const [owner, viewer] = [await tokenOf('owner'), await tokenOf('viewer')]
    const cookie = await signIn(owner.secret)
    const before = [await actions(shown.tenantId), await actions()]
    const change = [
      ['POST', '/tokens'],
      ['DELETE', `/tokens/${viewer.id}`],
      ['DELETE', '/session'],
    ] as const
    for (const page of [shows(shown), shows(viewer), shows({ id: '' }), {}]) {
      const reads = shownTokenHeader in page ? ([['GET', '/tokens']] as const) : []
      for (const [method, url] of [...reads, ...change]) {
        const { body, status } = await ask(method, url, { ...ownPage, ...page, cookie })
        const said = { code: body.code, status, items: body.items }
        assert.deepEqual(said, { code: 'other_token', status: 409, items: undefined }, `${method} ${url}`)
      }
    }
    assert.deepEqual([await actions(shown.tenantId), await actions()], before)
    for (const { secret } of [shown, owner, viewer]) {
      assert.equal((await ask('GET', '/me', bearer(secret))).status, 200)
    }
    assert.equal((await meWith(cookie)).body.token_id, owner.id, 'a link names no token')
    const revoked = await ask('DELETE', `/tokens/${viewer.id}`, { ...ownPage, ...shows(owner), cookie })
    assert.equal(revoked.status, 200)
  })

  test('never sends telemetry', async () => {
    const { secret } = await tokenOf('owner')
    const cookie = await signIn(secret)
    const { body } = await ask('POST', '/v1/things', { ...ownPage, cookie })
    assert.equal(body.code, 'unauthenticated')
  })

  test('uses only its token where it has a token and a cookie', async () => {
    const [owner, viewer] = [await tokenOf('owner'), await tokenOf('viewer')]
    const cookie = await signIn(owner.secret)
    const both = await ask('GET', '/me', { ...ownPage, cookie, ...bearer(viewer.secret) })
    assert.equal(both.body.role, 'viewer')
    const wrong = await ask('GET', '/me', { ...ownPage, cookie, ...bearer('wrong') })
    assert.equal(wrong.body.code, 'token_unknown')
  })

  test('is refused where two cookies disagree, and where the secret is of another form', async () => {
    const { secret } = await tokenOf('owner')
    const cookie = await signIn(secret)
    const other = await signIn(secret)
    for (const bad of [`${cookie}; ${other}`, 'lethe_session=x', `lethe_session=${secret}`]) {
      assert.equal((await meWith(bad)).body.code, 'session_ended', bad)
    }
    assert.equal((await meWith(`theme=dark; ${cookie}; other=1`)).status, 200)
  })
})

describe('signing in', () => {
  test('is refused to a page of another origin, which could sign a person in as somebody else', async () => {
    const { secret } = await tokenOf('owner')
    for (const headers of [
      { host, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { host, origin: 'https://evil.example' },
    ]) {
      const { body, cookie } = await ask('POST', '/session', { ...headers, ...bearer(secret) })
      assert.deepEqual([body.code, cookie], ['other_origin', ''])
    }
  })

  test('needs a token or a code: a session does not open another one', async () => {
    const { secret } = await tokenOf('owner')
    const cookie = await signIn(secret)
    assert.equal((await ask('POST', '/session', { ...ownPage, cookie })).body.code, 'unauthenticated')
    assert.equal((await ask('POST', '/session', ownPage)).body.code, 'unauthenticated')
  })

  test('with wrong tokens is throttled by address, and a valid token is not', async () => {
    const { secret } = await tokenOf('owner')
    const codes = new Set<string>()
    for (let i = 0; i < 120; i++) {
      codes.add((await ask('POST', '/session', { ...ownPage, ...bearer(`wrong-${i}`) })).body.code)
    }
    assert.deepEqual(codes, new Set(['token_unknown', 'too_many_requests']))
    assert.equal((await meWith(await signIn(secret))).status, 200)
    await clock.advance(msPerHour)
  })

  test('is limited per organisation', async () => {
    const { secret } = await tokenOf('owner')
    for (let i = 0; i < 30; i++) await signIn(secret)
    const { body } = await ask('POST', '/session', { ...ownPage, ...bearer(secret) })
    assert.equal(body.code, 'too_many_requests')
  })
})

describe('a one-time code', () => {
  test('signs in once as its token, and is stored as a hash', async () => {
    const { secret } = await tokenOf('owner')
    const code = await codeFor(secret)
    assert.deepEqual(filesWith(code), [])
    assert.equal((await meWith(await signIn(code))).body.role, 'owner')
    const again = await ask('POST', '/session', { ...ownPage, ...bearer(code) })
    assert.equal(again.body.code, 'token_unknown')
  })

  test('signs in one of two who use it at the same time', async () => {
    const { secret } = await tokenOf('owner')
    const code = await codeFor(secret)
    const tries = [1, 2].map(() => ask('POST', '/session', { ...ownPage, ...bearer(code) }))
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [201, 401])
  })

  test('is no token: no other operation accepts it', async () => {
    const { secret } = await tokenOf('owner')
    const code = await codeFor(secret)
    assert.equal((await ask('GET', '/me', bearer(code))).body.code, 'token_unknown')
    assert.equal((await meWith(await signIn(code))).status, 200)
  })

  test('ends after an hour, and with its token', async () => {
    const { id, secret } = await tokenOf('owner')
    const old = await codeFor(secret)
    await clock.advance(msPerHour)
    assert.equal((await ask('POST', '/session', { ...ownPage, ...bearer(old) })).status, 401)
    const code = await codeFor(secret)
    const actor = operatorActor('command-line')
    await store.revokeToken({
      tenantId,
      id,
      actor,
      actorRole: 'owner',
      withDescendants: false,
      onAdministratorRevoked: async () => {},
    })
    assert.equal((await ask('POST', '/session', { ...ownPage, ...bearer(code) })).status, 401)
  })
})

test('requests of one session that come at once share its look-up, and write its use once', async () => {
  const { secret } = await tokenOf('viewer')
  const cookie = await signIn(secret)
  await meWith(cookie)
  await clock.advance(61_000)
  const sessionOf = (given: string) => sessions.findCaller(given.split('=')[1] ?? '')
  const before = figuresOf(control).statements
  const callers = await Promise.all(Array.from({ length: 20 }, () => sessionOf(cookie)))
  assert.deepEqual(new Set(callers.map((caller) => caller?.tenantId)), new Set([tenantId]))
  const statements = figuresOf(control).statements - before
  assert.ok(statements <= 4, `${statements} statements`)
})
