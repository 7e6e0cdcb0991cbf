// Previewing an erasure over HTTP: the content of the response, that it contains nothing about others, that
// it accepts what an erasure accepts and nothing more, that it changes nothing, and that an erasure which
// names it is refused when it is stale.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  DeletionPreview,
  DeletionRequest,
  LedgerEntry,
  StalePreview,
} from '../../contract/deletion/requests.ts'
import { AuditEntry } from '../../contract/organisation/audit.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { deletionsUrl, instant, minute } from './erasing.ts'
import {
  type Answer,
  assertRefused,
  eraseCompletely,
  placesOf,
  problemsOf,
  type Service,
  startService,
  tenants,
  type Who,
} from './service.ts'
import { readSample, sendSample } from './telemetry.ts'

let service: Service

before(async () => {
  service = await startService()
  for (const tenant of tenants) await sendSample(service, `${tenant}/ingest`, [0, 1, 2, 3, 4].map(minute))
})
after(() => service.stop())

const ask = (json: unknown, as: Who = 'acme/owner') =>
  service.send('POST', `${deletionsUrl}/preview`, { as, json })

function previewIn(answer: Answer): DeletionPreview {
  assert.equal(answer.status, 200, answer.text)
  return DeletionPreview.parse(JSON.parse(answer.text))
}

const erase = (json: object) => service.send('POST', deletionsUrl, { json: { confirm: 'acme', ...json } })

test('a preview has what would be erased of the own organisation, and its expiry', async () => {
  const json = { scope: 'range', range_start: '2026-01-05T01:01:00+01:00', range_end: instant(3) }
  const answer = await ask(json)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const preview = previewIn(answer)
  const { id, preview_id, created_at, expires_at, bytes, signals, work, ...rest } = preview
  assert.match(id, /^prv_[0-9a-z]{26}$/)
  assert.equal(preview_id, id)
  assert.equal(Date.parse(expires_at) - Date.parse(created_at), 15 * 60_000)
  assert.deepEqual(rest, {
    scope: 'range',
    range_start: instant(1),
    range_end: instant(3),
    rows: 6,
    derived: { anomalies: 0, anomalies_learned_from: 0 },
    held: [],
    backups: [],
    backups_clear_by: null,
    needs_approval: false,
    warnings: [],
    tolerance_rows: 1000,
  })
  assert.deepEqual(
    signals.map(({ bytes: _, ...signal }) => signal),
    (['metrics', 'logs', 'traces'] as const).map((signal) => ({
      signal,
      rows: 2,
      first: instant(1),
      last: instant(2),
      services: ['shop'],
      services_total: 1,
    })),
  )
  assert.ok(bytes > 0)
  assert.deepEqual([work.partitions_dropped, work.partitions_rewritten], [0, 3])
  assert.ok(work.bytes_rewritten > 0)
  assert.equal(previewIn(await ask({ scope: 'all' }, 'globex/admin')).rows, 15)
})

test('a preview changes nothing: nothing is hidden, erased, or written to the ledger or the audit log', async () => {
  const look = async () => ({
    acme: await readSample(service, 'acme/viewer'),
    requests: await service.read(deletionsUrl, pageOf(DeletionRequest)),
    ledger: await service.read('/ledger', pageOf(LedgerEntry)),
    audit: await service.read('/audit-log', pageOf(AuditEntry)),
  })
  const before = await look()
  assert.equal(before.acme.logs.length, 5)
  for (let i = 0; i < 3; i++) previewIn(await ask({ scope: 'all' }))
  assert.deepEqual(await look(), before)
})

test('a preview accepts the body of the erasure unchanged, and the erasure accepts it with the preview’s id', async () => {
  const json = {
    scope: 'range',
    range_start: instant(3),
    range_end: instant(4),
    confirm: 'globex',
    signals: ['logs'],
    reason: 'other',
    note: 'a note',
    delay_minutes: 60,
    refuse_late: false,
  }
  const as = 'globex/owner'
  const first = previewIn(await ask(json, as))
  assert.equal(first.rows, 1)
  const again = previewIn(await ask({ ...json, preview_id: first.id }, as))
  assert.notEqual(again.id, first.id, 'a new one')
  const erased = await service.send('POST', deletionsUrl, { as, json: { ...json, preview_id: again.id } })
  assert.equal(erased.status, 202, erased.text)
  const request = DeletionRequest.parse(JSON.parse(erased.text))
  assert.equal(request.id, request.request_id)
  assert.equal((await service.send('POST', `${deletionsUrl}/${request.id}/cancel`, { as })).status, 200)
})

test('a preview accepts what an erasure accepts, and reports all problems at once', async () => {
  const problems = async (json: unknown) => placesOf(problemsOf(await ask(json)))
  assert.deepEqual(await problems({}), ['body.scope missing'])
  assert.deepEqual(await problems({ scope: 'range' }), ['body.range_end missing'])
  assert.deepEqual(await problems({ scope: 'range', range_start: instant(2), range_end: instant(2) }), [
    'body.range_end value_error',
  ])
  assert.deepEqual(await problems({ scope: 'all', range_end: instant(2), range_start: instant(1) }), [
    'body.range_end value_error',
    'body.range_start value_error',
  ])
  assert.deepEqual(await problems({ scope: 'range', range_end: '2026-01-05T00:00:00', signals: [] }), [
    'body.range_end timezone_aware',
    'body.signals too_short',
  ])
  const audited = await service.read('/audit-log', pageOf(AuditEntry))
  assert.deepEqual(await problems({ scope: 'all', confirm: 'globex', tenant_id: 'globex', range_ende: 1 }), [
    'body.confirm value_error',
    'body.range_ende extra_forbidden',
    'body.tenant_id extra_forbidden',
  ])
  assert.deepEqual(await problems({ scope: 'all', confirm: 5, delay_minutes: -1, reason: 'none' }), [
    'body.confirm string_type',
    'body.delay_minutes greater_than_equal',
    'body.reason enum',
  ])
  assert.deepEqual(await service.read('/audit-log', pageOf(AuditEntry)), audited, 'no erasure was requested')
})

test('only owners and admins may preview, and every other method and body is refused', async () => {
  for (const role of ['member', 'viewer', 'ingest'] as const) {
    assertRefused(await ask({ scope: 'all' }, `acme/${role}`), 403, 'role_not_permitted')
  }
  assert.equal((await ask({ scope: 'all' }, 'acme/admin')).status, 200)
  assertRefused(await service.send('GET', `${deletionsUrl}/preview`), 404, 'not_found')
  const headers = { 'content-type': 'text/plain' }
  const plain = await service.send('POST', `${deletionsUrl}/preview`, { body: '{"scope":"all"}', headers })
  assertRefused(plain, 415, 'unsupported_media_type')
})

test('an erasure that names its preview is carried out, and one that names a stale one returns a new preview', async () => {
  const json = { scope: 'range', range_start: instant(4), range_end: instant(5) }
  const { preview_id } = previewIn(await ask(json))
  const foreign = previewIn(await ask(json, 'globex/owner'))
  for (const id of [foreign.preview_id, 'prv_unknown']) {
    const refused = await erase({ ...json, preview_id: id })
    assert.equal(refused.status, 412, refused.text)
    const body = StalePreview.strict().parse(JSON.parse(refused.text))
    assert.equal(body.code, 'preview_stale')
    assert.deepEqual([body.preview.rows, body.preview.range_end], [3, instant(5)])
  }
  const other = await erase({ scope: 'all', preview_id })
  assert.deepEqual(placesOf(problemsOf(other)), ['body.preview_id value_error'])
  assert.deepEqual(
    (await service.read(deletionsUrl, pageOf(DeletionRequest))).items,
    [],
    'no erasure was requested so far',
  )
  const done = await eraseCompletely(service, { confirm: 'acme', ...json, preview_id })
  assert.equal(done.detail.rows_erased, 3)
  assert.equal(previewIn(await ask(json)).rows, 0)
  assert.equal(previewIn(await ask(json, 'globex/owner')).rows, 3)
})
