// A client holds the last byte of its requests back until the token of the requests, their session or their
// organisation has ended, and sends it then. Every request was authenticated before, and must be refused as a
// new one is: nothing is written, and the chains end where they ended.

import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, test } from 'node:test'
import { sql } from 'kysely'
import { Retention } from '../../contract/deletion/governance.ts'
import { shownTokenHeader } from '../../contract/organisation/session.ts'
import { appendAudit, readChain } from '../../server/audit/log.ts'
import type { Control } from '../../server/control/database.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { errorsDraft } from '../../server/detection/detection-fixture.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import type { SharedTestControl } from '../control-plane.ts'
import { isOnPostgres, openSecondHandle, openSharedControlPlane } from '../control-planes.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { urlOf } from '../postgres-plane.ts'
import { runFolder } from '../postgres-server.ts'
import { waitFor } from '../wait-for.ts'
import { type Answer, eraseCompletely, type Service, startService, type Tenant, type Who } from './service.ts'
import { mondayNs, sampleExport, sendSample } from './telemetry.ts'

let plane: SharedTestControl
let control: Control
let service: Service
const sockets: Socket[] = []
/** How far the clock is ahead of the machine's, and how much longer requests seem to take. */
const ahead = { wallMs: 0, elapsedMs: 0 }
const clock = {
  ...systemClock,
  nowMs: () => systemClock.nowMs() + ahead.wallMs,
  nowNs: () => systemClock.nowNs() + BigInt(ahead.wallMs) * 1_000_000n,
  elapsedMs: () => systemClock.elapsedMs() + ahead.elapsedMs,
}

before(async () => {
  plane = await openSharedControlPlane()
  const { rows } = isOnPostgres
    ? await sql<{ name: string }>`select current_database() as name`.execute(plane.control)
    : { rows: [] }
  const settings = rows[0] === undefined ? {} : { LETHE_CONTROL_URL: urlOf(runFolder(), rows[0].name) }
  service = await startService({ clock, settings })
  control = isOnPostgres ? plane.control : openSecondHandle(join(service.folder, 'control.db'))
  for (const tenant of ['acme', 'globex'] as const) await sendSample(service, `${tenant}/ingest`, [mondayNs])
})
after(async () => {
  for (const socket of sockets) socket.destroy()
  await service.stop()
  if (!isOnPostgres) await control.destroy()
  await plane.close()
})

interface Request {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly json?: object
}

type Finish = () => Promise<{ status: number; code: string | undefined; request: string }>

/** Sends a request without its last byte, which the function sends that is returned. */
async function hold(
  { json = {}, method, path }: Request,
  headers: Readonly<Record<string, string>>,
): Promise<Finish> {
  const { hostname, host, port } = new URL(service.address)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  const body = JSON.stringify(json)
  const all = {
    host,
    connection: 'close',
    'content-type': 'application/json',
    'content-length': String(body.length),
    expect: '100-continue',
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  // The service asks for the body in the turn in which it begins to look the caller up.
  const asked = await new Promise<Buffer>((resolve, reject) => {
    socket.once('data', resolve)
    socket.once('error', reject)
  })
  socket.pause()
  assert.match(asked.toString(), /^HTTP\/1\.1 100 /)
  socket.write(body.slice(0, -1))
  return async () => {
    socket.write(body.slice(-1))
    const [head = '', answer = ''] = (await text(socket)).split('\r\n\r\n')
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
    const { code } = answer === '' ? { code: undefined } : JSON.parse(answer)
    return { status, code, request: `${method} ${path}` }
  }
}

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })

async function sent(as: Who, { json = {}, method, path }: Request): Promise<Record<string, string>> {
  const answer = await service.send(method, path, { as, json })
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
  return JSON.parse(answer.text)
}

const post = (path: string, json: object = {}): Request => ({ method: 'POST', path, json })

const deletions = '/usage/storage/deletions'
const range = (hour: number) => ({
  scope: 'range',
  range_start: `2026-01-04T0${hour}:00:00Z`,
  range_end: `2026-01-04T0${hour}:30:00Z`,
})

const muteOf = (note: string) => ({ note, all_detectors: true, open_ended: true })

/** What needs nothing that exists: what a thief does, and what creates rows for ever. */
const creations = (tenant: Tenant): Request[] => [
  post(deletions, { scope: 'all', confirm: tenant }),
  { method: 'PUT', path: '/usage/storage/deletion-policy', json: { approval: 'none' } },
  post('/usage/storage/holds', { case_ref: 'stolen' }),
  { method: 'PATCH', path: '/usage/storage/retention', json: { logs_days: 3 } },
  post('/tokens', { name: 'stolen', role: 'owner' }),
  post('/anomalies/detectors', { ...errorsDraft, name: 'stolen' }),
  post('/anomalies/mutes', muteOf('stolen')),
  post(deletions, { ...range(9), confirm: 'wrong' }),
  post('/organisation/remove', { confirm: 'wrong' }),
]

/** Acts on what acme's owner has made: two people decide about every deletion. */
async function actsOnExisting(): Promise<Request[]> {
  const by = (request: Request) => sent('acme/owner', request)
  await by({ method: 'PUT', path: '/usage/storage/deletion-policy', json: { approval: 'every_deletion' } })
  const waiting: string[] = []
  for (const hour of [1, 2, 3]) {
    waiting.push((await by(post(deletions, { ...range(hour), confirm: 'acme' }))).request_id ?? '')
  }
  const held = await by(post('/usage/storage/holds', { case_ref: 'ours', range_end: '2020-01-01T00:00:00Z' }))
  const retention = { method: 'PATCH', path: '/usage/storage/retention' } as const
  const changeOf = async (json: object) => {
    const { pending } = Retention.parse(await by({ ...retention, json }))
    return pending?.at(-1)?.id ?? assert.fail('nothing waits')
  }
  const changes = [await changeOf({ metrics_days: 7 }), await changeOf({ traces_days: 7 })]
  const detectors = [
    (await by(post('/anomalies/detectors', errorsDraft))).id,
    (await by(post('/anomalies/detectors', { ...errorsDraft, name: 'Second' }))).id,
  ]
  const mute = await by(post('/anomalies/mutes', muteOf('ours')))
  const token = await by(post('/tokens', { name: 'ours', role: 'viewer' }))
  return [
    post(`${deletions}/${waiting[0]}/approve`),
    post(`${deletions}/${waiting[1]}/reject`, { reason: 'stolen' }),
    post(`${deletions}/${waiting[2]}/cancel`),
    post(`/usage/storage/holds/${held.hold_id}/release`),
    post(`/usage/storage/retention/changes/${changes[0]}/approve`),
    post(`/usage/storage/retention/changes/${changes[1]}/reject`, { reason: 'stolen' }),
    { method: 'PATCH', path: `/anomalies/detectors/${detectors[0]}`, json: { name: 'stolen' } },
    { method: 'DELETE', path: `/anomalies/detectors/${detectors[1]}` },
    { method: 'DELETE', path: `/anomalies/mutes/${mute.id}` },
    { method: 'DELETE', path: `/tokens/${token.id}` },
  ]
}

async function tokenOf(tenantId: Tenant, expiresAtMs: number | null = null) {
  const secret = newTokenSecret('owner')
  const token = { tenantId, name: 'stolen', role: 'owner', secret, expiresAtMs } as const
  const { id } = await service.app.tenancy.createToken({ ...token, actor: operatorActor('test') })
  return { id, secret }
}

/** Every row of the organisation that a request can write, with both chains. */
async function stateOf(tenantId: Tenant): Promise<unknown> {
  const state: Record<string, unknown> = {}
  for (const table of ['audit_entries', 'ledger_entries'] as const) {
    state[table] = (await readChain(control, table, tenantId)).length
  }
  for (const table of [
    'deletion_requests',
    'deletion_policies',
    'legal_holds',
    'retention_policies',
    'retention_changes',
    'detectors',
    'detector_mutes',
    'access_tokens',
  ]) {
    const { rows } = await sql<{ n: number }>`
      select count(*) as n from ${sql.table(table)} where tenant_id = ${tenantId}`.execute(control)
    state[table] = Number(rows[0]?.n)
  }
  return state
}

async function assertAllRefused(finishes: readonly Finish[], tenant: Tenant, code: string): Promise<void> {
  const before = await stateOf(tenant)
  for (const finish of finishes) {
    const answer = await finish()
    assert.deepEqual([answer.status, answer.code], [401, code], answer.request)
  }
  assert.deepEqual(await stateOf(tenant), before, 'nothing was written')
}

async function holdAll(requests: readonly Request[], headers: Readonly<Record<string, string>>) {
  const finishes = await Promise.all(requests.map((request) => hold(request, headers)))
  // Answered after the look-ups of the requests that came before it.
  await service.send('GET', '/me', { headers })
  return finishes
}

const revoke = (id: string) => sent('acme/owner', { method: 'DELETE', path: `/tokens/${id}` })

describe('the rest of a request', () => {
  let existing: Request[]
  beforeEach(() => {
    ahead.elapsedMs = 0
  })

  test('acts where its token still works', async () => {
    existing = await actsOnExisting()
    const { id, secret } = await tokenOf('acme')
    const [finish] = await holdAll([post('/anomalies/mutes', muteOf('late'))], bearer(secret))
    assert.equal((await finish?.())?.status, 201)
    await revoke(id)
  })

  test('does nothing where its token was revoked', async () => {
    const { id, secret } = await tokenOf('acme')
    const finishes = await holdAll([...creations('acme'), ...existing], bearer(secret))
    await revoke(id)
    await assertAllRefused(finishes, 'acme', 'token_revoked')
  })

  test('does nothing where its session was ended', async () => {
    const { id, secret } = await tokenOf('acme')
    const page = { 'sec-fetch-site': 'same-origin', [shownTokenHeader]: id }
    const signedIn = await fetch(`${service.address}/session`, {
      method: 'POST',
      headers: { ...page, ...bearer(secret) },
    })
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? assert.fail('no session')
    const finishes = await holdAll([...creations('acme'), ...existing], { ...page, cookie })
    const out = await fetch(`${service.address}/session`, { method: 'DELETE', headers: { ...page, cookie } })
    assert.equal(out.status, 204)
    await assertAllRefused(finishes, 'acme', 'session_ended')
  })

  test('is refused before anything is looked at where its token was revoked a second ago', async () => {
    const { id, secret } = await tokenOf('acme')
    const finishes = await holdAll(
      [
        post(`${deletions}/del_unknown/approve`),
        post(`${deletions}/preview`, { scope: 'all' }),
        post(deletions, { scope: 'nothing' }),
        post('/v1/logs', { resourceLogs: [] }),
      ],
      bearer(secret),
    )
    await revoke(id)
    ahead.elapsedMs += 1_000
    const before = await stateOf('acme')
    for (const finish of finishes) assert.equal((await finish()).status, 401)
    assert.deepEqual(await stateOf('acme'), before)
    await waitFor(bodyBytes, (bytes) => bytes === 0)
  })

  test('is refused over gRPC where its token was revoked a second ago', async () => {
    const { id, secret } = await tokenOf('acme')
    const session = connectHttp2(`http://${service.app.grpcAddress()}`)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...bearer(secret),
    })
    const message = encodeProto('logs', sampleExport('logs', [mondayNs]))
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(message.length, 1)
    stream.write(Buffer.concat([prefix, message.subarray(0, -1)]))
    await waitFor(bodyBytes, (bytes) => bytes > 0)
    await revoke(id)
    ahead.elapsedMs += 1_000
    const answered = new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve))
    stream.end(message.subarray(-1))
    assert.equal((await answered)['grpc-status'], '16')
    session.destroy()
    await waitFor(bodyBytes, (bytes) => bytes === 0)
  })

  test('of an export is not sent where its token was revoked, and a neighbour’s goes on', async () => {
    // Larger than what the buffers of the systems accept.
    for (const tenant of ['acme', 'globex'] as const) {
      await control.transaction().execute(async (trx) => {
        for (let i = 0; i < 200; i++) {
          await appendAudit(trx, tenant, clock.nowMs(), {
            actor: operatorActor('test'),
            action: 'thing.done',
            target: null,
            outcome: 'accepted',
            facts: { text: 'x'.repeat(80_000) },
          })
        }
      })
    }
    const { id, secret } = await tokenOf('acme')
    const [stolen, neighbour] = await Promise.all(
      [secret, service.secretOf('globex/owner')].map(async (one) => {
        const answer = await fetch(`${service.address}/audit-log/export`, { headers: bearer(one) })
        return answer.body?.getReader() ?? assert.fail('no export')
      }),
    )
    await revoke(id)
    ahead.elapsedMs += 1_000
    const rest = async (reader: ReadableStreamDefaultReader<Uint8Array> | undefined) => {
      let end = ''
      for (;;) {
        const { done, value } = (await reader?.read()) ?? assert.fail('no export')
        if (done) return end
        end = (end + Buffer.from(value)).slice(-2_000)
      }
    }
    await assert.rejects(rest(stolen), TypeError)
    assert.match(await rest(neighbour), /\n\{"checkpoint":"[^"]+"\}\n$/)
  })

  test('does nothing where its organisation was removed', async () => {
    await eraseCompletely(service, { scope: 'all', confirm: 'globex' }, 'globex/owner')
    const secret = service.secretOf('globex/owner')
    const finishes = await holdAll(creations('globex'), bearer(secret))
    const removed = await sent('globex/owner', post('/organisation/remove', { confirm: 'globex' }))
    assert.equal(removed.tenant_id, 'globex')
    await assertAllRefused(finishes, 'globex', 'token_unknown')
  })

  test('does nothing where its token has expired', async () => {
    const { secret } = await tokenOf('acme', clock.nowMs() + 60_000)
    const finishes = await holdAll([...creations('acme'), ...existing], bearer(secret))
    ahead.wallMs += 60_000
    await assertAllRefused(finishes, 'acme', 'token_expired')
  })

  test('would have acted: each of these requests is accepted from another owner', async () => {
    for (const request of existing) await accepted(request)
    for (const request of creations('acme').slice(0, 7)) await accepted(request)
  })
})

async function accepted({ json = {}, method, path }: Request): Promise<void> {
  const { secret } = await tokenOf('acme')
  const headers = { ...bearer(secret), 'content-type': 'application/json' }
  const answer = await fetch(`${service.address}${path}`, { method, headers, body: JSON.stringify(json) })
  assert.ok(answer.ok, `${method} ${path}: ${await answer.text()}`)
}

async function bodyBytes(): Promise<number> {
  const { text: page }: Answer = await service.send('GET', '/metrics')
  return Number(/^lethe_ingest_body_bytes (\d+)$/m.exec(page)?.[1] ?? assert.fail('no gauge'))
}
