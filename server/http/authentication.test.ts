// Finds the caller of a request by its head: authentication by access token alone, and what the server passes
// to any other authentication.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pino from 'pino'
import { z } from 'zod'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken, type RequestHead } from './authentication.ts'
import { testOperation } from './operation-fixture.ts'
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

describe('authentication by access token', () => {
  const asked: string[] = []
  const authenticate = byAccessToken(async (given) => {
    asked.push(given)
    return given === secret ? caller : null
  })
  const headOf = (headers: RequestHead['headers'], takesBasic = false): RequestHead => ({
    method: 'GET',
    headers,
    address: '192.0.2.7',
    takesBasic,
  })
  const basic = { authorization: `Basic ${Buffer.from(`anybody:${secret}`).toString('base64')}` }

  test('returns the caller of a bearer token, and null for a token that is unknown', async () => {
    assert.equal(await authenticate(headOf({ authorization: `Bearer ${secret}` })), caller)
    assert.equal(await authenticate(headOf({ authorization: 'Bearer wrong' })), null)
  })

  test('accepts a token as a password only where the operation does', async () => {
    assert.equal(await authenticate(headOf(basic, true)), caller)
    await assert.rejects(authenticate(headOf(basic)), { code: 'token_malformed' })
  })

  test('refuses a request without a token before any look-up, whatever else the request has', async () => {
    asked.length = 0
    const cookie = `session=${secret}`
    for (const headers of [{}, { authorization: ' ' }, { cookie }]) {
      await assert.rejects(authenticate(headOf(headers)), { code: 'unauthenticated' })
    }
    await assert.rejects(authenticate(headOf({ authorization: secret, cookie })), { code: 'token_malformed' })
    assert.deepEqual(asked, [])
  })
})

test('an authentication receives the method, the headers, the address and what the operation accepts', async () => {
  const heads: RequestHead[] = []
  const http = createHttp({
    clock: new ManualClock(1_763_717_400_000),
    logger: pino({ level: 'silent' }),
    authenticate: async (head) => {
      heads.push(head)
      return head.headers.cookie === 'session=1' && head.headers.origin !== undefined ? caller : null
    },
    isReady: () => true,
  })
  const remove = testOperation({
    method: 'DELETE',
    path: '/things',
    access: ['viewer'],
    result: z.object({}),
  })
  serve(http, remove, { handle: async () => ({ body: {} }) })
  http.post('/v1/things', { config: { access: ['viewer'], takesBasic: true } }, async () => 'taken')
  const headers = { cookie: 'session=1', origin: 'https://lethe.example' }
  const remoteAddress = '192.0.2.7'
  const answers = [
    await http.inject({ method: 'DELETE', url: '/things', headers, remoteAddress }),
    await http.inject({ method: 'POST', url: '/v1/things', headers: { cookie: 'session=1' }, remoteAddress }),
  ]
  await http.close()
  assert.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 401],
  )
  assert.deepEqual(
    heads.map(({ method, address, takesBasic, headers: sent }) => [method, address, takesBasic, sent.origin]),
    [
      ['DELETE', '192.0.2.7', false, 'https://lethe.example'],
      ['POST', '192.0.2.7', true, undefined],
    ],
  )
})
