// Retention on real stores with a manual clock: rows that are too old are erased once a day, through the
// ledger; newer, held and foreign rows stay.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores, silent } from '../../../tests/fixtures.ts'
import { readChain } from '../../audit/log.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { readingOf } from '../../worker/clock-watch.ts'
import {
  all,
  between,
  hourNs,
  monday,
  type Scene,
  type SceneOptions,
  sceneOf,
  times,
  weekNs,
} from '../deletion-fixture.ts'
import { readHoldsSince } from '../governance/active-holds.ts'
import { approvalRuleOf } from '../governance/policy.ts'
import { FailingEngine } from '../governed-fixture.ts'
import { openOfPersonMax } from '../requests/states.ts'
import { readKept } from './kept.ts'
import { retentionDrafts } from './retention.ts'
import { SettledTime } from './settled-time.ts'
import { RetentionStore, retentionRetest } from './store.ts'
import { RetentionWorker } from './worker.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const msPerDay = 86_400_000
const mondayMs = Number(monday / 1_000_000n)
const signal = new AbortController().signal

/** A scene whose day is three weeks after its first row, and retention over it. */
async function retained(options: SceneOptions = {}) {
  const clock = new ManualClock(mondayMs + 21 * msPerDay + 3_600_000)
  const scene = await sceneOf(stores, { ...options, clock })
  const engine = new FailingEngine(stores.engine)
  const errors: unknown[] = []
  /** Since when holds were read, milliseconds; one for each time. */
  const reads: number[] = []
  const store = new RetentionStore(stores.control, clock, findRelated)
  const newWorker = () =>
    new RetentionWorker({
      store,
      requests: scene.requests,
      requestStore: scene.requestStore,
      engine,
      trustedNowMs: async () => clock.nowMs(),
      logger: { error: (...facts: unknown[]) => errors.push(facts) },
      findPlace: async (tenantId) =>
        [scene.own, scene.neighbour].find((p) => p.tenantId === tenantId) ?? null,
      ruleOf: (tenantId) => approvalRuleOf(stores.control, tenantId, readingOf(clock)),
      holdsSince: (tenantId, sinceMs) => {
        reads.push(sinceMs)
        return readHoldsSince(stores.control, tenantId, sinceMs)
      },
      nudge: () => {},
    })
  const retention = newWorker()
  return { clock, engine, errors, reads, scene, store, retention, newWorker }
}

const requestsOf = ({ own, requests }: Scene) =>
  requests.list(own.tenantId, { limit: 100, beforeId: null, status: null })

test('rows older than the limit are erased through the ledger in the name of the system, and no others', async () => {
  const { retention, scene, store } = await retained()
  // The second week is exactly fourteen days old at midnight.
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  await retention.round(signal)
  await scene.round()
  const [request, ...others] = await requestsOf(scene)
  assert.deepEqual(others, [])
  assert.deepEqual(
    [request?.status, request?.requested_by, request?.reason, request?.range_end],
    ['completed', 'system:retention', 'retention', '2026-01-12T00:00:00Z'],
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
  for (const name of scene.tables) {
    if (name !== 'otel_logs') assert.equal(await scene.count(scene.own, name), times.length, name)
  }
  const ledger = await readChain(stores.control, 'ledger_entries', scene.own.tenantId)
  assert.equal(JSON.parse(ledger[0]?.text ?? '{}').actor, 'system:retention')
})

test('retention runs once a day, also after a restart of the service, and again the next day', async () => {
  const { clock, newWorker, retention, scene, store } = await retained()
  await store.set(
    scene.own.tenantId,
    { logs_days: 14, metrics_days: 14, traces_days: 14 },
    tokenNamed('owner'),
  )
  await retention.round(signal)
  await scene.round()
  await insertRows(stores.engine, scene.own, batchOf('otel_logs', [monday]))
  await retention.round(signal)
  await newWorker().round(signal)
  assert.equal((await requestsOf(scene)).length, 1)
  await clock.advance(msPerDay)
  await retention.round(signal)
  await scene.round()
  assert.deepEqual(
    (await requestsOf(scene)).map(({ status }) => status),
    ['completed', 'completed'],
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 - 24, 'a day more is too old')
})

test('what retention keeps is returned with the last deletion that it requested, signal by signal', async () => {
  const { clock, retention, scene, store } = await retained()
  const keptOf = () => readKept(stores.control, scene.own.tenantId, clock.nowMs())
  const nothing = { days: null, erases_before: null, last_erasure: null }
  assert.deepEqual(await keptOf(), { metrics: nothing, logs: nothing, traces: nothing })
  await store.set(scene.own.tenantId, { logs_days: 14, traces_days: 300 }, tokenNamed('owner'))
  await retention.round(signal)
  await scene.round()
  const [request] = await requestsOf(scene)
  const { logs, metrics, traces } = await keptOf()
  assert.deepEqual(metrics, nothing)
  assert.deepEqual(traces, { days: 300, erases_before: '2025-04-01T00:00:00.000Z', last_erasure: null })
  assert.deepEqual(logs, {
    days: 14,
    erases_before: '2026-01-12T00:00:00.000Z',
    last_erasure: {
      request_id: request?.request_id,
      status: 'completed',
      range_end: '2026-01-12T00:00:00Z',
      created_at: request?.created_at,
      finished_at: request?.finished_at,
    },
  })
})

test('without rows that are too old nothing is requested, and without a rule nothing is erased', async () => {
  const { retention, scene, store } = await retained()
  await retention.round(signal)
  await store.set(scene.own.tenantId, { logs_days: 300 }, tokenNamed('owner'))
  await retention.round(signal)
  assert.deepEqual(await requestsOf(scene), [])
})

test('a legal hold keeps its part while it is in force, and the part is erased in the night after its release', async () => {
  const { clock, retention, scene, store } = await retained()
  const heldEnd = monday + weekNs / 7n
  const place = { case_ref: 'case 7', range_start: monday, range_end: heldEnd }
  const { hold_id } = await scene.holds.place(scene.own.tenantId, place, tokenNamed('owner'))
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  await retention.round(signal)
  await scene.round()
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 + 24)
  assert.ok(
    (await requestsOf(scene)).every(({ status }) => status === 'completed'),
    'nothing stays open',
  )
  await scene.holds.release(scene.own.tenantId, hold_id, tokenNamed('owner'))
  const requested = (await requestsOf(scene)).length
  await retention.round(signal)
  assert.equal((await requestsOf(scene)).length, requested, 'a day on which it can be placed again')
  await clock.advance(msPerDay)
  await retention.round(signal)
  await scene.round()
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 - 24)
})

test('a request of a person that waits does not take the place of retention', async () => {
  const { clock, retention, scene, store } = await retained()
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  const rule = await store.rule(scene.own.tenantId)
  const [draft] = retentionDrafts(rule, new SettledTime(), clock.nowMs())
  assert(draft !== undefined)
  const by = { requester: tokenNamed('admin'), idempotencyKey: null }
  await scene.requestStore.create(scene.own.tenantId, draft, by)
  await stores.control
    .updateTable('deletion_requests')
    .set({ status: 'awaiting_approval' })
    .where('tenant_id', '=', scene.own.tenantId)
    .execute()
  await retention.round(signal)
  await scene.round()
  assert.deepEqual(
    (await requestsOf(scene))
      .map(({ requested_by, status }) => `${requested_by.split(':')[0]} ${status}`)
      .sort(),
    ['system completed', 'token cancelled'],
    'nothing is left to approve',
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
})

test('where every deletion needs two people, retention needs none but delays by a day, in which it can be cancelled', async () => {
  const { clock, retention, scene, store } = await retained()
  const values = {
    tenant_id: scene.own.tenantId,
    approval: 'always',
    pending_approval: null,
    pending_from_ms: null,
  }
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  await stores.control.insertInto('deletion_policies').values(values).execute()
  await retention.round(signal)
  await scene.round()
  assert.deepEqual(
    (await requestsOf(scene)).map(({ status }) => status),
    ['scheduled'],
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  await clock.advance(msPerDay)
  await scene.round()
  assert.deepEqual(
    (await requestsOf(scene)).map(({ status }) => status),
    ['completed'],
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
})

describe('retention that waits its day', () => {
  /** A scene whose retention of logs and traces is hidden and begins in a day, in two requests. */
  async function waiting() {
    const scene = await retained({ tables: ['otel_logs', 'otel_traces'] })
    const { tenantId } = scene.scene.own
    await scene.store.set(tenantId, { logs_days: 14, traces_days: 15 }, tokenNamed('owner'))
    const values = { tenant_id: tenantId, approval: 'always', pending_approval: null, pending_from_ms: null }
    await stores.control.insertInto('deletion_policies').values(values).execute()
    await scene.retention.round(signal)
    assert.equal(await scene.scene.visible(scene.scene.own, 'otel_logs'), times.length / 2)
    const statuses = async () => {
      const requests = await requestsOf(scene.scene)
      return requests.map((one) => `${one.signals} ${one.range_end?.slice(5, 10)} ${one.status}`).sort()
    }
    assert.deepEqual(await statuses(), ['logs 01-12 scheduled', 'traces 01-11 scheduled'])
    return { ...scene, statuses, tenantId }
  }

  test('is cancelled and visible again where the rule became longer, and what is still too old is requested', async () => {
    const { clock, errors, retention, scene, statuses, store, tenantId } = await waiting()
    await store.set(tenantId, { logs_days: 20 }, tokenNamed('admin'))
    await retention.round(signal)
    const kept = ['logs 01-06 scheduled', 'logs 01-12 cancelled', 'traces 01-11 scheduled']
    assert.deepEqual([await statuses(), errors], [kept, []])
    const tooOld = 24
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length - tooOld)
    await clock.advance(msPerDay)
    await scene.round()
    assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - tooOld)
    assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
    const entries = await readChain(stores.control, 'audit_entries', tenantId)
    const cancelled = entries.map(({ text }) => JSON.parse(text)).find(({ action }) => /cancel/.test(action))
    assert.deepEqual([cancelled?.actor, cancelled?.facts.cause], ['system:retention', 'retention_changed'])
  })

  test('is cancelled where the limit was removed, also the last one of the organisation', async () => {
    const { retention, scene, statuses, store, tenantId } = await waiting()
    await store.set(tenantId, { logs_days: null, traces_days: null }, tokenNamed('admin'))
    await retention.round(signal)
    assert.deepEqual(await statuses(), ['logs 01-12 cancelled', 'traces 01-11 cancelled'])
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
  })

  test('does not begin where the rule keeps it, also when it is due before it is cancelled', async () => {
    const { clock, scene, statuses, store, tenantId } = await waiting()
    await store.set(tenantId, { logs_days: null }, tokenNamed('admin'))
    await clock.advance(msPerDay)
    await scene.round()
    assert.deepEqual(await statuses(), ['logs 01-12 cancelled', 'traces 01-11 completed'])
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
  })

  test('does not begin where the rule keeps it when the hold that had stopped it is released', async () => {
    const { clock, scene, statuses, store, tenantId } = await waiting()
    const { hold_id } = await scene.holds.place(tenantId, { case_ref: 'case 7' }, tokenNamed('owner'))
    await clock.advance(msPerDay)
    await scene.round()
    assert.deepEqual(await statuses(), ['logs 01-12 held', 'traces 01-11 held'])
    await store.set(tenantId, { logs_days: null }, tokenNamed('admin'))
    await scene.holds.release(tenantId, hold_id, tokenNamed('owner'))
    await scene.round()
    assert.deepEqual(await statuses(), ['logs 01-12 cancelled', 'traces 01-11 completed'])
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
    assert.equal(await scene.count(scene.own, 'otel_traces'), times.length / 2 + 24)
    assert.equal(await scene.count(scene.neighbour, 'otel_traces'), times.length)
    assert.ok(
      scene.journal.every(({ signals }) => !signals.includes('logs')),
      'a restore must not erase it',
    )
  })

  test('continues where it has begun, and on later days of the same rule', async () => {
    const { clock, retention, scene, statuses, store, tenantId } = await waiting()
    await clock.advance(msPerDay - 1)
    await retention.round(signal)
    assert.ok((await statuses()).includes('logs 01-12 scheduled'))
    await stores.control
      .updateTable('deletion_requests')
      .set({ attempts: 1 })
      .where('tenant_id', '=', tenantId)
      .execute()
    await store.set(tenantId, { logs_days: null, traces_days: null }, tokenNamed('admin'))
    await retention.round(signal)
    assert.ok((await statuses()).every((one) => one.endsWith('scheduled')))
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length / 2 - 24, 'and another day of it')
  })
})

describe('retention that waits for its turn', () => {
  async function waiting() {
    const scene = await retained({ tables: ['otel_logs'] })
    const { tenantId } = scene.scene.own
    await scene.store.set(tenantId, { logs_days: 14 }, tokenNamed('owner'))
    await scene.retention.round(signal)
    const status = async () => (await requestsOf(scene.scene))[0]?.status
    assert.equal(await status(), 'running')
    assert.equal(await scene.scene.visible(scene.scene.own, 'otel_logs'), times.length / 2)
    return { ...scene, status, tenantId }
  }

  test('does not begin where the rule keeps it by then', async () => {
    const { scene, status, store, tenantId } = await waiting()
    await store.set(tenantId, { logs_days: 20 }, tokenNamed('admin'))
    await scene.round()
    assert.equal(await status(), 'cancelled')
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
    assert.deepEqual(scene.journal, [])
  })

  test('is cancelled before its turn where the rule keeps it', async () => {
    const { retention, scene, status, store, tenantId } = await waiting()
    await store.set(tenantId, { logs_days: null }, tokenNamed('admin'))
    await retention.round(signal)
    assert.equal(await status(), 'cancelled')
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
  })

  test('does not begin while the clock is in doubt', async () => {
    const { clock, scene } = await waiting()
    const [request] = await scene.requests.inStatus(['running'], scene.own.tenantId)
    assert.ok(request)
    const causeAt = async (nowMs: number | null) => {
      const causeIn = await retentionRetest(async () => nowMs, request)
      return stores.control.transaction().execute(causeIn)
    }
    assert.deepEqual([await causeAt(clock.nowMs()), await causeAt(null)], [null, 'clock_in_doubt'])
  })
})

/** Places holds of an hour each, four hours apart. */
async function holdHours({ holds, own }: Scene, count: number, startNs: bigint): Promise<void> {
  for (let i = 0; i < count; i++) {
    const range_start = startNs + BigInt(4 * i + 2) * hourNs
    const body = { case_ref: `case ${i}`, range_start, range_end: range_start + hourNs }
    await holds.place(own.tenantId, body, tokenNamed('owner'))
  }
}

test('retention between many holds has at most half of the open requests at once, and continues as they end', async () => {
  const { errors, retention, scene, store } = await retained({ tables: ['otel_logs'] })
  await holdHours(scene, 11, monday)
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  await retention.round(signal)
  for (const status of ['running', 'failed', 'held', 'running'] as const) {
    await stores.control.updateTable('deletion_requests').set({ status }).execute()
    await retention.round(signal)
    assert.equal((await requestsOf(scene)).length, openOfPersonMax / 2, status)
  }
  const person = between(monday + weekNs, monday + weekNs + hourNs)
  assert.ok((await scene.request(person)).isNew, 'people still have the other half')
  await scene.round()
  await retention.round(signal)
  await scene.round()
  assert.deepEqual(errors, [])
  const ended = await requestsOf(scene)
  assert.equal(ended.length, 12 + 1)
  assert.ok(ended.every(({ status }) => status === 'completed'))
  const left = 11 + times.length / 2 - 1
  assert.equal(await scene.count(scene.own, 'otel_logs'), left, 'what is held, and the week that is kept')
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('an organisation with many holds is looked at by turns, so that others need not wait for all of it', async () => {
  const { engine, retention, scene, store } = await retained({ tables: ['otel_logs'] })
  // Without telemetry between them: what costs is to find that out.
  await holdHours(scene, 30, monday - weekNs)
  for (const { tenantId } of [scene.own, scene.neighbour])
    await store.set(tenantId, { logs_days: 14 }, tokenNamed('owner'))
  const plans = [0, 0, 0]
  for (const [round, before] of plans.entries()) {
    let found = before
    engine.before = async () => {
      found++
    }
    await retention.round(signal)
    plans[round] = found
  }
  assert.deepEqual(plans, [20 + 1, 11, 0])
  const theirs = await scene.requests.inStatus(['running'], scene.neighbour.tenantId)
  assert.equal(theirs.length, 1)
})

test('holds that are placed and released cost nothing after everything was handled, until the next day', async () => {
  const { clock, engine, reads, retention, newWorker, scene, store } = await retained({
    tables: ['otel_logs'],
  })
  const { tenantId } = scene.own
  await store.set(tenantId, { logs_days: 14 }, tokenNamed('owner'))
  let plans = 0
  engine.before = async () => {
    plans++
  }
  const release = async (startNs: bigint) => {
    const place = { case_ref: 'case', range_start: startNs, range_end: startNs + hourNs }
    const { hold_id } = await scene.holds.place(tenantId, place, tokenNamed('owner'))
    await scene.holds.release(tenantId, hold_id, tokenNamed('owner'))
  }
  await release(monday)
  await retention.round(signal)
  const midnightMs = clock.nowMs() - 3_600_000
  assert.deepEqual([reads, plans > 0], [[midnightMs], true])
  for (let i = 1n; i <= 5n; i++) {
    await release(monday + i * hourNs)
    await clock.advance(1000)
    await retention.round(signal)
  }
  assert.deepEqual(reads, [midnightMs], 'nothing was left to find out')
  await scene.round()
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 + 1, 'kept until the night')
  await newWorker().round(signal)
  assert.deepEqual(reads, [midnightMs, midnightMs], 'a restart reads all of the day once')
  await clock.advance(msPerDay)
  await retention.round(signal)
  await scene.round()
  assert.equal(reads.at(-1), midnightMs + msPerDay)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 - 24, 'and a day more')
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('while ranges are left, only holds that were released lately are read again', async () => {
  const { clock, reads, retention, scene, store } = await retained({ tables: ['otel_logs'] })
  const { tenantId } = scene.own
  await holdHours(scene, 30, monday - weekNs)
  await store.set(tenantId, { logs_days: 14 }, tokenNamed('owner'))
  const held = { case_ref: 'case', range_start: monday + hourNs, range_end: monday + 2n * hourNs }
  await retention.round(signal)
  const readMs = clock.nowMs()
  const { hold_id } = await scene.holds.place(tenantId, held, tokenNamed('owner'))
  await scene.holds.release(tenantId, hold_id, tokenNamed('owner'))
  await clock.advance(1000)
  await retention.round(signal)
  await scene.round()
  assert.deepEqual(reads, [readMs - 3_600_000, readMs - 60_000])
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 + 1, 'the release was noticed')
  await clock.advance(msPerDay)
  for (let round = 0; round < 3; round++) await retention.round(signal)
  await scene.round()
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2 - 24)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('retention waits for a full erasure without an error, and then finds nothing to request', async () => {
  const { errors, retention, scene, store } = await retained({ tables: ['otel_logs'] })
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  const { request } = await scene.request({ ...all, signals: ['logs'] })
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  await retention.round(signal)
  await scene.round()
  await retention.round(signal)
  assert.deepEqual(
    [errors, (await requestsOf(scene)).map(({ request_id, status }) => [request_id, status])],
    [[], [[request.request_id, 'completed']]],
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), 0)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('a rule that is removed while it is applied erases nothing', async () => {
  const { clock, scene, store } = await retained()
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  const retention = new RetentionWorker({
    store,
    requests: scene.requests,
    requestStore: scene.requestStore,
    engine: stores.engine,
    trustedNowMs: async () => clock.nowMs(),
    logger: silent,
    // Between reading the rule and writing the request.
    findPlace: async () => scene.own,
    ruleOf: async () => {
      await store.set(scene.own.tenantId, { logs_days: null }, tokenNamed('owner'))
      return 'none'
    },
    holdsSince: (tenantId, sinceMs) => readHoldsSince(stores.control, tenantId, sinceMs),
    nudge: () => {},
  })
  await retention.round(signal)
  assert.deepEqual(await requestsOf(scene), [])
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
})

test('changing a rule is in the audit log, before and after', async () => {
  const { scene, store } = await retained()
  await store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner'))
  await store.set(scene.own.tenantId, { logs_days: null, traces_days: 3 }, tokenNamed('admin'))
  assert.deepEqual(await store.get(scene.own.tenantId), {
    metrics_days: null,
    logs_days: null,
    traces_days: 3,
  })
  const audit = await readChain(stores.control, 'audit_entries', scene.own.tenantId)
  const { action, actor, facts } = JSON.parse(audit.at(-1)?.text ?? '{}')
  assert.deepEqual(
    [action, actor, facts.before.logs_days, facts.after.traces_days],
    ['retention.changed', 'token:admin (tok_admin)', 14, 3],
  )
})
