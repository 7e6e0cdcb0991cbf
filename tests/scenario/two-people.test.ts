// One person with one token against an organisation whose erasures need two people, with every operation that
// erases: adjacent ranges, delays, late rows, retention, the rule itself, the removal of the organisation,
// and tokens created for the purpose. globex beside acme decides alone.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DeletionPolicy, Retention } from '../../contract/deletion/governance.ts'
import { DeletionPreview, DeletionRequest } from '../../contract/deletion/requests.ts'
import { AuditEntry } from '../../contract/organisation/audit.ts'
import { CreatedAccessToken, Me } from '../../contract/organisation/tenancy.ts'
import { LogRecord } from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { openOfPersonMax, openRequestsMax } from '../../server/deletion/requests/states.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { waitFor } from '../wait-for.ts'
import {
  type Answer,
  assertRefused,
  placesOf,
  problemsOf,
  type Service,
  startService,
  type Who,
  waitUntilCompleted,
} from './service.ts'
import { minuteNs, mondayNs, sendSample } from './telemetry.ts'

const deletions = '/usage/storage/deletions'
const policy = '/usage/storage/deletion-policy'
const retention = '/usage/storage/retention'
const day = (at: number) => formatInstant(mondayNs + BigInt(at) * 1440n * minuteNs)

let service: Service
/** What acme has before the first try: a record on each of the first days of three months. */
const dayOf = [0, 31, 62]

before(async () => {
  service = await startService()
  for (const tenant of ['acme', 'globex'] as const) {
    const times = dayOf.map((at) => mondayNs + BigInt(at) * 1440n * minuteNs)
    await sendSample(service, `${tenant}/ingest`, times)
  }
})
after(() => service.stop())

const erase = (from: number, more: object = {}, headers: Record<string, string> = {}) =>
  service.send('POST', deletions, {
    headers,
    json: { scope: 'range', confirm: 'acme', range_start: day(from), range_end: day(from + 31), ...more },
  })

function statusIn(answer: Answer): string {
  assert.equal(answer.status, 202, answer.text)
  return DeletionRequest.parse(JSON.parse(answer.text)).status
}

const setRule = async (approval: string) => {
  const answer = await service.send('PUT', policy, { json: { approval } })
  assert.equal(answer.status, 200, answer.text)
  return DeletionPolicy.parse(JSON.parse(answer.text))
}

test('the policy says how two people are distinguished, and the limit of that', async () => {
  const answers = [await service.read(policy, DeletionPolicy), await setRule('full_erasures')]
  for (const { second_person } of answers) {
    assert.equal(second_person.told_by, 'tokens')
    assert.match(second_person.limit, /Tokens that the operator made .* count as two people/)
  }
})

test('one person can erase a month and no more, with any operation', async () => {
  const first = await erase(0)
  assert.equal(statusIn(first), 'running')
  await waitUntilCompleted(service, JSON.parse(first.text).request_id, 'acme/owner')
  const preview = await service.send('POST', `${deletions}/preview`, {
    json: { scope: 'range', range_start: day(31), range_end: day(62) },
  })
  const { needs_approval, warnings } = DeletionPreview.parse(JSON.parse(preview.text))
  assert.deepEqual([needs_approval, warnings.map(({ code }) => code)], [true, ['ranges_together']])
  const made = await service.send('POST', '/tokens', { json: { name: 'second', role: 'owner' } })
  const { token } = CreatedAccessToken.parse(JSON.parse(made.text))
  const second = { authorization: `Bearer ${token}` }
  for (const answer of [
    await erase(31),
    await erase(31, { delay_minutes: 60 }),
    await erase(31, { refuse_late: true }),
    await erase(31, { signals: ['logs'] }, second),
    await erase(62, {}, second),
    await service.send('POST', deletions, { json: { scope: 'all', confirm: 'acme' } }),
  ]) {
    assert.equal(statusIn(answer), 'awaiting_approval')
    const { request_id } = JSON.parse(answer.text)
    for (const headers of [{}, second]) {
      assertRefused(
        await service.send('POST', `${deletions}/${request_id}/approve`, { headers }),
        403,
        'own_request',
      )
    }
  }
  assert.deepEqual(await days(), dayOf.slice(1))
})

/** Days of acme's records that can be read. */
async function days(): Promise<number[]> {
  const range = `range_start=${day(0)}&range_end=${day(93)}`
  const { items } = await service.read(`/telemetry/logs?${range}`, pageOf(LogRecord), 'acme/viewer')
  return items.map(({ time }) => (Date.parse(time) - Date.parse(day(0))) / 86_400_000).reverse()
}

test('a shorter retention waits for another person under both rules, and erases nothing before', async () => {
  for (const rule of ['full_erasures', 'every_deletion'] as const) {
    await setRule(rule)
    const whole = { metrics_days: 1, logs_days: 1, traces_days: 1 }
    for (const [method, json] of [
      ['PUT', whole],
      ['PATCH', { logs_days: 1 }],
    ] as const) {
      const answer = await service.send(method, retention, { json })
      assert.equal(answer.status, 202, answer.text)
      const { pending = [], ...inForce } = Retention.parse(JSON.parse(answer.text))
      assert.deepEqual(inForce, { metrics_days: null, logs_days: null, traces_days: null })
      const change = `${retention}/changes/${pending[0]?.id}`
      assertRefused(await service.send('POST', `${change}/approve`), 403, 'own_request')
      assert.deepEqual((await service.read(retention, Retention, 'acme/viewer')).pending, pending)
      assert.deepEqual(placesOf(problemsOf(await service.send('POST', `${change}/reject`, { json: {} }))), [
        'body.reason missing',
      ])
    }
    assert.deepEqual(await days(), dayOf.slice(1))
  }
  const { pending = [] } = await service.read(retention, Retention)
  const reject = `${retention}/changes/${pending[0]?.id}/reject`
  assertRefused(
    await service.send('POST', reject, { as: 'globex/owner', json: { reason: 'x' } }),
    404,
    'not_found',
  )
  const rejected = await service.send('POST', reject, { as: 'acme/admin', json: { reason: 'still needed' } })
  assert.equal(rejected.status, 200, rejected.text)
  assert.equal('pending' in JSON.parse(rejected.text), false)
})

test('a looser rule has no effect on the day of its request, also for the removal of the organisation', async () => {
  const { approval, pending } = await setRule('none')
  assert.deepEqual([approval, pending?.approval], ['every_deletion', 'none'])
  assert.equal(statusIn(await erase(0)), 'awaiting_approval')
  assert.equal((await service.send('PATCH', retention, { json: { logs_days: 1 } })).status, 202)
  const removal = await service.send('POST', '/organisation/remove', { json: { confirm: 'acme' } })
  assertRefused(removal, 409, 'not_removable')
  await setRule('every_deletion')
  assert.deepEqual(await days(), dayOf.slice(1))
})

test('nobody ends the day of a looser rule by revoking who could object to it', async () => {
  const created = await service.send('POST', '/tokens', { json: { name: 'colleague', role: 'admin' } })
  const { id } = CreatedAccessToken.parse(JSON.parse(created.text))
  assert.equal((await setRule('none')).pending?.approval, 'none')
  assert.equal((await service.send('DELETE', `/tokens/${id}`)).status, 200)
  const { approval, pending } = await service.read(policy, DeletionPolicy)
  assert.deepEqual({ approval, pending }, { approval: 'every_deletion', pending: null })
  const { items } = await service.read('/audit-log?limit=1', pageOf(AuditEntry))
  const { action, facts } = items[0] ?? assert.fail('The audit log is empty.')
  assert.deepEqual([action, facts.cause, facts.token_id], ['deletion_policy.changed', 'token_revoked', id])
})

/** Requests ranges of a minute until one is refused; returns how many were accepted. */
async function fillUp(as: Who | Record<string, string>, firstMinute: number): Promise<number> {
  for (let count = 0; ; count++) {
    const range_start = formatInstant(mondayNs + BigInt(firstMinute + count) * minuteNs)
    const range_end = formatInstant(mondayNs + BigInt(firstMinute + count + 1) * minuteNs)
    const answer = await service.send('POST', deletions, {
      ...(typeof as === 'string' ? { as } : { headers: as }),
      json: { scope: 'range', confirm: 'acme', range_start, range_end },
    })
    if (answer.status !== 202) {
      assertRefused(answer, 429, 'too_many_requests')
      return count
    }
  }
}

test('one person with all their tokens has at most half of the open requests, and another has the rest', async () => {
  const { items } = await service.read(
    `${deletions}?status=awaiting_approval&limit=100`,
    pageOf(DeletionRequest),
  )
  const made = await service.send('POST', '/tokens', { json: { name: 'third', role: 'owner' } })
  const { token } = CreatedAccessToken.parse(JSON.parse(made.text))
  const own = { authorization: `Bearer ${token}` }
  assert.equal(items.length + (await fillUp(own, 0)), openOfPersonMax)
  assert.equal(await fillUp('acme/owner', 100), 0)
  assert.equal(await fillUp('acme/admin', 200), openRequestsMax - openOfPersonMax)
  const secret = newTokenSecret('admin')
  const operator = { expiresAtMs: null, actor: operatorActor('test') }
  await service.app.tenancy.createToken({ tenantId: 'acme', name: 'x', role: 'admin', secret, ...operator })
  assert.equal(await fillUp({ authorization: `Bearer ${secret}` }, 300), 0)
})

test('a second person approves it, and then it erases like any retention beside all open requests', async () => {
  const [change] = (await service.read(retention, Retention)).pending ?? []
  const approve = `${retention}/changes/${change?.id}/approve`
  const approved = await service.send('POST', approve, { as: 'acme/admin' })
  assert.equal(approved.status, 200, approved.text)
  assert.deepEqual(JSON.parse(approved.text), { metrics_days: null, logs_days: 1, traces_days: null })
  assertRefused(await service.send('POST', approve, { as: 'acme/admin' }), 404, 'not_found')
  const asked = await waitFor(
    () => service.read(`${deletions}?status=scheduled`, pageOf(DeletionRequest)),
    ({ items }) => items.length > 0,
  )
  assert.deepEqual(
    asked.items.map(({ requested_by }) => requested_by),
    ['system:retention'],
  )
})

test('descendants of a token are revoked with it on request', async () => {
  const make = async (headers: Record<string, string>) => {
    const answer = await service.send('POST', '/tokens', { headers, json: { name: 'x', role: 'admin' } })
    return CreatedAccessToken.parse(JSON.parse(answer.text))
  }
  const parent = await make({})
  const child = await make({ authorization: `Bearer ${parent.token}` })
  const me = async ({ token }: { token: string }) =>
    (await service.send('GET', '/me', { headers: { authorization: `Bearer ${token}` } })).status
  const left = await service.send('DELETE', `/tokens/${parent.id}`)
  assert.equal(JSON.parse(left.text).live_descendants, 1)
  assert.deepEqual([await me(parent), await me(child)], [401, 200])
  const ended = await service.send('DELETE', `/tokens/${parent.id}?descendants=true`)
  assert.deepEqual(
    [JSON.parse(ended.text).live_descendants, JSON.parse(ended.text).revoked_descendants],
    [0, 1],
  )
  assert.equal(await me(child), 401)
  assert.equal((await service.read('/me', Me)).role, 'owner')
})
