// Removes an organisation from real stores: what prevents it, what it removes and what it leaves, and the
// ways in which telemetry could be stored while it runs. Globex exists beside acme and keeps everything.

import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { sql, type Updateable } from 'kysely'
import { batchOf, insertRows, openStores, silent } from '../../tests/fixtures.ts'
import { wireRemoval } from '../app/wire-removal.ts'
import { exportChain } from '../audit/export.ts'
import { checkExport } from '../audit/export-check.ts'
import { KeySeal } from '../audit/key-seal.ts'
import { checkChain } from '../audit/live-check.ts'
import { appendAudit, appendLedger, readChain } from '../audit/log.ts'
import { SigningKeys } from '../audit/signing.ts'
import { readConfig } from '../config.ts'
import type { DeletionRequestsTable } from '../control/database.ts'
import { operatorActor } from '../core/actor.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { AppError } from '../core/app-error.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { all, assertRows, times } from '../deletion/deletion-fixture.ts'
import { FailingEngine, governedSceneOf } from '../deletion/governed-fixture.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { ProcessFences } from '../telemetry/fences.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { sql as query } from '../telemetry/sql.ts'
import { ClockWatch } from '../worker/clock-watch.ts'
import { addRemovalRoute } from './routes.ts'
import { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'
import { insertToken } from './tokens.ts'

const testSeal = new KeySeal('a sealing key that only this test has')

const stores = await openStores()
const { control, engine } = stores
const clock = new ManualClock(1_763_717_400_000)
const gate = new TelemetryGate()
const fences = new ProcessFences(gate)
const store = new TenancyStore(control, clock)
const keys = new SigningKeys(control, clock, testSeal)
const config = readConfig({ LETHE_DATA_DIR: stores.folder })
const removal = wireRemoval({
  config,
  control,
  clock,
  engine,
  fences,
  keys,
  tenancy: store,
  logger: silent,
})
const http = createHttp({
  clock,
  logger: silent,
  authenticate: byAccessToken((secret) => store.findCaller(secret)),
  isReady: () => true,
})
addRemovalRoute(http, removal)
await http.ready()
after(async () => {
  await http.close()
  await stores.close()
})

const globex = await found('globex')
const timeNs = 1_763_700_000_000_000_000n
const batch = batchOf('otel_logs', [timeNs], { Body: 'a line' })
await insertRows(engine, globex.place, batch)

let organisations = 0
let acme: Awaited<ReturnType<typeof found>>
beforeEach(async () => {
  acme = await found(`acme-${++organisations}`)
})

interface Organisation {
  readonly place: TenantPlace
  readonly tenantId: string
  readonly owner: string
  readonly admin: string
}

/** Creates an organisation with something in every table that can name it. */
async function found(tenantId: string): Promise<Organisation> {
  const [owner, admin] = [newTokenSecret('owner'), newTokenSecret('admin')]
  const place = await store.createOrganisation(
    { tenantId, name: tenantId, actor: operatorActor('test') },
    async (trx, nowMs) => {
      for (const [role, secret] of [
        ['owner', owner],
        ['admin', admin],
      ] as const) {
        await insertToken(
          trx,
          { tenantId, name: role, role, secret, expiresAtMs: null, actor: operatorActor('test') },
          nowMs,
        )
      }
    },
  )
  for (const statement of [
    `insert into detectors values ('det-${tenantId}', '${tenantId}', 'x', 'x', 'x', '{}', '{}', 60, 5, 1, 0, null, null, null, 0, 0, 1, 0)`,
    `insert into held_anomaly_versions (anomaly_id, version, tenant_id, detector_id, holds, record, replaced_at_ms)
       values ('ano-${tenantId}', 1, '${tenantId}', 'x', '[]', '{}', 0)`,
    `insert into sessions values ('ses-${tenantId}', '${tenantId}', 'x', 'hash-${tenantId}', 0, 0, 1)`,
    `insert into sign_in_codes values ('hash-${tenantId}', '${tenantId}', 'x', 1)`,
    `insert into deletion_policies values ('${tenantId}', 'none', null, null)`,
    `insert into deletion_previews values ('prv-${tenantId}', '${tenantId}', 'x', '{}', 0, 0)`,
    `insert into retention_policies values ('${tenantId}', 'logs', 30)`,
    `insert into retention_changes (tenant_id, signal, change_id, days, requested_at_ms, approve_by_ms)
       values ('${tenantId}', 'logs', 'rch_1', 7, 0, 1)`,
    `insert into ingest_quotas values ('${tenantId}', 10, 10)`,
    `insert into ingest_usage values ('${tenantId}', '2026-01-05', 1, 1, 0, 0)`,
    `insert into detector_mutes (id, tenant_id, created_at_ms) values ('mut-${tenantId}', '${tenantId}', 0)`,
    `insert into certificates values ('crt-${tenantId}', '${tenantId}', 'x', 0)`,
    `insert into legal_holds (hold_id, tenant_id, signals, case_ref, placed_at_ms, released_by_kind, released_at_ms)
       values ('hld-${tenantId}', '${tenantId}', '["logs"]', 'x', 0, 'operator', 1)`,
    `insert into anomalies (id, tenant_id, detector_id, group_key, metric_key, signal, started_at_ns, seen_until_ns, peak_at_ns, score, reason, created_at_ms, updated_at_ms)
       values ('ano-${tenantId}', '${tenantId}', 'x', '{}', 'x', 'logs', '0', '1', '0', 1, 'x', 0, 0)`,
  ]) {
    await run(statement)
  }
  return { tenantId, place, owner, admin }
}

async function run(statement: string): Promise<void> {
  await sql.raw(statement).execute(control)
}

/** Stores a deletion as the ledger records it. */
async function request(
  tenantId: string,
  { status = 'completed', scope = 'all', signals = ['metrics', 'logs', 'traces'] } = {},
  columns: Updateable<DeletionRequestsTable> = {},
): Promise<string> {
  const { rows } = await sql<{ n: number }>`select count(*) as n from deletion_requests`.execute(control)
  const requestId = `del_${String(rows[0]?.n).padStart(4, '0')}`
  await run(
    `insert into deletion_requests (request_id, tenant_id, scope, signals, created_at_ms, selection_hash, status, attempts, crashes, progress, seq)
       values ('${requestId}', '${tenantId}', '${scope}', '${JSON.stringify(signals)}', 0, 'x', '${status}', 1, 0, '{}', ${Number(rows[0]?.n) + 1})`,
  )
  const stored = { finished_at_ms: 0, ...columns }
  await control.updateTable('deletion_requests').set(stored).where('request_id', '=', requestId).execute()
  await run(
    `insert into deletion_steps (request_id, ordinal, store, action, partition_id, rows, bytes, done_at_ms)
       values ('${requestId}', 1, 'otel_logs', 'dropped', null, 1, 1, 1)`,
  )
  const facts = { scope, signals, range_start: null, range_end: null }
  const entry = { request_id: requestId, actor: tokenNamed('x'), from_status: null, to_status: status, facts }
  await control.transaction().execute((trx) => appendLedger(trx, tenantId, clock.nowMs(), entry))
  return requestId
}

async function remove(secret: string, confirm: unknown) {
  const answer = await http.inject({
    method: 'POST',
    url: '/organisation/remove',
    headers: { authorization: `Bearer ${secret}` },
    payload: { confirm },
  })
  return { status: answer.statusCode, body: answer.json() }
}

/** Begins to remove acme, which waits for a commit before it counts the stores; `goOn` ends the commit. */
async function removeUpToCount() {
  const committing = Promise.withResolvers<void>()
  gate.track(acme.tenantId, [batch], committing.promise)
  const removing = remove(acme.owner, acme.tenantId)
  while (!gate.refuses(acme.place, [batch])) await new Promise((resolve) => setImmediate(resolve))
  return { goOn: () => committing.resolve(), removing }
}

async function assertRefused(secret: string, tenantId: string, reason: RegExp): Promise<void> {
  const before = await countRows(tenantId)
  const { status, body } = await remove(secret, tenantId)
  assert.deepEqual([status, body.code], [409, 'not_removable'], JSON.stringify(body))
  assert.match(body.detail, reason)
  assert.deepEqual(await countRows(tenantId), before, 'everything is as it was')
  assert.equal(gate.refuses({ tenantId, placement: 0 }, [batch]), false, 'and it can store again')
}

/** Rows of a tenant in every table that names one. */
async function countRows(tenantId: string): Promise<Record<string, number>> {
  const named = (await control.introspection.getTables())
    .filter(({ columns }) => columns.some(({ name }) => name === 'tenant_id'))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const counts: Record<string, number> = {}
  for (const { name } of named) {
    const { rows } = await sql<{ n: number }>`
      select count(*) as n from ${sql.table(name)} where tenant_id = ${tenantId}`.execute(control)
    counts[name] = rows[0]?.n ?? 0
  }
  return counts
}

test('an organisation whose telemetry is erased is removed, and all its evidence stays', async () => {
  const erasedBy = await request(acme.tenantId)
  const before = await countRows(acme.tenantId)
  const neighbour = await countRows('globex')
  assert.ok(
    Object.values(before).every((rows) => rows > 0),
    JSON.stringify(before),
  )

  const { status, body } = await remove(acme.owner, acme.tenantId)
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.tenant_id, body.removed_at], [acme.tenantId, '2025-11-21T09:30:00.000Z'])
  const { audit_entries, ...rest } = await countRows(acme.tenantId)
  const kept = { certificates: 1, deletion_requests: 1, ledger_entries: 1, legal_holds: 1 }
  const gone = Object.fromEntries(Object.keys(rest).map((table) => [table, 0]))
  // A new table that names organisations fails here until it is decided whether its rows are kept as
  // evidence.
  assert.deepEqual(rest, { ...gone, ...kept })
  assert.equal(audit_entries, (before.audit_entries ?? 0) + 1)
  assert.deepEqual(await countRows('globex'), neighbour)

  const last = JSON.parse((await readChain(control, 'audit_entries', acme.tenantId)).at(-1)?.text ?? '{}')
  assert.deepEqual(
    [last.action, last.outcome, last.facts.erased_by],
    ['organisation.removed', 'accepted', erasedBy],
  )
  assert.equal(last.facts.removed.access_tokens, 2)
  const steps = await sql<{
    n: number
  }>`select count(*) as n from deletion_steps where request_id = ${erasedBy}`.execute(control)
  assert.equal(steps.rows[0]?.n, 1)
})

test('its tokens stop working, and a request that was admitted before stores nothing any more', async () => {
  await request(acme.tenantId)
  assert.equal(gate.refuses(acme.place, [batch]), false)
  assert.equal((await remove(acme.owner, acme.tenantId)).status, 200)
  for (const secret of [acme.owner, acme.admin]) {
    assert.equal(await store.findCaller(secret), null)
    assert.equal((await remove(secret, acme.tenantId)).status, 401)
  }
  assert.equal(gate.refuses(acme.place, [batch]), true)
  assert.equal(gate.refuses(globex.place, [batch]), false)
})

test('both chains can be exported and checked afterwards, and the owner receives their signed ends', async () => {
  await request(acme.tenantId)
  const { body } = await remove(acme.owner, acme.tenantId)
  for (const chain of ['ledger', 'audit'] as const) {
    const lines: Buffer[] = []
    for await (const line of exportChain({ control, clock, keys }, chain, acme.tenantId))
      lines.push(Buffer.from(line))
    const checked = await checkExport(lines, chain, await keys.jwks())
    assert.equal(checked.tenantId, acme.tenantId)
    assert.deepEqual((await checkChain(control, chain, acme.tenantId)).problems, [])
    const end = JSON.parse(Buffer.from(body.checkpoints[chain].split('.')[1], 'base64url').toString())
    assert.deepEqual([end.entries, end.head], [checked.entries, checked.head])
  }
})

test('its tenant_id is never used again, and its placement is still known', async () => {
  await request(acme.tenantId)
  const create = () =>
    store.createOrganisation(
      { tenantId: acme.tenantId, name: 'New', actor: operatorActor('test') },
      async () => {},
    )
  assert.equal(await store.wasRemoved(acme.tenantId), false)
  await assert.rejects(create, /exists/)
  assert.equal((await remove(acme.owner, acme.tenantId)).status, 200)
  const before = await countRows(acme.tenantId)
  await assert.rejects(create, (error) => {
    assert.ok(error instanceof AppError)
    assert.equal(error.code, 'name_taken')
    assert.match(error.message, /ledger and audit log stay/)
    return true
  })
  assert.deepEqual(await countRows(acme.tenantId), before)
  assert.equal(await store.wasRemoved(acme.tenantId), true)
  assert.equal(await store.findOrganisation(acme.tenantId), null)
  assert.deepEqual(await store.findPlace(acme.tenantId), acme.place)
  assert.equal(await store.findPlace('nobody'), null)
})

test('attempts are limited, so that wrong confirmations do not fill the audit log', async () => {
  const refusals = async () => (await countRows(acme.tenantId)).audit_entries ?? 0
  const before = await refusals()
  for (let i = 0; i < 10; i++) assert.equal((await remove(acme.owner, 'acme')).status, 422)
  const limited = await http.inject({
    method: 'POST',
    url: '/organisation/remove',
    headers: { authorization: `Bearer ${acme.owner}` },
    payload: { confirm: 'acme' },
  })
  assert.deepEqual([limited.statusCode, limited.json().code], [429, 'too_many_requests'])
  assert.equal(limited.headers['retry-after'], '6')
  assert.equal(await refusals(), before + 10)
  assert.equal((await remove(globex.owner, 'acme')).status, 422, 'a neighbour has its own limit')
})

test('an organisation without a completed erasure of everything is not removed', async () => {
  await assertRefused(acme.owner, acme.tenantId, /No erasure of all its telemetry is completed/)
  await request(acme.tenantId, { scope: 'range' })
  await request(acme.tenantId, { signals: ['logs', 'traces'] })
  await request(acme.tenantId, { status: 'cancelled' })
  await request('globex')
  await assertRefused(acme.owner, acme.tenantId, /No erasure of all its telemetry is completed/)
})

describe('where deletions need two people, the removal', () => {
  const dayMs = 86_400_000
  const approved = (approvedAtMs = clock.nowMs()) =>
    ({ approved_by_kind: 'token', approved_at_ms: approvedAtMs, finished_at_ms: clock.nowMs() }) as const
  const guard = (word: 'all' | 'always' = 'all') =>
    run(`update deletion_policies set approval = '${word}' where tenant_id = '${acme.tenantId}'`)
  const mend =
    /request another full erasure; after its completion an owner can remove the organisation until 7 days after its approval/

  for (const word of ['all', 'always'] as const) {
    test(`needs a full erasure that a second person approved at most 7 days ago, under "${word}"`, async () => {
      await guard(word)
      await request(acme.tenantId, {}, { finished_at_ms: clock.nowMs() })
      await assertRefused(acme.owner, acme.tenantId, /No second person approved/)
      await assertRefused(acme.owner, acme.tenantId, mend)
      const erasedBy = await request(acme.tenantId, {}, approved(clock.nowMs() - 7 * dayMs - 1))
      await assertRefused(
        acme.owner,
        acme.tenantId,
        new RegExp(`${erasedBy} was approved more than 7 days ago`),
      )
      await assertRefused(acme.owner, acme.tenantId, mend)
      await request(acme.tenantId, {}, approved(clock.nowMs() - 7 * dayMs))
      const { status, body } = await remove(acme.owner, acme.tenantId)
      assert.equal(status, 200, JSON.stringify(body))
    })
  }

  test('counts the newest full erasure alone, in the order of requests', async () => {
    await guard()
    await request(acme.tenantId, {}, approved())
    await request(acme.tenantId, {}, { finished_at_ms: 0 })
    await assertRefused(acme.owner, acme.tenantId, /No second person approved/)
  })

  test('does not count an old approval because a restore has made the service erase again', async () => {
    const scene = await governedSceneOf(stores)
    const { own, tables } = scene
    const wired = wireRemoval({ ...scene, config, control, engine, keys, tenancy: store, logger: silent })
    const removeBy = () => wired.remove(own.tenantId, tokenNamed('ada'))
    const eraseAll = async () => {
      const { request } = await scene.request(all, tokenNamed('ada'))
      await scene.decisions.approve(scene.callerOf('ben'), request.request_id)
      await scene.round()
      return request.request_id
    }
    await scene.policies.set(own.tenantId, 'full_erasures', tokenNamed('ada'))
    const id = await eraseAll()
    await assertRows(scene, 0)
    scene.clock.advance(8 * dayMs)
    for (const name of tables) await insertRows(engine, own, batchOf(name, times))
    await engine.command(
      query`ALTER TABLE erasures_done DELETE WHERE RequestId = ${id} SETTINGS mutations_sync = 2`,
    )
    await assertRows(scene, times.length)
    const { worker } = scene.restarted()
    await worker.restore()
    await worker.eraseWhatCameBack(new AbortController().signal)
    await assertRows(scene, 0)
    const { finished_at, status } = await scene.status(id)
    assert.deepEqual([status, Date.parse(finished_at ?? '')], ['completed', scene.clock.nowMs()])
    await assert.rejects(removeBy(), new RegExp(`${id} was approved more than 7 days ago`))
    assert.equal((await countRows(own.tenantId)).organisations, 1)
    await eraseAll()
    assert.equal((await removeBy()).tenant_id, own.tenantId)
    await assertRows(scene, 0)
  })

  test('waits while the clock is in doubt, and where the erasure is of the future', async () => {
    await guard()
    await request(acme.tenantId, {}, approved(clock.nowMs() + 1))
    await assertRefused(acme.owner, acme.tenantId, /in the future of the clock/)
    await request(acme.tenantId, {}, approved(clock.nowMs() - 8 * dayMs))
    await new ClockWatch({ control, clock, logger: silent }).now()
    clock.set(-2 * dayMs)
    await assertRefused(acme.owner, acme.tenantId, /clock is in doubt/)
    clock.set(2 * dayMs)
    await assertRefused(acme.owner, acme.tenantId, /more than 7 days ago/)
    await request(acme.tenantId, {}, approved())
    assert.equal((await remove(acme.owner, acme.tenantId)).status, 200)
    await control.deleteFrom('instance').where('key', '=', 'clock').execute()
  })

  test('is refused where the rule begins while the stores are counted', async () => {
    await request(acme.tenantId)
    const { goOn, removing } = await removeUpToCount()
    await guard()
    goOn()
    assert.match((await removing).body.detail, /No second person approved/)
    assert.notEqual(await store.findCaller(acme.owner), null)
  })
})

test('an organisation with an unfinished or failed deletion is not removed', async () => {
  for (const status of [
    'running',
    'verifying',
    'incomplete',
    'failed',
    'scheduled',
    'held',
    'awaiting_approval',
  ]) {
    const organisation = await found(`acme-${status.replace('_', '-')}`)
    await request(organisation.tenantId)
    const open = await request(organisation.tenantId, { status, scope: 'range' })
    await assertRefused(organisation.owner, organisation.tenantId, new RegExp(`${open} is ${status}`))
  }
})

test('an organisation with a legal hold is not removed', async () => {
  await request(acme.tenantId)
  await run(
    `update legal_holds set released_by_kind = null, released_at_ms = null where tenant_id = '${acme.tenantId}'`,
  )
  await assertRefused(acme.owner, acme.tenantId, /legal hold hld-.* is in force/)
})

test('an organisation that stored something after its erasure is not removed, wherever it is and even if hidden', async () => {
  await request(acme.tenantId)
  await insertRows(engine, { ...acme.place, placement: 63 }, batch)
  gate.hide(acme.tenantId, { id: 'x', signals: ['logs'], range: { startNs: null, endNs: null } })
  await assertRefused(acme.owner, acme.tenantId, /1 rows were stored since/)
})

test('commits that run when the removal begins are waited for and counted', async () => {
  await request(acme.tenantId)
  const { goOn, removing } = await removeUpToCount()
  let isDone = false
  void removing.finally(() => {
    isDone = true
  })
  // More statements than the removal has, so that a removal that did not wait would be done.
  for (let i = 0; i < 30; i++) await engine.select(query`SELECT 1 AS one`)
  assert.equal(isDone, false)
  await insertRows(engine, acme.place, batch)
  goOn()
  const { status, body } = await removing
  assert.deepEqual([status, body.code], [409, 'not_removable'])
  assert.notEqual(await store.findCaller(acme.owner), null)
})

test('a deletion or a hold that is requested while the stores are counted stops the removal', async () => {
  await request(acme.tenantId)
  const { goOn, removing } = await removeUpToCount()
  await request(acme.tenantId, { status: 'running' })
  goOn()
  assert.match((await removing).body.detail, /is running/)
  assert.equal(gate.refuses(acme.place, [batch]), false)
})

test('the removal has the time of its transaction, and is refused where its token ended during the count', async () => {
  const waiting = new FailingEngine(engine)
  waiting.before = async () => void (await clock.advance(60_000))
  const needs = { config, control, clock, fences, keys, tenancy: store, logger: silent }
  const slow = wireRemoval({ ...needs, engine: waiting })
  await request(acme.tenantId)
  const secret = newTokenSecret('owner')
  const token = { tenantId: acme.tenantId, name: 'short', role: 'owner', secret } as const
  const expiresAtMs = clock.nowMs() + 1_000
  await store.createToken({ ...token, expiresAtMs, actor: operatorActor('test') })
  const requester = (await store.findCaller(secret))?.requester ?? assert.fail('the token is not known')
  const before = await countRows(acme.tenantId)
  await assert.rejects(slow.remove(acme.tenantId, requester), { code: 'token_expired' })
  assert.deepEqual(await countRows(acme.tenantId), before)
  assert.equal(gate.refuses(acme.place, [batch]), false)

  const beganMs = clock.nowMs()
  const { removed_at } = await slow.remove(acme.tenantId, operatorActor('test'))
  assert.ok(clock.nowMs() > beganMs)
  const last = JSON.parse((await readChain(control, 'audit_entries', acme.tenantId)).at(-1)?.text ?? '{}')
  assert.deepEqual([Date.parse(removed_at), last.at], [clock.nowMs(), removed_at])
})

test('two owners at once remove it once', async () => {
  await request(acme.tenantId)
  const answers = await Promise.all([remove(acme.owner, acme.tenantId), remove(acme.owner, acme.tenantId)])
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409])
  assert.equal(gate.refuses(acme.place, [batch]), true)
})

test('only an owner who types the tenant_id removes it; a wrong one is audited and changes nothing', async () => {
  await request(acme.tenantId)
  assert.equal((await remove(acme.admin, acme.tenantId)).status, 403)
  for (const [confirm, type] of [
    ['globex', 'value_error'],
    ['', 'value_error'],
    [acme.tenantId.toUpperCase(), 'value_error'],
    [undefined, 'missing'],
    [5, 'string_type'],
    [[acme.tenantId], 'string_type'],
  ] as const) {
    const { status, body } = await remove(acme.owner, confirm)
    assert.equal(status, 422)
    assert.deepEqual(
      body.detail.map((found: { loc: string[]; type: string }) => [found.loc, found.type]),
      [[['body', 'confirm'], type]],
    )
  }
  const refused = (await readChain(control, 'audit_entries', acme.tenantId))
    .map(({ text }) => JSON.parse(text))
    .filter(({ outcome }) => outcome === 'refused')
  assert.deepEqual(
    refused.map(({ action, facts }) => [action, facts]),
    Array.from({ length: 3 }, () => ['organisation.removed', { problems: ['body.confirm: value_error'] }]),
  )
  assert.notEqual(await store.findOrganisation(acme.tenantId), null)
})

test('an audit entry that only looks like the creation gives no placement', async () => {
  await control.transaction().execute((trx) =>
    appendAudit(trx, 'phantom', clock.nowMs(), {
      actor: tokenNamed('organisation.created'),
      action: 'token.created',
      target: null,
      outcome: 'accepted',
      facts: { placement: 5 },
    }),
  )
  assert.equal(await store.findPlace('phantom'), null)
})
