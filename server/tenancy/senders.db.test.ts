// Callers that send telemetry: no statement for each request, and no request with a token that has ended. A
// second handle stands for the command line beside the service.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { ingestOperations } from '../../contract/operations/ingest.ts'
import { tokenUseMinutes } from '../../contract/organisation/tenancy.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { silent } from '../../tests/fixtures.ts'
import { wireClients } from '../app/wire-http.ts'
import { readConfig } from '../config.ts'
import { figuresOf, outsideWritesOf } from '../control/dialect.ts'
import { operatorActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { rememberedMs } from '../core/remembered.ts'
import { routeOf } from '../http/serve.ts'
import { createHttp } from '../http/server.ts'
import { addTenancyRoutes } from './routes.ts'
import { SessionStore } from './sessions.ts'
import { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'

const { another, close, control } = await openSharedControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const actor = operatorActor('test')
const store = new TenancyStore(control, clock)
const beside = new TenancyStore(another(), clock)
let http: FastifyInstance
before(async () => {
  http = createHttp({
    clock,
    logger: silent,
    authenticate: wireClients({
      config: readConfig({}),
      clock,
      tenancy: store,
      sessions: new SessionStore(control, clock),
    }).clients,
    isReady: () => true,
  })
  addTenancyRoutes(http, store, clock, async () => {})
  http.route({ ...routeOf(ingestOperations.logs), handler: async () => ({}) })
  await http.ready()
})
after(async () => {
  await http.close()
  await close()
})

let organisations = 0
let tenantId: string
let owner: Awaited<ReturnType<typeof tokenOf>>
beforeEach(async () => {
  tenantId = `org-${++organisations}`
  await store.createOrganisation({ tenantId, name: tenantId, actor }, async () => {})
  owner = await tokenOf('owner')
})

async function tokenOf(role: 'owner' | 'ingest', expiresAtMs: number | null = null, tenant = tenantId) {
  const secret = newTokenSecret(role)
  const { id } = await store.createToken({ tenantId: tenant, name: role, role, secret, expiresAtMs, actor })
  return { id, secret }
}

const ask = async (secret: string, method: 'GET' | 'POST' | 'DELETE', url: string) => {
  const answer = await http.inject({
    method,
    url,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    ...(method === 'POST' && { payload: '{}' }),
  })
  return { status: answer.statusCode, code: answer.json().code, text: answer.body }
}
const send = async (secret: string) => (await ask(secret, 'POST', '/v1/logs')).status

async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const before = figuresOf(control).statements
  await work()
  return figuresOf(control).statements - before
}

const nothingElse = { onAdministratorRevoked: async () => {} }
const revoke = (id: string, withDescendants = false, by = store) =>
  by.revokeToken({ tenantId, id, actor, actorRole: 'owner', withDescendants, ...nothingElse })

describe('a request that sends telemetry', () => {
  test('asks the database once for many', async () => {
    const { secret } = await tokenOf('ingest')
    assert.equal(await send(secret), 200)
    // What was written of its use is read once more.
    await send(secret)
    const sendMany = async () => {
      for (let i = 0; i < 50; i++) assert.equal(await send(secret), 200)
    }
    assert.equal(await statementsOf(sendMany), 0)
    await clock.advance(rememberedMs)
    assert.equal(await statementsOf(sendMany), 1)
  })

  test('is refused right after its token was revoked, and a neighbour of the token is not', async () => {
    const [revoked, other] = [await tokenOf('ingest'), await tokenOf('ingest')]
    for (let i = 0; i < 3; i++) {
      assert.deepEqual([await send(revoked.secret), await send(other.secret)], [200, 200])
    }
    assert.equal((await ask(owner.secret, 'DELETE', `/tokens/${revoked.id}`)).status, 200)
    const { status, text } = await ask(revoked.secret, 'POST', '/v1/logs')
    assert.deepEqual([status, /revoked/.test(text)], [401, true])
    assert.equal(await send(other.secret), 200)
  })

  test('is refused after a descendant was revoked with its maker', async () => {
    const made = await http.inject({
      method: 'POST',
      url: '/tokens',
      headers: { authorization: `Bearer ${owner.secret}` },
      payload: { name: 'made', role: 'ingest' },
    })
    const { token } = made.json()
    assert.deepEqual([await send(token), await send(token)], [200, 200])
    await revoke(owner.id, true)
    assert.equal(await send(token), 401)
  })

  test('is refused from the instant at which its token expires', async () => {
    const { secret } = await tokenOf('ingest', clock.nowMs() + rememberedMs / 2)
    assert.deepEqual([await send(secret), await send(secret)], [200, 200])
    await clock.advance(rememberedMs / 2 - 1)
    assert.equal(await send(secret), 200)
    await clock.advance(1)
    assert.equal(await send(secret), 401)
  })

  test('is refused after another process has revoked its token: at once where that is noticed, soon elsewhere', async () => {
    const { id, secret } = await tokenOf('ingest')
    assert.deepEqual([await send(secret), await send(secret)], [200, 200])
    await revoke(id, false, beside)
    assert.equal(await send(secret), outsideWritesOf(control) === null ? 200 : 401)
    await clock.advance(rememberedMs)
    assert.equal(await send(secret), 401)
  })

  test('that races with the revocation is the last one', async () => {
    const { id, secret } = await tokenOf('ingest')
    await send(secret)
    await clock.advance(rememberedMs)
    const racing = Array.from({ length: 20 }, () => send(secret))
    await Promise.all([revoke(id), ...racing])
    assert.equal(await send(secret), 401)
  })
})

test('a request of any other kind asks the database each time', async () => {
  assert.equal((await ask(owner.secret, 'GET', '/me')).status, 200)
  assert.equal(await statementsOf(() => ask(owner.secret, 'GET', '/me')), 1)
  await send(owner.secret)
  await revoke(owner.id, false, beside)
  assert.equal((await ask(owner.secret, 'GET', '/me')).status, 401)
})

test('unknown tokens are looked up each time and leave nothing', async () => {
  const { secret } = await tokenOf('ingest')
  await send(secret)
  await send(secret)
  const findUnknown = async () => {
    for (let i = 0; i < 20; i++) assert.equal(await store.findSender(newTokenSecret('ingest')), null)
  }
  assert.equal(await statementsOf(findUnknown), 20)
  const again = newTokenSecret('ingest')
  assert.equal(await store.findSender(again), null)
  // Nothing remembers that it was unknown.
  const token = { tenantId, name: 'late', role: 'ingest', secret: again, expiresAtMs: null, actor } as const
  await store.createToken(token)
  assert.equal(await send(again), 200)
  assert.equal(await statementsOf(() => send(secret)), 0)
})

test('the use of a token is recorded as before, once every few minutes', async () => {
  const { id, secret } = await tokenOf('ingest')
  const used = async () =>
    (
      await control
        .selectFrom('access_tokens')
        .select('last_used_at_ms')
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
    ).last_used_at_ms
  const firstMs = clock.nowMs()
  await send(secret)
  await clock.advance(1_000)
  await send(secret)
  assert.equal(await used(), firstMs)
  await clock.advance(tokenUseMinutes * 60_000)
  await Promise.all([send(secret), send(secret)])
  assert.equal(await used(), clock.nowMs())
})

test('one organisation’s revocations cost another no look-up', async () => {
  const other = `org-${++organisations}`
  await store.createOrganisation({ tenantId: other, name: other, actor }, async () => {})
  const theirs = await tokenOf('ingest', null, other)
  await send(theirs.secret)
  await send(theirs.secret)
  const ours = await tokenOf('ingest')
  await send(ours.secret)
  await revoke(ours.id)
  assert.equal(await statementsOf(() => send(theirs.secret)), 0)
  assert.equal(await send(ours.secret), 401)
})
