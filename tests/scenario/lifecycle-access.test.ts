// Who may act in the life of a deletion, over HTTP: every route against every role, against ids of another
// organisation, and against the reference. The rules themselves are in lifecycle.test.ts.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { DeletionPolicy, LegalHold } from '../../contract/deletion/governance.ts'
import { DeletionRequest, LedgerEntry } from '../../contract/deletion/requests.ts'
import { AuditEntry } from '../../contract/organisation/audit.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { waitFor } from '../wait-for.ts'
import { type Answer, assertRefused, type Service, startService, waitUntilCompleted } from './service.ts'
import { mondayNs, sendSample } from './telemetry.ts'

const url = '/usage/storage/deletions'
const holds = '/usage/storage/holds'
const policy = '/usage/storage/deletion-policy'

/** Every route that changes or decides a deletion and has an id. */
const withId = [
  ['GET', `${url}/:id`],
  ['POST', `${url}/:id/cancel`],
  ['POST', `${url}/:id/approve`],
  ['POST', `${url}/:id/reject`, { reason: 'no' }],
  ['POST', `${url}/:id/retry`],
  ['POST', `${url}/:id/verify`],
  ['GET', `${url}/:id/certificate`],
  ['GET', `${holds}/:id`],
  ['POST', `${holds}/:id/release`],
] as const
const withoutId = [
  ['POST', url, { scope: 'all', confirm: 'globex' }],
  ['GET', url],
  ['GET', policy],
  ['PUT', policy, { approval: 'none' }],
  ['POST', holds, { case_ref: 'case 1' }],
  ['GET', holds],
] as const

let service: Service
/** Of globex: one request in each state that a person can change, and a hold. */
let ids: { scheduled: string; held: string; completed: string; hold: string }

before(async () => {
  service = await startService()
  await sendSample(service, 'globex/ingest', [mondayNs])
  const post = async (path: string, json: object) => {
    const answer = await service.send('POST', path, { as: 'globex/owner', json })
    assert.ok(answer.status < 300, answer.text)
    return JSON.parse(answer.text)
  }
  const range = { scope: 'range', confirm: 'globex', range_end: '2026-01-05T00:00:00Z' }
  const completed: string = (await post(url, { ...range, signals: ['traces'] })).request_id
  await waitUntilCompleted(service, completed, 'globex/owner')
  ids = {
    completed,
    scheduled: (await post(url, { ...range, delay_minutes: 60 })).request_id,
    hold: (await post(holds, { case_ref: 'case 1', range_end: '2026-01-05T00:00:00Z' })).hold_id,
    held: (await post(url, { ...range, signals: ['logs'] })).request_id,
  }
})
after(() => service.stop())

/** All records of globex, and what it stores; nothing that a stranger or a reader does may change them. */
async function records() {
  const as = 'globex/owner'
  return Promise.all([
    service.read(`${url}?limit=500`, pageOf(DeletionRequest), as),
    service.read('/ledger?limit=500', pageOf(LedgerEntry), as),
    service.read('/audit-log?limit=500', pageOf(AuditEntry), as),
    service.read(holds, pageOf(LegalHold), as),
    service.read(policy, DeletionPolicy, as),
  ])
}

/** The records after all of globex's requests have reached a stable state. */
function settled() {
  return waitFor(
    records,
    ([{ items }]) => items.map(({ status }) => status).join() === 'held,scheduled,completed',
  )
}

test('members, viewers and senders have no access to any part, and change nothing', async () => {
  const before = await settled()
  for (const role of ['member', 'viewer', 'ingest'] as const) {
    for (const [method, path, json] of [...withId, ...withoutId]) {
      for (const id of path.includes(':id') ? [ids.scheduled, ids.hold] : ['']) {
        const sent = { as: `globex/${role}` as const, ...(json !== undefined && { json }) }
        const answer = await service.send(method, path.replace(':id', id), sent)
        assertRefused(answer, 403, 'role_not_permitted')
      }
    }
  }
  const admin = await service.send('PUT', policy, { as: 'globex/admin', json: { approval: 'always' } })
  assertRefused(admin, 403, 'role_not_permitted')
  assert.deepEqual(await records(), before)
})

test('responses for another organisation’s ids equal those for unknown ids, byte for byte, and change nothing', async () => {
  const before = await settled()
  const plain = ({ headers, status, text }: Answer) => ({
    status,
    text,
    headers: [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id'),
  })
  for (const [method, path, json] of withId) {
    const isHold = path.startsWith(holds)
    const own = isHold ? [ids.hold] : [ids.scheduled, ids.held, ids.completed]
    const sent = { as: 'acme/owner' as const, ...(json !== undefined && { json }) }
    for (const id of own) {
      const nobodys = `${id.slice(0, 4)}${'0'.repeat(id.length - 4)}`
      const unknown = await service.send(method, path.replace(':id', nobodys), sent)
      const foreign = await service.send(method, path.replace(':id', id), sent)
      assertRefused(foreign, 404, 'not_found')
      assert.deepEqual(plain(foreign), plain(unknown), `${method} ${path}`)
    }
  }
  assert.deepEqual(await records(), before)
  const lists = await Promise.all([
    service.read(url, pageOf(DeletionRequest)),
    service.read(holds, pageOf(LegalHold)),
    service.read('/ledger', pageOf(LedgerEntry)),
  ])
  assert.ok(lists.every(({ items }) => items.length === 0))
})

test('the reference has every part, with its refusals', async () => {
  const Operation = z.object({ operationId: z.string(), responses: z.record(z.string(), z.unknown()) })
  const { paths } = await service.read(
    '/openapi.json',
    z.object({ paths: z.record(z.string(), z.record(z.string(), Operation)) }),
  )
  const operations = new Set<string>()
  for (const [method, path] of [...withId, ...withoutId]) {
    const name = path.replace(':id', path.startsWith(holds) ? '{hold_id}' : '{request_id}')
    const operation = paths[name]?.[method.toLowerCase()] ?? assert.fail(`${method} ${name} is missing`)
    operations.add(operation.operationId)
    const expected = ['401', '403', '422', ...(path.includes(':id') ? ['404'] : [])]
    if (/cancel|approve|reject|retry|verify|certificate/.test(path)) expected.push('409')
    const missing = expected.filter((status) => !(status in operation.responses))
    assert.deepEqual(missing, [], `${method} ${name}`)
  }
  assert.equal(operations.size, withId.length + withoutId.length)
})

test('the id of an own hold is refused as a deletion, and that of a deletion as a hold', async () => {
  const as = 'globex/owner'
  assertRefused(await service.send('GET', `${url}/${ids.hold}`, { as }), 404, 'not_found')
  assertRefused(await service.send('POST', `${holds}/${ids.scheduled}/release`, { as }), 404, 'not_found')
  for (const id of ['%00', '..%2f', '%20', ids.hold.toUpperCase(), `${ids.hold}%00`]) {
    assertRefused(await service.send('GET', `${holds}/${id}`, { as }), 404, 'not_found')
  }
})
