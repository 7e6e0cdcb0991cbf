// Races of deletion requests: limits, repeats, transitions, second persons, legal holds, retention,
// certificates and backups.

import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { findBreak } from '../../server/audit/chain.ts'
import { KeySeal } from '../../server/audit/key-seal.ts'
import { appendAudit, readChain } from '../../server/audit/log.ts'
import { SigningKeys } from '../../server/audit/signing.ts'
import { BackupRegister } from '../../server/backup/register.ts'
import type { Control } from '../../server/control/database.ts'
import { transact } from '../../server/control/transaction.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { tokenNamed } from '../../server/core/actor-fixture.ts'
import { instantText } from '../../server/core/clock.ts'
import { StepStore } from '../../server/deletion/attempt/step-store.ts'
import { CertificateStore } from '../../server/deletion/certificate/store.ts'
import { all, storeShowing } from '../../server/deletion/deletion-fixture.ts'
import { activeHoldsOfPersonMax } from '../../server/deletion/governance/active-holds.ts'
import { LegalHolds } from '../../server/deletion/governance/holds.ts'
import { DeletionPolicies } from '../../server/deletion/governance/policy.ts'
import type { DeletionDraft } from '../../server/deletion/requests/draft.ts'
import { RequestQueries } from '../../server/deletion/requests/queries.ts'
import {
  noProgress,
  type RequestRow,
  type StoredDeletion,
  toStored,
} from '../../server/deletion/requests/request.ts'
import { openOfPersonMax } from '../../server/deletion/requests/states.ts'
import { retentionRequester } from '../../server/deletion/requests/system-actors.ts'
import { Visibility } from '../../server/deletion/requests/visibility.ts'
import { RetentionStore } from '../../server/deletion/retention/store.ts'
import { ProcessFences } from '../../server/telemetry/fences.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { findRelated } from '../../server/tenancy/lineage.ts'
import { type RaceScene, resultOf, startMs, summaryOf, testRace, testStatementRace } from './race.ts'

const owner = tokenNamed('owner')
const dayNs = 86_400_000_000_000n
const startNs = BigInt(startMs) * 1_000_000n

const storeOf = (control: Control, { clock }: RaceScene) =>
  storeShowing(new Visibility(new ProcessFences(new TelemetryGate()), clock), control, clock)

/** Requests that are sent at the same time. */
const asking =
  (scene: RaceScene, draft: Partial<DeletionDraft> = {}, idempotencyKey: string | null = null) =>
  async (control: Control): Promise<RequestRow> => {
    const by = { requester: owner, idempotencyKey }
    return (await storeOf(control, scene).create(scene.tenantId, { ...all, ...draft }, by)).row
  }

/** A range of this many days, some days ago. */
const rangeOf = (daysAgo: number, days: number) =>
  ({
    scope: 'range',
    range: {
      startNs: startNs - BigInt(daysAgo) * dayNs,
      endNs: startNs - BigInt(daysAgo - days) * dayNs,
    },
  }) as const

const requestsOf = ({ control, tenantId }: RaceScene) =>
  control.selectFrom('deletion_requests').selectAll().where('tenant_id', '=', tenantId).execute()

async function requested(scene: RaceScene, draft: Partial<DeletionDraft> = {}): Promise<StoredDeletion> {
  const { request_id } = await asking(scene, draft)(scene.control)
  return new RequestQueries(scene.control, async () => ({ all: [], fromBefore: () => [] })).stored(
    scene.tenantId,
    request_id,
  )
}

const by = { actor: owner }

testRace('entries of a chain follow one another', async ({ clock, control, tenantId }) => {
  const append = (handle: Control) =>
    transact(handle, (trx) =>
      appendAudit(trx, tenantId, clock.nowMs(), {
        actor: owner,
        action: 'thing.done',
        target: null,
        outcome: 'accepted',
        facts: {},
      }),
    )
  return {
    first: append,
    second: append,
    check: async (results) => {
      assert.deepEqual(summaryOf(results), { fulfilled: 2, refused: [] })
      const chain = await readChain(control, 'audit_entries', tenantId)
      assert.deepEqual([chain.length, findBreak(chain)], [2, null])
    },
  }
})

testRace('the same deletion asked for twice is one request', async (scene) => ({
  first: asking(scene),
  second: asking(scene),
  check: async (results) => {
    assert.equal(summaryOf(results).fulfilled, 2)
    assert.equal((await requestsOf(scene)).length, 1)
  },
}))

testRace(
  'an Idempotency-Key of two different deletions is refused to the second, by name',
  async (scene) => ({
    first: asking(scene, { signals: ['logs'] }, 'key'),
    second: asking(scene, { signals: ['traces'] }, 'key'),
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['InvalidInput'] }),
  }),
)

testRace('an organisation has no more open requests than it may have', async (scene) => {
  for (let i = 1; i < openOfPersonMax; i++) await requested(scene, rangeOf(i, 1))
  return {
    first: asking(scene, rangeOf(100, 1)),
    second: asking(scene, rangeOf(200, 1)),
    check: async (results) => {
      assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['too_many_requests'] })
      assert.equal((await requestsOf(scene)).length, openOfPersonMax)
    },
  }
})

testRace('requests of two organisations have two numbers', async (scene) => {
  const other = { ...scene, tenantId: `${scene.tenantId}-other` }
  return {
    first: asking(scene),
    second: asking(other),
    check: (results) => {
      const [one, two] = [resultOf<RequestRow>(results.first), resultOf<RequestRow>(results.second)]
      assert.ok(two.seq > one.seq, `${one.seq} and ${two.seq}`)
    },
  }
})

testRace(
  'two ranges that are short each need a second person where they are long together',
  async (scene) => {
    await new DeletionPolicies(scene.control, scene.clock).set(scene.tenantId, 'full_erasures', owner)
    return {
      first: asking(scene, rangeOf(100, 20)),
      second: asking(scene, rangeOf(60, 20)),
      check: async (results) => {
        assert.equal(summaryOf(results).fulfilled, 2)
        const states = (await requestsOf(scene)).map(({ status }) => status).sort()
        assert.deepEqual(states, ['awaiting_approval', 'running'])
      },
    }
  },
)

testRace('a looser rule waits a day, whatever stricter rule is set at once', async (scene) => {
  const set = (rule: 'none' | 'every_deletion') => (control: Control) =>
    new DeletionPolicies(control, scene.clock).set(scene.tenantId, rule, owner)
  return {
    first: set('every_deletion'),
    second: set('none'),
    check: async () => {
      const policy = await new DeletionPolicies(scene.control, scene.clock).get(scene.tenantId)
      assert.equal(policy.approval, 'every_deletion')
      assert.equal(policy.pending?.approval, 'none')
    },
  }
})

testStatementRace('of two decisions about a request one is made', async (scene) => {
  await new DeletionPolicies(scene.control, scene.clock).set(scene.tenantId, 'every_deletion', owner)
  const seen = await requested(scene)
  return {
    first: (control) => storeOf(control, scene).move(seen, 'approve', by),
    second: (control) => storeOf(control, scene).move(seen, 'cancel', by),
    check: async (results) => {
      assert.notEqual(resultOf(results.first), null)
      assert.equal(resultOf(results.second), null)
      assert.deepEqual(
        (await requestsOf(scene)).map(({ status }) => status),
        ['scheduled'],
      )
      assert.equal((await readChain(scene.control, 'ledger_entries', scene.tenantId)).length, 2)
    },
  }
})

testRace('a full erasure that begins and a deletion beside it exclude each other', async (scene) => {
  const seen = await requested(scene, { delayMinutes: 60 })
  return {
    first: (control) => storeOf(control, scene).move(seen, 'start', by),
    second: asking(scene, rangeOf(10, 1)),
    check: (results) =>
      assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['deletion_conflict'] }),
  }
})

/** A request whose only step is planned. */
async function withStep(scene: RaceScene) {
  const request = await requested(scene)
  const steps = (control: Control) => new StepStore(control)
  const plan = [{ store: 'otel_logs', partitionId: '0-20260105', rows: 1, bytes: 1 }]
  const [step] = await steps(scene.control).replan(request.requestId, plan, scene.clock.nowMs())
  assert.ok(step)
  return {
    begin: (control: Control) => steps(control).begin(request, new Map([[step, 1]]), []),
    place: (control: Control) =>
      new LegalHolds(control, scene.clock, findRelated).place(scene.tenantId, { case_ref: 'case' }, owner),
  }
}

testRace('a hold is refused while a step erases what it covers', async (scene) => {
  const { begin, place } = await withStep(scene)
  return {
    first: begin,
    second: place,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['erasing'] }),
  }
})

testRace('a step does not begin on what a hold covers', async (scene) => {
  const { begin, place } = await withStep(scene)
  return {
    first: place,
    second: begin,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['ErasureError'] }),
  }
})

testRace('a person has no more holds than one may have', async (scene) => {
  await sql`insert into legal_holds (hold_id, tenant_id, signals, case_ref, placed_at_ms, placed_by_kind, placed_by_id, placed_by_name)
    select ${scene.tenantId} || n, ${scene.tenantId}, '["logs"]', 'case', 0, 'token', 'test', 'test'
    from generate_series(2, ${activeHoldsOfPersonMax}::int) n`.execute(scene.control)
  const place = (control: Control) =>
    new LegalHolds(control, scene.clock, findRelated).place(scene.tenantId, { case_ref: 'case' }, owner)
  return {
    first: place,
    second: place,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['too_many_holds'] }),
  }
})

testRace('what two holds kept together is let go when both are released', async (scene) => {
  const standing: number[] = []
  const holds = (control: Control) =>
    new LegalHolds(control, scene.clock, findRelated, async (own, tenantId, readHolds) => {
      standing.push((await readHolds(own, tenantId)).length)
    })
  const place = () => holds(scene.control).place(scene.tenantId, { case_ref: 'case' }, owner)
  const [one, two] = [await place(), await place()]
  return {
    first: (control) => holds(control).release(scene.tenantId, one.hold_id, owner),
    second: (control) => holds(control).release(scene.tenantId, two.hold_id, owner),
    // Each reads them after its own commit, so the later one finds that none stands.
    check: () => assert.deepEqual([standing.length, Math.min(...standing)], [2, 0]),
  }
})

testRace('a shorter retention is approved once', async (scene) => {
  const store = (control: Control) => new RetentionStore(control, scene.clock, async () => () => false)
  await new DeletionPolicies(scene.control, scene.clock).set(scene.tenantId, 'every_deletion', owner)
  const { retention } = await store(scene.control).set(scene.tenantId, { logs_days: 7 }, owner)
  const id = retention.pending?.[0]?.id ?? assert.fail('nothing waits')
  const approve = (name: string) => (control: Control) =>
    store(control).approve(scene.tenantId, id, tokenNamed(name))
  return {
    first: approve('ada'),
    second: approve('ben'),
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['not_found'] }),
  }
})

testRace(
  'a retention that somebody shortens while a rule is set waits for a second person',
  async (scene) => {
    return {
      first: (control) =>
        new DeletionPolicies(control, scene.clock).set(scene.tenantId, 'every_deletion', owner),
      second: (control) =>
        new RetentionStore(control, scene.clock, findRelated).set(scene.tenantId, { logs_days: 7 }, owner),
      check: (results) => assert.equal(resultOf<{ waits: boolean }>(results.second).waits, true),
    }
  },
)

testRace('an erasure that begins while a rule is set waits for a second person', async (scene) => {
  const seen = await requested(scene)
  return {
    first: (control) =>
      new DeletionPolicies(control, scene.clock).set(scene.tenantId, 'every_deletion', owner),
    second: (control) => storeOf(control, scene).countAttempt(seen),
    check: async (results) => {
      assert.equal(resultOf(results.second), null)
      const [request] = await requestsOf(scene)
      assert.deepEqual([request?.status, request?.attempts], ['awaiting_approval', 0])
    },
  }
})

testRace('retention that begins while its limit is removed is withdrawn', async (scene) => {
  const rules = (control: Control) => new RetentionStore(control, scene.clock, findRelated)
  await rules(scene.control).set(scene.tenantId, { logs_days: 7 }, owner)
  const draft: DeletionDraft = { ...all, ...rangeOf(20, 10), signals: ['logs'] }
  const retention = { requester: retentionRequester, idempotencyKey: null }
  const { row } = await storeOf(scene.control, scene).create(scene.tenantId, draft, retention)
  return {
    first: (control) => rules(control).set(scene.tenantId, { logs_days: null }, owner),
    second: (control) => storeOf(control, scene).countAttempt(toStored(row)),
    check: async (results) => {
      assert.equal(resultOf(results.second), null)
      const [request] = await requestsOf(scene)
      assert.deepEqual([request?.status, request?.attempts], ['cancelled', 0])
    },
  }
})

/** The progress of a request of which nothing was found. */
const readBack = { ...noProgress, left_over: Object.fromEntries(tables.map(({ name }) => [name, 0])) }

/** A request that was verified just now, and its move to completed. */
async function verified(scene: RaceScene) {
  const seen = await requested(scene)
  const removed = await storeOf(scene.control, scene).move(seen, 'removed', by, { progress: noProgress })
  assert.ok(removed)
  const complete = (control: Control) =>
    storeOf(control, scene).move(
      removed,
      'verified',
      { ...by, facts: { verified_at: instantText(startMs) } },
      { verifiedAtMs: startMs, removedAtMs: startMs, progress: readBack, hasMark: true },
    )
  return { requestId: seen.requestId, complete }
}

testRace('a certificate is issued once', async (scene) => {
  const { complete, requestId } = await verified(scene)
  await complete(scene.control)
  const issue = async (control: Control) => {
    const store = new CertificateStore({
      control,
      clock: scene.clock,
      keys: new SigningKeys(scene.control, scene.clock, new KeySeal('a sealing key that only this test has')),
      derivedStores: [],
      notReached: async () => [],
      findBackups: async () => [],
      issuer: async () => ({
        instanceSha256: 'x',
        serviceVersion: '1',
        schemaVersion: '1',
        engineVersion: '1',
      }),
    })
    return (await store.issue(scene.tenantId, requestId, owner)).jws
  }
  return {
    first: issue,
    second: issue,
    check: (results) => assert.equal(resultOf(results.first), resultOf(results.second)),
  }
})

testRace('a backup that was taken before an erasure was completed is known to be', async (scene) => {
  const { complete, requestId } = await verified(scene)
  const taken: { id: string; erased: readonly string[] }[] = []
  return {
    first: complete,
    second: async (control) => {
      const register = new BackupRegister(control, scene.clock)
      const id = await register.request('backups', 30, operatorActor('test'))
      const erased = await register.completedErasures()
      await register.succeed(id, { takenAtMs: startMs, bytes: 1, erased })
      taken.push({ id, erased })
    },
    check: async () => {
      const [backup] = taken
      assert.ok(backup)
      if (backup.erased.includes(requestId)) return
      const before = (
        await new BackupRegister(scene.control, scene.clock).containing([requestId])
      ).fromBefore(requestId)
      assert.ok(
        before.some(({ backup_id }) => backup_id === backup.id),
        'it has the telemetry and counts as clean',
      )
    },
  }
})
