// Access over HTTP: one row per address and method, compared in both directions with the registered routes,
// then every kind of caller against every row. A new route without a row fails here, and so does a row
// without a route, so access cannot be left undecided by mistake.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { type ErrorCode, errorCatalogue } from '../../contract/errors.ts'
import type { Access } from '../../contract/operation.ts'
import { everyOperation } from '../../contract/operations/every.ts'
import { AccessToken } from '../../contract/organisation/tenancy.ts'
import { type Role, roles } from '../../contract/role.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { decodeProto } from '../otlp/otlp-messages.ts'
import { type Answer, assertRefused, type Service, startService } from './service.ts'

interface Row {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  /** Null for files without access control. */
  readonly access: Access | null
  /** The status that callers with access get for an empty object, unknown ids and no parameters. */
  readonly status: number
  /** Absent from the reference page on purpose. */
  readonly isHidden?: true
}

const administrators: readonly Role[] = ['owner', 'admin']
const editors: readonly Role[] = ['owner', 'admin', 'member']
const readers: readonly Role[] = ['owner', 'admin', 'member', 'viewer']
const senders: readonly Role[] = ['owner', 'admin', 'member', 'ingest']

const rows: readonly Row[] = [
  { method: 'GET', url: '/', access: 'public', status: 200 },
  { method: 'GET', url: '/healthz', access: 'public', status: 200 },
  { method: 'GET', url: '/readyz', access: 'public', status: 200 },
  { method: 'GET', url: '/metrics', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/openapi.json', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/.well-known/jwks.json', access: 'public', status: 200 },
  { method: 'GET', url: '/docs', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/docs/', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/docs/scalar.js', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/docs/start.js', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/console', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/console/*', access: 'public', status: 200, isHidden: true },
  { method: 'GET', url: '/console/assets/:file', access: 'public', status: 404, isHidden: true },
  { method: 'GET', url: '/me', access: roles, status: 200 },
  { method: 'POST', url: '/session', access: readers, status: 201 },
  { method: 'DELETE', url: '/session', access: roles, status: 204 },
  { method: 'GET', url: '/organisation', access: readers, status: 200 },
  { method: 'GET', url: '/tokens', access: administrators, status: 200 },
  { method: 'POST', url: '/tokens', access: administrators, status: 422 },
  { method: 'DELETE', url: '/tokens/:token_id', access: administrators, status: 404 },
  { method: 'POST', url: '/organisation/remove', access: ['owner'], status: 422 },
  { method: 'GET', url: '/audit-log', access: administrators, status: 200 },
  { method: 'GET', url: '/audit-log/export', access: administrators, status: 200 },
  { method: 'GET', url: '/ledger', access: administrators, status: 200 },
  { method: 'GET', url: '/ledger/export', access: administrators, status: 200 },
  { method: 'GET', url: '/usage/storage', access: readers, status: 200 },
  { method: 'GET', url: '/usage/storage/services', access: readers, status: 200 },
  { method: 'GET', url: '/usage/storage/erased', access: readers, status: 200 },
  { method: 'GET', url: '/usage/ingest', access: readers, status: 200 },
  { method: 'GET', url: '/usage/refusals', access: administrators, status: 200 },
  { method: 'POST', url: '/usage/storage/deletions', access: administrators, status: 422 },
  { method: 'POST', url: '/usage/storage/deletions/preview', access: administrators, status: 422 },
  { method: 'GET', url: '/usage/storage/deletions', access: administrators, status: 200 },
  { method: 'GET', url: '/usage/storage/deletions/:request_id', access: administrators, status: 404 },
  {
    method: 'GET',
    url: '/usage/storage/deletions/:request_id/certificate',
    access: administrators,
    status: 404,
  },
  { method: 'POST', url: '/usage/storage/deletions/:request_id/cancel', access: administrators, status: 404 },
  {
    method: 'POST',
    url: '/usage/storage/deletions/:request_id/approve',
    access: administrators,
    status: 404,
  },
  { method: 'POST', url: '/usage/storage/deletions/:request_id/reject', access: administrators, status: 422 },
  { method: 'POST', url: '/usage/storage/deletions/:request_id/retry', access: administrators, status: 404 },
  { method: 'POST', url: '/usage/storage/deletions/:request_id/verify', access: administrators, status: 404 },
  { method: 'GET', url: '/usage/storage/deletion-policy', access: administrators, status: 200 },
  { method: 'PUT', url: '/usage/storage/deletion-policy', access: ['owner'], status: 422 },
  { method: 'GET', url: '/usage/storage/holds', access: administrators, status: 200 },
  { method: 'POST', url: '/usage/storage/holds', access: administrators, status: 422 },
  { method: 'GET', url: '/usage/storage/holds/:hold_id', access: administrators, status: 404 },
  { method: 'POST', url: '/usage/storage/holds/:hold_id/release', access: administrators, status: 404 },
  { method: 'GET', url: '/usage/storage/retention', access: readers, status: 200 },
  { method: 'PUT', url: '/usage/storage/retention', access: administrators, status: 422 },
  { method: 'PATCH', url: '/usage/storage/retention', access: administrators, status: 200 },
  {
    method: 'POST',
    url: '/usage/storage/retention/changes/:change_id/approve',
    access: administrators,
    status: 404,
  },
  {
    method: 'POST',
    url: '/usage/storage/retention/changes/:change_id/reject',
    access: administrators,
    status: 422,
  },
  { method: 'GET', url: '/telemetry/series', access: readers, status: 422 },
  { method: 'GET', url: '/telemetry/logs', access: readers, status: 200 },
  { method: 'GET', url: '/telemetry/logs/counts', access: readers, status: 200 },
  { method: 'GET', url: '/telemetry/spans', access: readers, status: 200 },
  { method: 'GET', url: '/telemetry/traces/:trace_id', access: readers, status: 404 },
  { method: 'GET', url: '/telemetry/services', access: readers, status: 200 },
  { method: 'GET', url: '/telemetry/metrics', access: readers, status: 200 },
  { method: 'GET', url: '/telemetry/attributes', access: readers, status: 422 },
  { method: 'GET', url: '/telemetry/deploys', access: readers, status: 200 },
  { method: 'GET', url: '/anomalies', access: readers, status: 200 },
  { method: 'GET', url: '/anomalies/methods', access: readers, status: 200 },
  { method: 'GET', url: '/anomalies/metrics', access: readers, status: 200 },
  { method: 'GET', url: '/anomalies/:anomaly_id', access: readers, status: 404 },
  { method: 'GET', url: '/anomalies/:anomaly_id/versions', access: readers, status: 404 },
  { method: 'POST', url: '/anomalies/:anomaly_id/feedback', access: editors, status: 422 },
  { method: 'GET', url: '/anomalies/suggest', access: editors, status: 422 },
  { method: 'GET', url: '/anomalies/mutes', access: readers, status: 200 },
  { method: 'POST', url: '/anomalies/mutes', access: editors, status: 422 },
  { method: 'DELETE', url: '/anomalies/mutes/:mute_id', access: editors, status: 404 },
  { method: 'POST', url: '/anomalies/detectors/preview', access: editors, status: 422 },
  { method: 'GET', url: '/incidents', access: readers, status: 200 },
  { method: 'GET', url: '/incidents/:incident_id', access: readers, status: 404 },
  { method: 'GET', url: '/anomalies/detectors', access: readers, status: 200 },
  { method: 'POST', url: '/anomalies/detectors', access: editors, status: 422 },
  { method: 'GET', url: '/anomalies/detectors/:detector_id', access: readers, status: 404 },
  { method: 'PATCH', url: '/anomalies/detectors/:detector_id', access: editors, status: 404 },
  { method: 'DELETE', url: '/anomalies/detectors/:detector_id', access: editors, status: 404 },
  { method: 'POST', url: '/anomalies/detectors/:detector_id/run', access: editors, status: 404 },
  { method: 'POST', url: '/v1/metrics', access: senders, status: 200 },
  { method: 'POST', url: '/v1/logs', access: senders, status: 200 },
  { method: 'POST', url: '/v1/traces', access: senders, status: 200 },
  { method: 'POST', url: '/api/v1/write', access: senders, status: 415 },
]

const guarded = rows.filter((row): row is Row & { access: readonly Role[] } => Array.isArray(row.access))
const open = rows.filter(({ access }) => !Array.isArray(access))

let service: Service
before(async () => {
  service = await startService({ settings: { LETHE_TRUSTED_PROXIES: '127.0.0.1' } })
})
after(() => service.stop())

/** Each stranger has its own address, because the tries of one address are limited. */
let addresses = 0
const fromNewAddress = () => ({ 'x-forwarded-for': `192.0.2.${++addresses % 256}` })

/** An address with unknown ids. */
function pathOf({ url }: Row): string {
  return url
    .replace(':trace_id', '0123456789abcdef0123456789abcdef')
    .replace(/:[a-z_]+|\*/, 'nobody-has-this')
}

function isExport({ url }: Row): boolean {
  return url.startsWith('/v1/')
}

/** Sends an empty object to routes with a body, under any authorization; null for none. */
function call(row: Row, authorization: string | null, method: string = row.method): Promise<Answer> {
  const takesBody = method === 'POST' || method === 'PUT' || method === 'PATCH'
  return service.send(method, pathOf(row), {
    headers: { authorization, ...fromNewAddress() },
    ...(takesBody && { json: {} }),
  })
}

/** Exporters read google.rpc.Status; all others read our catalogue. `code` is the code of the catalogue. */
function assertRefusedBy(row: Row, answer: Answer, code: ErrorCode): void {
  const { sentence, status } = errorCatalogue[code]
  assert.equal(answer.headers.has('www-authenticate'), status === 401)
  if (!isExport(row)) {
    assertRefused(answer, status, code)
    return
  }
  assert.equal(answer.status, status, answer.text)
  const body = JSON.parse(answer.text)
  assert.deepEqual(Object.keys(body).sort(), ['code', 'message'])
  assert.equal(body.code, status === 401 ? 16 : 7)
  if (status === 401) assert.equal(body.message, sentence)
}

test('the table and the registered routes are the same, method by method and role by role', () => {
  const registered = [...service.app.http.routeTable].flatMap(([url, methods]) =>
    [...methods]
      .filter(([method]) => method !== 'HEAD')
      .map(([method, access]) => `${method} ${url} ${JSON.stringify(access ?? null)}`),
  )
  const expected = rows.map(({ method, url, access }) => `${method} ${url} ${JSON.stringify(access)}`)
  assert.deepEqual(registered.sort(), expected.sort())
})

test('exactly the operations of the contract are served, for the same roles', () => {
  const served = [...service.app.http.routeTable].flatMap(([url, methods]) =>
    [...methods]
      .filter(([method]) => method !== 'HEAD')
      .map(([method, access]) => `${method} ${url} ${JSON.stringify(access ?? null)}`),
  )
  const declared = everyOperation.map(
    ({ method, path, access }) => `${method} ${path} ${JSON.stringify(access)}`,
  )
  assert.deepEqual(served.sort(), declared.sort())
})

test('HEAD exists exactly where GET does, for the same roles', () => {
  for (const [url, methods] of service.app.http.routeTable) {
    assert.equal(methods.has('HEAD'), methods.has('GET'), url)
    if (methods.has('GET')) assert.deepEqual(methods.get('HEAD'), methods.get('GET'), url)
  }
})

for (const role of roles) {
  test(`a token with the role ${role} has access exactly where the table says so`, async () => {
    const authorization = `Bearer ${service.secretOf(`acme/${role}`)}`
    for (const row of guarded) {
      const answer = await call(row, authorization)
      if (!row.access.includes(role)) assertRefusedBy(row, answer, 'role_not_permitted')
      else assert.equal(answer.status, row.status, `${row.method} ${row.url}: ${answer.text}`)
      if (row.method !== 'GET') continue
      const head = await call(row, authorization, 'HEAD')
      assert.deepEqual([head.status, head.text], [answer.status, ''], `HEAD ${row.url}`)
    }
  })
}

test('public routes need no token, and ignore an unknown one', async () => {
  for (const row of open) {
    for (const authorization of [null, 'Bearer nobody-has-this']) {
      const answer = await call(row, authorization)
      assert.equal(answer.status, row.status, `${row.method} ${row.url}`)
    }
  }
})

/** A token of acme that no longer works: revoked over HTTP, or made to expire a moment ago. */
async function endedToken(how: 'revoked' | 'expired'): Promise<string> {
  const secret = newTokenSecret('owner')
  const expiresAtMs = how === 'expired' ? systemClock.nowMs() - 1 : null
  const token = {
    tenantId: 'acme',
    name: how,
    role: 'owner' as const,
    secret,
    expiresAtMs,
    actor: operatorActor('test'),
  }
  const { id } = await service.app.tenancy.createToken(token)
  if (how === 'revoked') {
    const authorization = `Bearer ${secret}`
    const me = await service.send('GET', '/me', { headers: { authorization } })
    assert.equal(me.status, 200, 'the token works until it is revoked')
    const revoked = await service.send('DELETE', `/tokens/${id}`)
    assert.equal(revoked.status, 200, revoked.text)
  }
  return `Bearer ${secret}`
}

interface Stranger {
  readonly name: string
  readonly authorizationOf: () => Promise<string | null>
  readonly code: ErrorCode
  /** The error code of RFC 6750; null where no token was sent. */
  readonly error: string | null
}

const strangers: readonly Stranger[] = [
  { name: 'no token', authorizationOf: async () => null, code: 'unauthenticated', error: null },
  {
    name: 'a header without a token',
    authorizationOf: async () => 'Bearer',
    code: 'token_malformed',
    error: 'invalid_request',
  },
  {
    name: 'an unknown token',
    authorizationOf: async () => `Bearer ${newTokenSecret('owner')}`,
    code: 'token_unknown',
    error: 'invalid_token',
  },
  {
    name: 'a revoked token',
    authorizationOf: () => endedToken('revoked'),
    code: 'token_revoked',
    error: 'invalid_token',
  },
  {
    name: 'an expired token',
    authorizationOf: () => endedToken('expired'),
    code: 'token_expired',
    error: 'invalid_token',
  },
]

for (const { name, authorizationOf, code, error } of strangers) {
  test(`${name} is refused by every guarded route, with the same error everywhere`, async () => {
    const authorization = await authorizationOf()
    const seen = new Set<string>()
    for (const row of guarded) {
      const answer = await call(row, authorization)
      assertRefusedBy(row, answer, code)
      const challenge = answer.headers.get('www-authenticate') ?? ''
      seen.add(isExport(row) ? challenge : `${challenge} ${answer.text}`)
      assert.equal(/error="(\w+)", error_description="[\w ]+"$/.exec(challenge)?.[1] ?? null, error)
    }
    assert.equal(seen.size, 2, 'exporters get another form')
  })
}

test('a part of a revoked token, and its hash, are unknown secrets', async () => {
  const authorization = await endedToken('revoked')
  const hash = createHash('sha256').update(authorization.slice('Bearer '.length)).digest('hex')
  for (const other of [authorization.slice(0, -1), `${authorization}x`, `Bearer ${hash}`]) {
    const answer = await service.send('GET', '/me', { headers: { authorization: other } })
    assertRefused(answer, 401, 'token_unknown')
  }
})

test('only a complete secret with the scheme Bearer authenticates', async () => {
  const secret = service.secretOf('acme/owner')
  const statusOf = async (authorization: string) =>
    (await service.send('GET', '/me', { headers: { authorization } })).status
  for (const good of [`Bearer ${secret}`, `bearer ${secret}`, `BEARER   ${secret}`]) {
    assert.equal(await statusOf(good), 200, good)
  }
  const bad = [
    '',
    'Bearer',
    'Bearer ',
    secret,
    `Basic ${secret}`,
    `Token ${secret}`,
    `Bearer ${secret}x`,
    `Bearer ${secret.slice(0, -1)}`,
    `Bearer ${secret.toUpperCase()}`,
    `Bearer ${secret} ${secret}`,
    `Bearer ${secret}, Bearer ${secret}`,
    `Bearer "${secret}"`,
    `Bearer ${'a'.repeat(600)}`,
    "Bearer ' OR 1=1 --",
  ]
  for (const authorization of bad) assert.equal(await statusOf(authorization), 401, authorization)
})

test('a secret in the address does not authenticate', async () => {
  const secret = service.secretOf('acme/owner')
  const answer = await service.send('GET', `/me?access_token=${secret}`, { headers: { authorization: null } })
  assertRefused(answer, 401, 'unauthenticated')
})

test('callers without access learn nothing from the body they sent', async () => {
  const bodies = ['{', '{"scope":"all","confirm":"acme"}', 'x'.repeat(100_000)]
  for (const body of bodies) {
    const headers = { 'content-type': 'application/json' }
    const answer = await service.send('POST', '/usage/storage/deletions', {
      as: 'acme/viewer',
      body,
      headers,
    })
    assertRefused(answer, 403, 'role_not_permitted')
  }
})

test('an export with protobuf is refused with a protobuf status', async () => {
  const headers = { 'content-type': 'application/x-protobuf' }
  const cases = [
    { sent: { as: 'acme/viewer', headers } as const, status: 403, code: 7 },
    { sent: { headers: { ...headers, authorization: null } }, status: 401, code: 16 },
  ]
  for (const { sent, status, code } of cases) {
    const answer = await service.send('POST', '/v1/logs', { ...sent, body: '' })
    assert.equal(answer.status, status)
    assert.equal(answer.headers.get('content-type'), 'application/x-protobuf')
    const decoded = z
      .object({ code: z.int(), message: z.string().min(1) })
      .parse(decodeProto('RpcStatus', answer.bytes))
    assert.equal(decoded.code, code)
  }
})

test('an admin can neither create nor revoke an owner token', async () => {
  const owner = { name: 'mine', role: 'owner' }
  assertRefused(
    await service.send('POST', '/tokens', { as: 'acme/admin', json: owner }),
    403,
    'role_not_permitted',
  )
  const { items } = await service.read('/tokens', pageOf(AccessToken), 'acme/admin')
  const ownerToken = items.find(({ role, revoked_at }) => role === 'owner' && revoked_at === null)
  assert.ok(ownerToken)
  const answer = await service.send('DELETE', `/tokens/${ownerToken.id}`, { as: 'acme/admin' })
  assertRefused(answer, 403, 'role_not_permitted')
  assert.equal((await service.send('GET', '/me')).status, 200)
})

test('no token of one organisation can be seen or revoked by another', async () => {
  const own = await service.read('/tokens', pageOf(AccessToken), 'acme/owner')
  const foreign = await service.read('/tokens', pageOf(AccessToken), 'globex/owner')
  const ids = new Set(own.items.map(({ id }) => id))
  assert.ok(foreign.items.length > 0 && foreign.items.every(({ id }) => !ids.has(id)))
  const unknown = await service.send('DELETE', '/tokens/nobody-has-this', { as: 'globex/owner' })
  for (const id of ids) {
    const answer = await service.send('DELETE', `/tokens/${id}`, { as: 'globex/owner' })
    assertRefused(answer, 404, 'not_found')
    assert.equal(answer.text, unknown.text)
  }
  assert.equal((await service.send('GET', '/me')).status, 200)
})

const Schema = z.looseObject({
  $ref: z.string().optional(),
  properties: z.record(z.string(), z.looseObject({ deprecated: z.boolean().optional() })).optional(),
  required: z.array(z.string()).optional(),
})
const Operation = z.looseObject({
  summary: z.string().min(1),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z
    .array(z.looseObject({ in: z.string(), name: z.string(), deprecated: z.boolean().optional() }))
    .optional(),
  requestBody: z.looseObject({ content: z.record(z.string(), z.looseObject({ schema: Schema })) }).optional(),
  responses: z.record(
    z.string(),
    z.looseObject({
      description: z.string(),
      content: z.record(z.string(), z.looseObject({ schema: z.unknown() })).optional(),
    }),
  ),
})
const OpenApi = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({ schemas: z.record(z.string(), Schema) }),
})

/** The schema itself, or the component that it references. */
function resolve({ components }: z.output<typeof OpenApi>, schema: unknown): z.output<typeof Schema> {
  const { $ref, ...own } = Schema.parse(schema)
  if ($ref === undefined) return own
  const name = /^#\/components\/schemas\/(\w+)$/.exec($ref)?.[1] ?? assert.fail($ref)
  return components.schemas[name] ?? assert.fail(`${name} is missing`)
}

test('the reference lists every route that is not hidden, and no other', async () => {
  const document = await service.read('/openapi.json', OpenApi)
  assert.match(document.openapi, /^3\.1\.\d$/)
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const expected = rows
    .filter(({ isHidden }) => isHidden === undefined)
    .map(({ method, url }) => `${method} ${url.replace(/:([a-z_]+)/g, '{$1}')}`)
  assert.deepEqual(documented.sort(), expected.sort())
})

test('the reference says where a token is needed, and has every path parameter', async () => {
  const { paths } = await service.read('/openapi.json', OpenApi)
  for (const row of rows.filter(({ isHidden }) => isHidden === undefined)) {
    const path = row.url.replace(/:([a-z_]+)/g, '{$1}')
    const operation = paths[path]?.[row.method.toLowerCase()]
    assert.ok(operation, `${row.method} ${path}`)
    const bearer = row.access === senders ? [{ bearer: [] }, { basic: [] }] : [{ bearer: [] }]
    assert.deepEqual(operation.security, row.access === 'public' ? undefined : bearer, path)
    const named = (operation.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name)
    assert.deepEqual(
      named,
      [...path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name),
      path,
    )
  }
})

test('the root address links to the other pages, and leads a browser to the console', async () => {
  const plain = await service.send('GET', '/', { headers: { authorization: null } })
  assert.match(plain.headers.get('content-type') ?? '', /^application\/json/)
  const { name, version, ...links } = JSON.parse(plain.text)
  const { info } = await service.read('/openapi.json', z.object({ info: z.object({ version: z.string() }) }))
  assert.deepEqual([name, version], ['Lethe', info.version])
  const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  const page = await service.send('GET', '/', { headers: { authorization: null, accept: browser } })
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html; charset=utf-8/)
  assert.match(page.text, /<div id="root">/, 'the console, after one redirect')
  const names = ['x-frame-options', 'x-content-type-options', 'referrer-policy']
  for (const { headers } of [plain, page]) {
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; .*frame-ancestors 'none'$/)
    assert.doesNotMatch(policy, /https?:|\*|unsafe-eval|script-src[^;]*(?:unsafe|nonce)/)
    assert.deepEqual(
      names.map((one) => headers.get(one)),
      ['DENY', 'nosniff', 'no-referrer'],
    )
  }
  assert.equal(plain.headers.get('vary'), 'accept, accept-encoding')
  for (const path of Object.values(links)) {
    const answer = await service.send('GET', String(path), { headers: { authorization: null } })
    assert.equal(answer.status, 200, String(path))
  }
  assert.doesNotMatch(`${plain.text}${page.text}`, /acme|globex|lethe_/)
})

test('the reference uses one name per idea, and has the old names as deprecated ones', async () => {
  const document = await service.read('/openapi.json', OpenApi)
  const { paths } = document
  const fields = Object.entries(paths).flatMap(([path, operations]) =>
    Object.values(operations).flatMap((operation) => [
      ...(operation.parameters ?? []).map(({ name, deprecated }) => ({ path, name, deprecated })),
      ...Object.entries(
        resolve(document, operation.requestBody?.content['application/json']?.schema ?? {}).properties ?? {},
      ).map(([name, { deprecated }]) => ({ path, name, deprecated })),
    ]),
  )
  const old = new Set(['metric', 'start', 'end', 'from', 'until'])
  for (const { path, name, deprecated } of fields) {
    assert.equal(deprecated ?? false, old.has(name), `${path} ${name}`)
  }
  const deprecated = new Set(
    fields.filter((field) => field.deprecated).map(({ path, name }) => `${path} ${name}`),
  )
  assert.ok(deprecated.has('/telemetry/series metric') && deprecated.has('/anomalies/mutes until'))
  const answered = (path: string) =>
    resolve(document, paths[path]?.get?.responses['200']?.content?.['application/json']?.schema).properties ??
    {}
  const hold = answered('/usage/storage/holds/{hold_id}')
  assert.deepEqual([hold.id?.deprecated, hold.hold_id?.deprecated], [undefined, true])
  const deletion = answered('/usage/storage/deletions/{request_id}')
  assert.ok(deletion.id && deletion.request_id?.deprecated === undefined, 'the interface binds both')
  const series = paths['/telemetry/series']?.get?.parameters ?? []
  const metric = series.filter(({ name }) => name.startsWith('metric'))
  assert.deepEqual(
    metric.map(({ name, required }) => [name, required ?? false]),
    [
      ['metric_key', true],
      ['metric', false],
    ],
  )
})
