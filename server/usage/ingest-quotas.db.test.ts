// Quotas on the real control plane, with a manual clock.

import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { silent } from '../../tests/fixtures.ts'
import { figuresOf, outsideWritesOf } from '../control/dialect.ts'
import { operatorActor } from '../core/actor.ts'
import { AppError } from '../core/app-error.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { rememberedMs } from '../core/remembered.ts'
import { workFor, workOwner } from '../core/work-owner.ts'
import { IngestQuotas } from './ingest-quotas.ts'
import { QuotaStore } from './quota-store.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')
const { another, control, close } = await openSharedControlPlane()
const beside = another()
after(close)

let organisations = 0
let clock: ManualClock
let store: QuotaStore
let quotas: IngestQuotas
let tenant: string
beforeEach(async () => {
  clock = new ManualClock(noon)
  store = new QuotaStore(control, clock, { rowsPerSecond: null, bytesPerDay: null })
  quotas = open()
  tenant = await newOrganisation()
})

function open(): IngestQuotas {
  return new IngestQuotas({ store, clock, logger: silent })
}

async function newOrganisation(): Promise<string> {
  const tenantId = `org-${++organisations}`
  await control
    .insertInto('organisations')
    .values({ tenant_id: tenantId, name: tenantId, placement: 0, created_at_ms: 0 })
    .execute()
  return tenantId
}

const allow = (tenantId: string, rowsPerSecond: number | null, bytesPerDay: number | null) =>
  store.setLimits(tenantId, { rowsPerSecond, bytesPerDay }, operatorActor('test'))

/** Sends a request through a quota. */
async function send(bytes: number, rows = 1, to = quotas, tenantId = tenant): Promise<void> {
  const admission = await to.admit(tenantId, bytes)
  try {
    admission.takeRows(rows)
    await admission.count(rows, 0)
  } catch (error) {
    admission.giveBack()
    throw error
  }
}

/** Returns the seconds to wait of a refusal. */
async function refusedFor(sending: Promise<void>): Promise<number> {
  const error = await sending.then(
    () => assert.fail('it was let in'),
    (found: unknown) => found,
  )
  assert.ok(error instanceof AppError && error.code === 'quota_exceeded', String(error))
  return error.retryAfterSeconds ?? assert.fail('no Retry-After')
}

describe('bytes a day', () => {
  test('the last byte fits, the next is refused until the next UTC midnight, and then all of them are available', async () => {
    await allow(tenant, 0, 100)
    await send(60)
    await send(40)
    assert.equal(await refusedFor(send(1)), 12 * 3600)
    await clock.advance(12 * 3600_000 - 1)
    assert.equal(await refusedFor(send(1)), 1)
    await clock.advance(1)
    await send(100)
    assert.equal(await refusedFor(send(1)), 24 * 3600)
  })

  test('concurrent requests can not exceed the limit together', async () => {
    await allow(tenant, 0, 1000)
    const results = await Promise.allSettled(Array.from({ length: 50 }, () => send(100)))
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 10)
    assert.equal((await quotas.usageOf(tenant)).today.bytes, 1000)
  })

  test('counts are on disk when they are acknowledged, so they survive any end of the process', async () => {
    await allow(tenant, 0, 1000)
    await Promise.all(Array.from({ length: 9 }, () => send(100)))
    // Nothing is closed: this is another process after a kill.
    const next = open()
    assert.equal((await next.usageOf(tenant)).today.bytes, 900)
    await send(100, 1, next)
    await refusedFor(send(1, 1, next))
  })

  test('bytes of what was not stored are given back', async () => {
    await allow(tenant, 0, 100)
    const admission = await quotas.admit(tenant, 100)
    await refusedFor(send(1))
    admission.giveBack()
    await send(100)
  })

  test('a clock that goes back over midnight continues that day’s count', async () => {
    await allow(tenant, 0, 100)
    await send(70)
    await clock.advance(86_400_000)
    await send(90)
    await clock.advance(-86_400_000)
    await refusedFor(send(31))
    await send(30)
    await clock.advance(86_400_000)
    await refusedFor(send(11))
    await send(10)
  })
})

describe('rows a second', () => {
  test('a burst of ten seconds fits, and then the rate is the limit', async () => {
    await allow(tenant, 5, 0)
    await send(1, 50)
    assert.equal(await refusedFor(send(1, 10)), 2)
    await clock.advance(2000)
    await send(1, 10)
    assert.equal(await refusedFor(send(1, 1)), 1)
  })

  test('a refusal for rows costs no bytes, and one for bytes no rows', async () => {
    await allow(tenant, 1, 100)
    await send(10, 10)
    await refusedFor(send(90, 1))
    assert.equal((await quotas.usageOf(tenant)).today.bytes, 10)
    await clock.advance(10_000)
    await refusedFor(send(91, 10))
    await send(90, 10)
  })

  test('rows that were not stored are given back', async () => {
    await allow(tenant, 1, 0)
    const admission = await quotas.admit(tenant, 1)
    admission.takeRows(10)
    await refusedFor(send(1, 1))
    admission.giveBack()
    await send(1, 10)
  })

  test('concurrent requests can not exceed the rate together', async () => {
    await allow(tenant, 10, 0)
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => send(1, 1)))
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 100)
  })

  test('a change of the limit applies to the next request', async () => {
    await send(1, 1_000_000)
    await allow(tenant, 1, 0)
    await send(1, 10)
    await refusedFor(send(1, 1))
    await allow(tenant, 0, 0)
    await send(1, 1_000_000)
  })
})

describe('limits', () => {
  test('are read once for many requests', async () => {
    await quotas.admit(tenant, 1)
    const before = figuresOf(control).statements
    for (let i = 0; i < 50; i++) await quotas.admit(tenant, 1)
    assert.equal(figuresOf(control).statements - before, 0)
    await clock.advance(rememberedMs)
    await quotas.admit(tenant, 1)
    assert.equal(figuresOf(control).statements - before, 1)
  })

  test('that another process lowers apply to the next request where that is noticed, and soon elsewhere', async () => {
    const theirs = new QuotaStore(beside, clock, { rowsPerSecond: null, bytesPerDay: null })
    await send(100)
    await theirs.setLimits(tenant, { bytesPerDay: 150 }, operatorActor('test'))
    if (outsideWritesOf(control) !== null) await refusedFor(send(60))
    await clock.advance(rememberedMs)
    await refusedFor(send(60))
    await send(50)
  })
})

describe('between organisations', () => {
  test('an organisation over its quota takes nothing from another', async () => {
    const other = await newOrganisation()
    await allow(tenant, 1, 10)
    await allow(other, 1, 10)
    await send(10, 10)
    await refusedFor(send(1))
    await send(10, 10, quotas, other)
    await refusedFor(send(1, 1, quotas, other))
  })

  test('the default of the settings applies where nothing is set, and can be lifted for one organisation', async () => {
    store = new QuotaStore(control, clock, { rowsPerSecond: null, bytesPerDay: 10 })
    quotas = open()
    await send(10)
    await refusedFor(send(1))
    const other = await newOrganisation()
    await allow(other, null, 0)
    await send(1_000_000, 1, quotas, other)
    assert.deepEqual(await store.limitsOf(other), { rowsPerSecond: null, bytesPerDay: null })
    await allow(other, null, null)
    await refusedFor(send(1, 1, quotas, other))
  })
})

describe('usage', () => {
  test('has limits, today until now and the days before, newest first', async () => {
    await send(10, 3)
    await clock.advance(86_400_000)
    await allow(tenant, 5, 30)
    const admission = await quotas.admit(tenant, 20)
    admission.takeRows(4)
    await admission.count(4, 2)
    await refusedFor(send(11))
    assert.deepEqual(await quotas.usageOf(tenant), {
      limits: { rowsPerSecond: 5, bytesPerDay: 30 },
      burstRows: 50,
      today: { day: '2026-03-02', bytes: 20, rowsAccepted: 4, rowsRejected: 2, requestsRefused: 1 },
      days: [
        { day: '2026-03-02', bytes: 20, rowsAccepted: 4, rowsRejected: 2, requestsRefused: 1 },
        { day: '2026-03-01', bytes: 10, rowsAccepted: 3, rowsRejected: 0, requestsRefused: 0 },
      ],
      resetsAt: '2026-03-03T00:00:00.000Z',
    })
    await quotas.close()
    assert.equal((await open().usageOf(tenant)).today.requestsRefused, 1)
  })

  test('counts that wait to be written are not lost when a clock goes over midnight and back', async () => {
    await allow(tenant, 0, 1)
    await refusedFor(send(2))
    await clock.advance(86_400_000)
    await quotas.usageOf(tenant)
    await clock.advance(-86_400_000)
    assert.equal((await quotas.usageOf(tenant)).today.requestsRefused, 1)
  })

  test('an organisation that sent nothing has no days', async () => {
    const { today, days } = await quotas.usageOf(tenant)
    assert.deepEqual([today.day, today.bytes, days], ['2026-03-01', 0, []])
  })

  test('what can not be written is written with the next counts, and nothing is refused for it', async () => {
    const broken = new QuotaStore(control, clock, { rowsPerSecond: null, bytesPerDay: null })
    const add = broken.add.bind(broken)
    let fails = 1
    broken.add = async (deltas) => (fails-- > 0 ? Promise.reject(new Error('disk full')) : add(deltas))
    const here = new IngestQuotas({ store: broken, clock, logger: silent })
    await send(10, 1, here)
    assert.equal((await store.countsOf(tenant, '2026-03-01')).bytes, 0)
    assert.equal((await here.usageOf(tenant)).today.bytes, 10)
    await send(5, 1, here)
    assert.equal((await store.countsOf(tenant, '2026-03-01')).bytes, 15)
  })

  test('a batch that is sent twice is counted once, and the next one is counted', async () => {
    const counts = { tenantId: tenant, day: '2026-03-01', bytes: 7, rowsAccepted: 1 }
    const batch = store.batchOf([{ ...counts, rowsRejected: 2, requestsRefused: 3 }])
    await store.add(batch)
    await store.add(batch)
    const once = { bytes: 7, rowsAccepted: 1, rowsRejected: 2, requestsRefused: 3 }
    assert.deepEqual(await store.countsOf(tenant, '2026-03-01'), once)
    await store.add(store.batchOf(batch.deltas))
    assert.equal((await store.countsOf(tenant, '2026-03-01')).bytes, 14)
  })

  test('one day that is there twice, after a clock went over midnight and back, is counted as a whole', async () => {
    const admission = await quotas.admit(tenant, 10)
    await clock.advance(86_400_000)
    await send(1)
    await clock.advance(-86_400_000)
    const later = await quotas.admit(tenant, 5)
    await Promise.all([admission.count(1, 0), later.count(1, 0)])
    assert.equal((await store.countsOf(tenant, '2026-03-01')).bytes, 15)
  })

  test('thousands of organisations are counted at once', async () => {
    const many = Array.from({ length: 1_100 }, (_, i) => `many-${i}`)
    await control
      .insertInto('organisations')
      .values(many.map((id) => ({ tenant_id: id, name: id, placement: 0, created_at_ms: 0 })))
      .execute()
    const counts = { day: '2026-03-01', bytes: 1, rowsAccepted: 1, rowsRejected: 0, requestsRefused: 0 }
    const before = figuresOf(control).statements
    await store.add(store.batchOf(many.map((tenantId) => ({ tenantId, ...counts }))))
    assert.ok(figuresOf(control).statements - before < 12)
    for (const id of [many[0] ?? '', many.at(-1) ?? '']) {
      assert.equal((await store.countsOf(id, '2026-03-01')).bytes, 1)
    }
  })

  test('nothing is recorded about an organisation that was removed', async () => {
    await quotas.admit(tenant, 1)
    const admission = await quotas.admit(tenant, 1)
    await control.deleteFrom('organisations').where('tenant_id', '=', tenant).execute()
    await admission.count(1, 0)
    assert.deepEqual(await store.daysOf(tenant), [])
  })
})

test('counts are written as work of nobody, because those of others are written with them', async () => {
  const owners: (string | null)[] = []
  const add = store.add.bind(store)
  store.add = (batch) => {
    owners.push(workOwner())
    return add(batch)
  }
  await workFor(tenant, () => Promise.all([send(10), quotas.usageOf(tenant)]))
  assert.deepEqual(new Set(owners), new Set([null]))
})
