// Transactions that PostgreSQL aborts in favour of another one, and commits whose response is lost: what is
// stored, what the caller gets, and that a repeated request is safe.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { sql } from 'kysely'
import { findBreak } from '../../server/audit/chain.ts'
import { readChain } from '../../server/audit/log.ts'
import type { Control } from '../../server/control/database.ts'
import { transact } from '../../server/control/transaction.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { tokenNamed } from '../../server/core/actor-fixture.ts'
import { AppError } from '../../server/core/app-error.ts'
import { ManualClock } from '../../server/core/manual-clock.ts'
import { all, storeShowing } from '../../server/deletion/deletion-fixture.ts'
import { readActiveHolds } from '../../server/deletion/governance/active-holds.ts'
import { RequestQueries } from '../../server/deletion/requests/queries.ts'
import type { StoredDeletion } from '../../server/deletion/requests/request.ts'
import { Visibility } from '../../server/deletion/requests/visibility.ts'
import { definitionOf, errorsDraft } from '../../server/detection/detection-fixture.ts'
import { DetectionStore } from '../../server/detection/detectors/store.ts'
import { ProcessFences } from '../../server/telemetry/fences.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { OrganisationRemoval } from '../../server/tenancy/removal.ts'
import { TenancyStore } from '../../server/tenancy/store.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { IngestQuotas } from '../../server/usage/ingest-quotas.ts'
import { QuotaStore } from '../../server/usage/quota-store.ts'
import { silent } from '../fixtures.ts'
import { openSharedPostgresPlane } from '../postgres-plane.ts'
import { type CommitCut, openCuttingProxy } from './cutting-proxy.ts'
import { startMs } from './race.ts'

const plane = await openSharedPostgresPlane()
const { control } = plane
const proxy = await openCuttingProxy(plane.socketPath)
/** A handle whose commits can be cut. */
const cuttable = plane.by(proxy)
after(async () => {
  await plane.close()
  await proxy.close()
})

const clock = new ManualClock(startMs)
const owner = tokenNamed('owner')
const cuts: readonly CommitCut[] = ['before the server', 'after the server']
let organisations = 0

async function organise(): Promise<string> {
  const tenantId = `commit-${++organisations}`
  await control
    .insertInto('organisations')
    .values({ tenant_id: tenantId, name: tenantId, placement: organisations, created_at_ms: 0 })
    .execute()
  return tenantId
}

const put = (on: Control, key: string, value: string) =>
  on
    .insertInto('instance')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute()

async function storedValue(key: string): Promise<string | undefined> {
  const row = await control.selectFrom('instance').select('value').where('key', '=', key).executeTakeFirst()
  return row?.value
}

describe('a transaction that PostgreSQL aborts in favour of another one', () => {
  test('is repeated as a whole: after a deadlock both are stored', async () => {
    for (const key of ['a', 'b']) await put(control, key, '')
    let tries = 0
    const both = Promise.withResolvers<void>()
    const stored = Promise.withResolvers<void>()
    const writing = async (first: string, second: string, value: string) => {
      await transact(plane.another(), async (trx) => {
        // Repeated at once, it could take its first row before the other one has it, in another deadlock.
        if (tries === 2) await stored.promise
        await sql`set local deadlock_timeout = '10ms'`.execute(trx)
        await put(trx, first, value)
        if (++tries === 2) both.resolve()
        await both.promise
        await put(trx, second, value)
      })
      stored.resolve()
    }
    await Promise.all([writing('a', 'b', 'one'), writing('b', 'a', 'two')])
    assert.equal(tries, 3, 'one of them ran twice')
    assert.equal(await storedValue('a'), await storedValue('b'))
  })

  test('is repeated where a row that it has read was changed', async () => {
    await put(control, 'counted', '1')
    let tries = 0
    await transact(plane.another(), async (trx) => {
      await sql`set transaction isolation level repeatable read`.execute(trx)
      const row = await trx.selectFrom('instance').selectAll().where('key', '=', 'counted').executeTakeFirst()
      if (++tries === 1) await put(control, 'counted', '10')
      await put(trx, 'counted', String(Number(row?.value) + 1))
    })
    assert.deepEqual([tries, await storedValue('counted')], [2, '11'])
  })

  test('is refused after five tries, and nothing of it is stored', async () => {
    let tries = 0
    const preempted = transact(control, async (trx) => {
      await put(trx, 'never', String(++tries))
      await sql`do $$ begin raise exception 'not now' using errcode = '40001'; end $$`.execute(trx)
    })
    await assert.rejects(preempted, { code: 'overloaded', status: 503, retryAfterSeconds: 1 })
    assert.deepEqual([tries, await storedValue('never')], [5, undefined])
  })

  test('hides only the selection of the try that was stored', async () => {
    const tenantId = await organise()
    const gate = new TelemetryGate()
    const store = storeShowing(new Visibility(new ProcessFences(gate), clock), control, clock)
    await sql`create function preempt_once() returns trigger language plpgsql as $$ begin
      if (select last_value = 1 and not is_called from preemptions) then
        perform nextval('preemptions');
        raise exception 'not now' using errcode = '40001';
      end if;
      return null; end $$`.execute(control)
    await sql`create sequence preemptions`.execute(control)
    await sql`create constraint trigger preempted after insert on deletion_requests
      deferrable initially deferred for each row execute function preempt_once()`.execute(control)
    try {
      const { row } = await store.create(tenantId, all, { requester: owner, idempotencyKey: null })
      assert.deepEqual(
        gate.hidden(tenantId).map(({ id }) => id),
        [row.request_id],
      )
    } finally {
      await sql`drop function preempt_once cascade`.execute(control)
    }
  })

  test('that catches an error of a statement and continues is refused, and nothing of it is stored', async () => {
    const caught = transact(control, async (trx) => {
      await put(trx, 'lost', 'x')
      await sql`select 1 / 0`.execute(trx).catch(() => {})
    })
    await assert.rejects(caught, /ROLLBACK|rolled back|aborted/i)
    assert.equal(await storedValue('lost'), undefined)
  })
})

for (const cut of cuts) {
  const isStored = cut === 'after the server'

  describe(`a connection that ends ${cut} has the commit`, () => {
    const losing = async (work: () => Promise<unknown>) => {
      proxy.cutNextCommit(cut)
      await assert.rejects(work(), (error) => {
        assert.ok(error instanceof AppError, String(error))
        assert.deepEqual([error.code, error.status], ['outcome_unknown', 503])
        return true
      })
    }

    test('of a deletion: it stays hidden until the outcome is known, and a repeated request is safe', async () => {
      const tenantId = await organise()
      const gate = new TelemetryGate()
      const store = storeShowing(new Visibility(new ProcessFences(gate), clock), cuttable, clock)
      const create = () => store.create(tenantId, all, { requester: owner, idempotencyKey: 'key' })
      const hidden = () => gate.hidden(tenantId).length
      await losing(create)
      assert.equal(hidden(), 1)
      assert.equal(await store.settleDoubts(), true)
      assert.equal(hidden(), isStored ? 1 : 0)
      const { isNew, row } = await create()
      assert.equal(isNew, !isStored)
      assert.deepEqual(
        gate.hidden(tenantId).map(({ id }) => id),
        [row.request_id],
      )
      const ledger = await readChain(control, 'ledger_entries', tenantId)
      assert.deepEqual([ledger.length, findBreak(ledger)], [1, null])
    })

    test('of a deletion that is requested again before the outcome is known: it is one request, and hidden', async () => {
      const tenantId = await organise()
      const gate = new TelemetryGate()
      const store = storeShowing(new Visibility(new ProcessFences(gate), clock), cuttable, clock)
      const create = () => store.create(tenantId, all, { requester: owner, idempotencyKey: 'key' })
      await losing(create)
      const { row } = await create()
      assert.ok(gate.hidden(tenantId).length >= 1)
      await store.settleDoubts()
      assert.deepEqual(
        gate.hidden(tenantId).map(({ id }) => id),
        [row.request_id],
      )
    })

    test('of a completion: the selection stays hidden until the outcome is known', async () => {
      const tenantId = await organise()
      const gate = new TelemetryGate()
      const store = storeShowing(new Visibility(new ProcessFences(gate), clock), cuttable, clock)
      const requests = new RequestQueries(control, async () => ({ all: [], fromBefore: () => [] }))
      const { row } = await store.create(tenantId, all, { requester: owner, idempotencyKey: null })
      const seen = await requests.stored(tenantId, row.request_id)
      const verifying = (await store.move(seen, 'removed', { actor: owner })) ?? assert.fail()
      await losing(() => store.move(verifying, 'verified', { actor: owner }, { verifiedAtMs: startMs }))
      assert.equal(gate.hidden(tenantId).length, 1, 'never looser than what may be stored')
      await store.settleDoubts()
      const now: StoredDeletion = await requests.stored(tenantId, row.request_id)
      assert.equal(now.status, isStored ? 'completed' : 'verifying')
      assert.equal(gate.hidden(tenantId).length, isStored ? 0 : 1)
      assert.equal(gate.erased(tenantId).length, isStored ? 1 : 0)
    })

    test('of a change of a detector: after a repetition it is stored once', async () => {
      const tenantId = await organise()
      const store = new DetectionStore(cuttable, clock, new TelemetryGate(), readActiveHolds)
      const detector = await store.createDetector(tenantId, definitionOf(errorsDraft), owner)
      const change = { after: { ...detector.definition, name: 'renamed' }, refused: [] }
      await losing(() => store.changeDetector({ before: detector, ...change }, undefined, owner))
      const found = (await store.findDetector(tenantId, detector.id)) ?? assert.fail()
      assert.equal(found.revision, isStored ? 2 : 1)
      await store.changeDetector({ before: found, ...change }, undefined, owner)
      const now = await store.findDetector(tenantId, detector.id)
      assert.deepEqual([now?.definition.name, now?.revision], ['renamed', 2])
      const updates = (await readChain(control, 'audit_entries', tenantId)).filter(({ text }) =>
        text.includes('detector.updated'),
      )
      assert.equal(updates.length, 1)
    })

    test('of a new token: its row exists or not, and another token can be created', async () => {
      const tenantId = await organise()
      const tenancy = new TenancyStore(cuttable, clock)
      const token = { tenantId, name: 'lost', role: 'admin', expiresAtMs: null } as const
      const make = () =>
        tenancy.createToken({ ...token, secret: newTokenSecret('admin'), actor: operatorActor('test') })
      await losing(make)
      const counted = await control
        .selectFrom('access_tokens')
        .select('id')
        .where('tenant_id', '=', tenantId)
        .execute()
      assert.equal(counted.length, isStored ? 1 : 0)
      await make()
      assert.equal(findBreak(await readChain(control, 'audit_entries', tenantId)), null)
    })

    test('of what was sent: it is counted once, with what is sent after it', async () => {
      const tenantId = await organise()
      const noLimits = { rowsPerSecond: null, bytesPerDay: null }
      const store = new QuotaStore(cuttable, clock, noLimits)
      const quotas = new IngestQuotas({ store, clock, logger: silent })
      const send = async () => (await quotas.admit(tenantId, 100)).count(1, 0)
      await send()
      proxy.cutNextCommit(cut)
      await send()
      assert.equal((await quotas.usageOf(tenantId)).today.bytes, 200)
      const [day] = await store.daysOf(tenantId)
      assert.equal(day?.bytes, isStored ? 200 : 100)
      await send()
      const [counted] = await new QuotaStore(control, clock, noLimits).daysOf(tenantId)
      assert.deepEqual([counted?.bytes, counted?.rowsAccepted], [300, 3])
      await quotas.close()
    })

    test('of the removal of an organisation: all of it is removed, or nothing is and writers continue', async () => {
      const tenantId = await organise()
      const gate = new TelemetryGate()
      const store = storeShowing(new Visibility(new ProcessFences(gate), clock), control, clock)
      const requests = new RequestQueries(control, async () => ({ all: [], fromBefore: () => [] }))
      const { row } = await store.create(tenantId, all, { requester: owner, idempotencyKey: null })
      const seen = await requests.stored(tenantId, row.request_id)
      const verifying = (await store.move(seen, 'removed', { actor: owner })) ?? assert.fail()
      await store.move(verifying, 'verified', { actor: owner }, { verifiedAtMs: startMs })
      let isClosed = false
      const removal = new OrganisationRemoval({
        control: cuttable,
        clock,
        closeToWriters: async () => {
          isClosed = true
          return async () => {
            isClosed = false
          }
        },
        isGuarded: async () => false,
        isClockInDoubt: async () => false,
        forgetSenders: () => {},
        countTelemetry: async () => 0,
        flushControl: async () => {},
        signCheckpoint: async () => '',
      })
      proxy.cutNextCommit(cut)
      const removing = removal.remove(tenantId, owner)
      if (isStored) await removing
      else await assert.rejects(removing, { code: 'storage_unavailable' })
      const left = await control
        .selectFrom('organisations')
        .select('tenant_id')
        .where('tenant_id', '=', tenantId)
        .execute()
      assert.deepEqual([left.length, isClosed], isStored ? [0, true] : [1, false])
    })
  })
}

test('requests are refused with 503 while the database can’t be reached, and accepted afterwards', async () => {
  const tenantId = await organise()
  const store = storeShowing(new Visibility(new ProcessFences(new TelemetryGate()), clock), cuttable, clock)
  const create = () => store.create(tenantId, all, { requester: owner, idempotencyKey: null })
  await cuttable.selectFrom('instance').select('key').execute()
  const comeBack = proxy.goDown()
  await assert.rejects(create(), { code: 'storage_unavailable', status: 503 })
  comeBack()
  assert.equal((await create()).isNew, true)
})
