// Two listeners of one service: the main one for clients, the admin one for people who run the service. And
// the counting of requests without a valid token, over HTTP and gRPC together.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type HttpNeeds, wireHttp } from '../../server/app/wire-http.ts'
import { ConfigError, readConfig } from '../../server/config.ts'
import { elapsedMs, systemClock } from '../../server/core/clock.ts'
import { LoopTurns } from '../../server/core/turns/loop-turns.ts'
import { byAccessToken } from '../../server/http/authentication.ts'
import { ClientLimits } from '../../server/http/client-limits.ts'
import { ClientAddresses } from '../../server/http/limits/client-address.ts'
import { RefusalPace } from '../../server/http/limits/refusal-pace.ts'
import { silent } from '../fixtures.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { GrpcClient } from './grpc-client.ts'
import { type Service, startService } from './service.ts'

let service: Service
let admin = ''
before(async () => {
  service = await startService({ settings: { LETHE_ADMIN_PORT: '0', LETHE_DOCS: 'admin' } })
  admin = service.app.adminAddress() ?? assert.fail('no admin listener')
})
after(() => service.stop())

const statusOf = async (address: string, path: string) => {
  const answer = await fetch(`${address}${path}`)
  await answer.arrayBuffer()
  return answer.status
}

describe('the admin listener', () => {
  test('has the pages for people who run the service, and the main one has only health', async () => {
    for (const path of [
      '/metrics',
      '/docs',
      '/docs/',
      '/docs/scalar.js',
      '/docs/start.js',
      '/openapi.json',
    ]) {
      assert.equal(await statusOf(admin, path), 200, path)
      assert.equal(await statusOf(service.address, path), 404, path)
    }
    for (const path of ['/healthz', '/readyz']) {
      assert.equal(await statusOf(admin, path), 200, path)
      assert.equal(await statusOf(service.address, path), 200, path)
    }
    const page = await fetch(service.address, { headers: { accept: 'text/html' } })
    assert.doesNotMatch(await page.text(), /docs|openapi/)
  })

  test('describes the operations of the main one and serves none of them', async () => {
    const { paths } = (await (await fetch(`${admin}/openapi.json`)).json()) as {
      paths: Record<string, unknown>
    }
    assert.ok('/usage/storage/deletions' in paths && '/healthz' in paths)
    assert.equal(await statusOf(admin, '/me'), 404)
    const headers = { authorization: `Bearer ${service.secretOf('acme/owner')}` }
    assert.equal((await fetch(`${admin}/usage/storage`, { headers })).status, 404)
    assert.equal((await fetch(`${admin}/metrics`, { method: 'POST' })).status, 405)
  })

  test('names its setting where its port is used', async () => {
    const config = readConfig({ LETHE_ADMIN_PORT: new URL(admin).port, LETHE_PORT: '0' })
    const clients = new ClientLimits({
      clock: systemClock,
      addresses: new ClientAddresses([], 'forwarded'),
      authenticate: byAccessToken(async () => null),
    })
    const disk: HttpNeeds['disk'] = { withReserve: (work) => work() }
    const turns = new LoopTurns({ nowMs: elapsedMs })
    const refusalPace = new RefusalPace(systemClock)
    const needs = { config, clients, turns, refusalPace, disk, clock: systemClock, logger: silent }
    const front = wireHttp({ ...needs, isReady: () => true, onRefusal: () => {} })
    await assert.rejects(
      front.listen(),
      (error) => error instanceof ConfigError && /LETHE_ADMIN_PORT/.test(error.message),
    )
    await front.close()
  })
})

test('wrong tokens are counted over both protocols together and throttled, and do not block valid ones', async () => {
  const grpc = new GrpcClient(service.app.grpcAddress() ?? assert.fail('no gRPC'))
  try {
    const body = encodeProto('logs', { resourceLogs: [] })
    // At once, because every second and every refusal that is sent late leaves time for another try.
    const answers = await Promise.all(
      Array.from({ length: 140 }, (_, i) => grpc.export('logs', body, `wrong ${i}`)),
    )
    const [unauthenticated, resourceExhausted] = [16, 8]
    assert.deepEqual(new Set(answers.map(({ code }) => code)), new Set([unauthenticated, resourceExhausted]))
    const wrong = { headers: { authorization: 'Bearer wrong' } }
    const others = await Promise.all(Array.from({ length: 60 }, () => fetch(`${service.address}/me`, wrong)))
    assert.ok(others.some(({ status }) => status === 429))
    assert.equal((await grpc.export('logs', body, service.secretOf('acme/ingest'))).code, 0)
    assert.equal((await service.send('GET', '/me')).status, 200)
  } finally {
    grpc.close()
  }
  const metrics = await (await fetch(`${admin}/metrics`)).text()
  assert.match(metrics, /^lethe_authentication_failures_total\{code="token_malformed"\} \d+$/m)
  assert.match(metrics, /^lethe_requests_throttled_total\{reason="failing"\} [1-9]\d*$/m)
  assert.match(metrics, /^lethe_http_connections [1-9]\d*$/m)
})
