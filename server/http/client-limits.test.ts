// A client that sends too many requests without a valid token, or tries too many wrong ones, must wait; a
// client with a valid token is served, also from the same address.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { z } from 'zod'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { workOwner } from '../core/work-owner.ts'
import { byAccessToken } from './authentication.ts'
import { ClientLimits } from './client-limits.ts'
import { ClientAddresses } from './limits/client-address.ts'
import { testOperation } from './operation-fixture.ts'
import { addHealthRoutes } from './pages/health.ts'
import { serve } from './serve.ts'
import { createHttp } from './server.ts'

const secret = 'the-one-valid-token-0123456789'
const caller: Caller = {
  tenantId: 'acme',
  placement: 0,
  organisationName: 'Acme',
  role: 'viewer',
  requester: tokenNamed('x'),
}
const open: FastifyInstance[] = []
afterEach(async () => {
  for (const http of open.splice(0)) await http.close()
})

async function start(proxies: string[] = [], refusalDelayMs = 0) {
  const clock = new ManualClock(1_763_717_400_000)
  let lookUps = 0
  const owners: (string | null)[] = []
  const clients = new ClientLimits({
    clock,
    refusalDelayMs,
    addresses: new ClientAddresses(proxies, 'x-forwarded-for'),
    authenticate: byAccessToken(async (given) => {
      lookUps += 1
      owners.push(workOwner())
      return given === secret ? caller : null
    }),
  })
  const logger = pino({ level: 'silent' })
  const http = createHttp({ clock, logger, authenticate: clients, isReady: () => true })
  open.push(http)
  serve(http, testOperation({ path: '/things', access: ['viewer'], result: z.object({}) }), {
    handle: async () => {
      owners.push(workOwner())
      return { body: {} }
    },
  })
  http.get('/open', { config: { access: 'public' } }, async () => 'open')
  addHealthRoutes(http, {
    isReady: () => true,
    isClockInDoubt: () => false,
    disk: { fault: null, sentence: null },
    controlWatch: { fault: async () => null },
  })
  await http.ready()
  const ask = async (url: string, token: string | null, remoteAddress = '192.0.2.7', headers = {}) =>
    http.inject({
      url,
      remoteAddress,
      headers: { ...(token !== null && { authorization: `Bearer ${token}` }), ...headers },
    })
  /** Sends requests until one is refused; returns the number of responses before it, and the refusal. */
  const askOn = async (url: string, token: string | null, ...more: [string?, object?]) => {
    for (let answered = 0; ; answered++) {
      assert.ok(answered < 1000, 'nobody refuses')
      const answer = await ask(url, token, ...more)
      if (answer.statusCode === 429) return { answered, refusal: answer }
    }
  }
  return { clock, clients, ask, askOn, lookUps: () => lookUps, owners }
}

describe('a wrong token', () => {
  test('that is tried too often is refused with 429 and Retry-After, and with 401 again after that time', async () => {
    const { ask, askOn, clients, clock } = await start()
    const { answered, refusal } = await askOn('/things', 'wrong')
    assert.equal(answered, 100)
    assert.equal(refusal.json().code, 'too_many_requests')
    assert.equal(refusal.headers['retry-after'], '1')
    assert.equal(refusal.headers['www-authenticate'], undefined)
    assert.equal((await ask('/things', 'another')).statusCode, 429)
    assert.deepEqual(clients.throttled, { anonymous: 0, failing: 2 })
    assert.equal(clients.failures.get('token_unknown'), 102)
    await clock.advance(1_000)
    assert.equal((await ask('/things', 'wrong')).statusCode, 401)
  })

  test('locks out neither a valid one from the same address nor any client from another', async () => {
    const { ask, askOn, lookUps } = await start()
    await askOn('/things', 'wrong')
    await askOn('/things', null)
    const before = lookUps()
    for (let i = 0; i < 500; i++) assert.equal((await ask('/things', secret)).statusCode, 200)
    assert.equal(lookUps() - before, 500, 'one look-up for each')
    assert.equal((await ask('/things', 'wrong', '192.0.2.8')).statusCode, 401)
  })

  test('is refused after a delay, so that a client that repeats at once costs little; a valid one is served at once', async () => {
    const delayMs = 250
    const { ask, clock } = await start([], delayMs)
    for (let i = 0; i < 100; i++) assert.equal((await ask('/things', 'wrong')).statusCode, 401)
    let refusedAtMs: number | null = null
    const startMs = clock.nowMs()
    const refused = ask('/things', 'wrong').then(({ statusCode }) => {
      refusedAtMs = clock.nowMs()
      return statusCode
    })
    while (clock.waiting === 0) await setImmediate()
    assert.equal((await ask('/things', secret)).statusCode, 200)
    await clock.advance(delayMs - 1)
    assert.equal(refusedAtMs, null)
    await clock.advance(1)
    assert.equal(await refused, 429)
    assert.equal(refusedAtMs, startMs + delayMs)
  })

  test('of every kind counts, and each is counted by its code', async () => {
    const { ask, clients } = await start()
    for (const authorization of ['Bearer', 'Basic x', `Bearer ${'x'.repeat(600)}`]) {
      assert.equal((await ask('/things', null, '192.0.2.7', { authorization })).statusCode, 401)
    }
    await ask('/things', null)
    await ask('/things', 'wrong')
    assert.deepEqual(Object.fromEntries(clients.failures), {
      token_malformed: 3,
      unauthenticated: 1,
      token_unknown: 1,
    })
  })
})

describe('requests without a token', () => {
  test('above the rate of an address are refused for any operation, and probers are served', async () => {
    const { ask, askOn, clients, lookUps } = await start()
    const { answered, refusal } = await askOn('/open', null)
    assert.equal(answered, 300)
    assert.equal(refusal.json().code, 'too_many_requests')
    assert.equal(refusal.headers['retry-after'], '1')
    for (const url of ['/things', '/nothing', '/open'])
      assert.equal((await ask(url, null)).statusCode, 429, url)
    for (const url of ['/healthz', '/readyz']) assert.equal((await ask(url, null)).statusCode, 200, url)
    assert.equal(clients.throttled.anonymous, 4)
    assert.equal(lookUps(), 0)
  })

  test('don’t keep a valid token from public operations, and a wrong one does not avoid the limit', async () => {
    const { ask, askOn } = await start()
    await askOn('/open', null)
    assert.equal((await ask('/open', secret)).statusCode, 200)
    assert.equal((await ask('/nothing', secret)).statusCode, 404)
    assert.equal((await ask('/open', 'wrong')).statusCode, 429)
  })

  test('are counted by the client that a trusted proxy names, and otherwise by the address', async () => {
    const { ask, askOn } = await start(['10.0.0.1'])
    const from = (client: string) => ({ 'x-forwarded-for': client })
    await askOn('/open', null, '10.0.0.1', from('192.0.2.7'))
    assert.equal((await ask('/open', null, '10.0.0.1', from('192.0.2.8'))).statusCode, 200)
    assert.equal((await ask('/open', null, '10.0.0.1', from('192.0.2.9, 192.0.2.7'))).statusCode, 429)
    assert.equal((await ask('/open', null, '192.0.2.7')).statusCode, 429)
    const { answered } = await askOn('/open', null, '192.0.2.20', from('192.0.2.21'))
    assert.equal(answered, 300)
    assert.equal((await ask('/open', null, '192.0.2.20', from('192.0.2.22'))).statusCode, 429)
  })
})

test('a credential is looked up for the address of its client, and an operation works for the organisation', async () => {
  const { ask, owners } = await start()
  assert.equal((await ask('/things', secret)).statusCode, 200)
  assert.deepEqual(owners, ['address 192.0.2.7', 'acme'])
})
