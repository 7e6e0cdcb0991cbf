// The list of refused requests, for a person who waits for the first telemetry: over every protocol, for
// tokens of the own organisation, and without anything that was sent.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { RefusalList } from '../../contract/organisation/refusals.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { waitFor } from '../wait-for.ts'
import { GrpcClient } from './grpc-client.ts'
import { type Service, startService, type Who } from './service.ts'

let service: Service
let grpc: GrpcClient
before(async () => {
  service = await startService()
  grpc = new GrpcClient(service.app.grpcAddress() ?? assert.fail('no gRPC'))
})
after(async () => {
  grpc.close()
  await service.stop()
})

const secretText = 'not-for-anybody-else'

type Kind = readonly [code: string, status: number, place: string, token: string | undefined]

async function kinds(as: Who = 'acme/owner'): Promise<Kind[]> {
  const { items } = await service.read('/usage/refusals', RefusalList, as)
  return items.map(({ code, method, path, status, token }) => [
    code,
    status,
    `${method} ${path}`,
    token?.name,
  ])
}

/** A refusal is counted when its response was sent, which the client may see a moment before. */
async function counted(kind: Kind): Promise<void> {
  const isWanted = (all: readonly Kind[]) => all.some((one) => JSON.stringify(one) === JSON.stringify(kind))
  await waitFor(kinds, isWanted)
}

async function endedToken(): Promise<string> {
  const secret = newTokenSecret('ingest')
  const token = {
    tenantId: 'acme',
    name: 'old collector',
    role: 'ingest' as const,
    secret,
    expiresAtMs: null,
  }
  const { id } = await service.app.tenancy.createToken({ ...token, actor: operatorActor('test') })
  assert.equal((await service.send('DELETE', `/tokens/${id}`)).status, 200)
  return secret
}

test('refusals of every protocol are listed by reason, operation and token', async () => {
  const as = 'acme/ingest' as const
  const headers = { 'content-type': 'application/json' }
  const broken = await service.send('POST', '/v1/logs', { as, body: `{"${secretText}"`, headers })
  assert.equal(broken.status, 400)
  await counted(['undecodable_body', 400, 'POST /v1/logs', 'ingest'])

  const typeless = { 'content-type': 'text/plain' }
  assert.equal((await service.send('POST', '/v1/logs', { as, body: 'x', headers: typeless })).status, 415)
  await counted(['unsupported_media_type', 415, 'POST /v1/logs', 'ingest'])

  const written = { as, body: secretText, headers: { 'content-type': 'application/x-protobuf' } }
  assert.equal((await service.send('POST', '/api/v1/write', written)).status, 400)
  await counted(['undecodable_body', 400, 'POST /api/v1/write', 'ingest'])

  assert.equal((await service.send('GET', `/telemetry/logs?text=${secretText}`, { as })).status, 403)
  await counted(['role_not_permitted', 403, 'GET /telemetry/logs', 'ingest'])

  const wrongAddress = await service.send('POST', `/v1/logs/v1/logs?key=${secretText}`, { as, json: {} })
  assert.equal(wrongAddress.status, 404)
  await counted(['not_found', 404, 'POST /v1/logs/v1/logs', 'ingest'])
  assert.equal((await service.send('GET', '/v1/logs', { as })).status, 405)
  await counted(['method_not_allowed', 405, 'GET /v1/logs', 'ingest'])

  assert.equal((await service.send('GET', '/telemetry/series')).status, 422)
  await counted(['invalid_input', 422, 'GET /telemetry/series', 'owner'])

  const revoked = await endedToken()
  const authorization = `Bearer ${revoked}`
  assert.equal((await service.send('POST', '/v1/logs', { json: {}, headers: { authorization } })).status, 401)
  await counted(['token_revoked', 401, 'POST /v1/logs', 'old collector'])

  const path = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'
  assert.notEqual((await grpc.export('logs', Buffer.from(secretText), service.secretOf(as))).code, 0)
  await counted(['undecodable_body', 400, `POST ${path}`, 'ingest'])
  assert.notEqual((await grpc.export('logs', Buffer.of(), service.secretOf('acme/viewer'))).code, 0)
  await counted(['role_not_permitted', 403, `POST ${path}`, 'viewer'])
  assert.notEqual((await grpc.export('logs', Buffer.of(), revoked)).code, 0)
  await counted(['token_revoked', 401, `POST ${path}`, 'old collector'])

  const { text } = await service.send('GET', '/usage/refusals')
  assert.ok(!text.includes(secretText) && !text.includes(revoked), text)
})

test('refusals of another organisation, or without a valid token, are not listed', async () => {
  const before = await kinds()
  assert.equal((await service.send('GET', '/telemetry/series', { as: 'globex/viewer' })).status, 422)
  const unknown = { authorization: 'Bearer nobody-has-this' }
  for (const headers of [unknown, { authorization: null }]) {
    assert.equal((await service.send('POST', '/v1/logs', { json: {}, headers })).status, 401)
  }
  assert.equal((await service.send('GET', '/nowhere', { headers: unknown })).status, 404)
  await waitFor(
    () => kinds('globex/owner'),
    (all) => all.length > 0,
  )
  assert.deepEqual(await kinds('globex/owner'), [['invalid_input', 422, 'GET /telemetry/series', 'viewer']])
  assert.deepEqual(await kinds(), before)
})

test('accepted telemetry is no refusal', async () => {
  const before = await kinds()
  assert.equal((await service.send('POST', '/v1/logs', { as: 'acme/ingest', json: {} })).status, 200)
  assert.deepEqual(await kinds(), before)
})
