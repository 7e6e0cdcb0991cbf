// Races outside deletion: organisations, tokens, sessions, signing keys, detectors, anomalies, feedback,
// leases and counts.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { sql } from 'kysely'
import { KeySeal } from '../../server/audit/key-seal.ts'
import { prepareSeal, reseal } from '../../server/audit/sealed-keys.ts'
import { SigningKeys } from '../../server/audit/signing.ts'
import type { Control } from '../../server/control/database.ts'
import { transact } from '../../server/control/transaction.ts'
import { operatorActor, tokenActor } from '../../server/core/actor.ts'
import { tokenNamed } from '../../server/core/actor-fixture.ts'
import type { Caller } from '../../server/core/caller.ts'
import { readActiveHolds } from '../../server/deletion/governance/active-holds.ts'
import { LegalHolds } from '../../server/deletion/governance/holds.ts'
import { DerivedAnomalies } from '../../server/detection/anomalies/derived-anomalies.ts'
import {
  atNs,
  definitionOf,
  errorsDraft,
  findingOf,
  runRecordOf,
} from '../../server/detection/detection-fixture.ts'
import { DetectionStore } from '../../server/detection/detectors/store.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { findRelated } from '../../server/tenancy/lineage.ts'
import { SessionStore } from '../../server/tenancy/sessions.ts'
import { TenancyStore } from '../../server/tenancy/store.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { activeTokensMax } from '../../server/tenancy/token-share.ts'
import { QuotaStore } from '../../server/usage/quota-store.ts'
import { Leases } from '../../server/worker/lease.ts'
import { temporaryFolder } from '../fixtures.ts'
import { type RaceScene, resultOf, startMs, summaryOf, testRace, testStatementRace } from './race.ts'

const operator = operatorActor('test')
const owner = tokenNamed('owner')
const folder = temporaryFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

const tenancyOf = (control: Control, { clock }: RaceScene) => new TenancyStore(control, clock)

const creating =
  (scene: RaceScene, tenantId: string) =>
  async (control: Control): Promise<number> => {
    const named = { tenantId, name: tenantId, actor: operator }
    return (await tenancyOf(control, scene).createOrganisation(named, async () => {})).placement
  }

testRace('two new organisations share no placement while one is free', async (scene) => {
  await sql`delete from organisations where tenant_id like 'placed-%'`.execute(scene.control)
  return {
    first: creating(scene, `placed-a-${scene.tenantId}`),
    second: creating(scene, `placed-b-${scene.tenantId}`),
    check: (results) => assert.notEqual(resultOf(results.first), resultOf(results.second)),
  }
})

testRace('an organisation that is created twice is refused by name', async (scene) => {
  const create = creating(scene, `twice-${scene.tenantId}`)
  return {
    first: create,
    second: create,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['name_taken'] }),
  }
})

const making =
  (scene: RaceScene, more: { tenantId?: string; secret?: string; actor?: typeof owner } = {}) =>
  (control: Control) =>
    tenancyOf(control, scene).createToken({
      tenantId: scene.tenantId,
      name: 'x',
      role: 'admin',
      secret: newTokenSecret('admin'),
      expiresAtMs: null,
      actor: operator,
      ...more,
    })

testStatementRace('a secret belongs to one token, also of two organisations', async (scene) => {
  const other = `${scene.tenantId}-other`
  await scene.control
    .insertInto('organisations')
    .values({ tenant_id: other, name: other, placement: 0, created_at_ms: 0 })
    .execute()
  const secret = newTokenSecret('admin')
  return {
    first: making(scene, { secret }),
    second: making(scene, { secret, tenantId: other }),
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['name_taken'] }),
  }
})

testRace('an organisation has no more tokens than it may have', async (scene) => {
  const { id } = await making(scene)(scene.control)
  await sql`insert into access_tokens (id, tenant_id, name, role, prefix, secret_hash, created_at_ms, created_by_kind, created_by_id, created_by_name, made_with, root_id)
    select 'tok_' || ${scene.tenantId} || n, ${scene.tenantId}, 'x', 'viewer', '', ${scene.tenantId} || n, 0, 'token', ${id}, 'x', ${id}, ${id}
    from generate_series(3, ${activeTokensMax}::int) n`.execute(scene.control)
  const make = making(scene, { actor: tokenActor(id, 'x') })
  return {
    first: make,
    second: make,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['too_many_tokens'] }),
  }
})

testRace('no token is made with one that is being revoked', async (scene) => {
  const { id } = await making(scene)(scene.control)
  const revocation = {
    ...{ tenantId: scene.tenantId, id, actor: operator, actorRole: 'owner' as const },
    ...{ withDescendants: true, onAdministratorRevoked: async () => {} },
  } as const
  return {
    first: (control) => tenancyOf(control, scene).revokeToken(revocation),
    second: making(scene, { actor: tokenActor(id, 'x') }),
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['token_revoked'] }),
  }
})

/** A caller whose token exists. */
async function callerOf(scene: RaceScene): Promise<Caller> {
  const secret = newTokenSecret('admin')
  await making(scene, { secret })(scene.control)
  return (await tenancyOf(scene.control, scene).findCaller(secret)) ?? assert.fail('the token is not known')
}

testRace('a token has no more sessions than it may have', async (scene) => {
  const caller = await callerOf(scene)
  const signIn = (control: Control) => new SessionStore(control, scene.clock).create(caller)
  for (let i = 0; i < 20; i++) await signIn(scene.control)
  return {
    first: signIn,
    second: signIn,
    check: async (results) => {
      assert.equal(summaryOf(results).fulfilled, 2)
      const { sessions } = await scene.control
        .selectFrom('sessions')
        .select(({ fn }) => fn.countAll<number>().as('sessions'))
        .where('tenant_id', '=', scene.tenantId)
        .executeTakeFirstOrThrow()
      assert.equal(Number(sessions), 20)
    },
  }
})

testStatementRace('a sign-in code is used once', async (scene) => {
  const caller = await callerOf(scene)
  const sessions = new SessionStore(scene.control, scene.clock)
  const byCode = await sessions.findCallerOfCode(await sessions.createCode(caller, operator))
  assert.ok(byCode)
  const signIn = (control: Control) => new SessionStore(control, scene.clock).create(byCode)
  return {
    first: signIn,
    second: signIn,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['token_unknown'] }),
  }
})

const seal = new KeySeal('a sealing key that only this test has')
const keysOf = (control: Control, { clock }: RaceScene) => new SigningKeys(control, clock, seal)
const signingKeys = ({ control }: RaceScene) => control.selectFrom('signing_keys').selectAll().execute()

testRace('the first two signatures make one key', async (scene) => {
  await scene.control.deleteFrom('signing_keys').execute()
  return {
    first: (control) => keysOf(control, scene).jwks(),
    second: (control) => keysOf(control, scene).jwks(),
    check: async () => assert.equal((await signingKeys(scene)).length, 1),
  }
})

testRace('one key signs after two rotations', async (scene) => {
  await scene.control.deleteFrom('signing_keys').execute()
  await keysOf(scene.control, scene).jwks()
  return {
    first: (control) => keysOf(control, scene).rotate(operator),
    second: (control) => keysOf(control, scene).rotate(operator),
    check: async () => {
      const current = (await signingKeys(scene)).filter(({ retired_at_ms }) => retired_at_ms === null)
      assert.equal(current.length, 1)
    },
  }
})

testRace('a key that is retired while keys are sealed again keeps no private half', async (scene) => {
  await scene.control.deleteFrom('signing_keys').execute()
  const sourceOf = (name: string) => ({ secret: null, file: join(folder, `${scene.tenantId}-${name}`) })
  const before = await prepareSeal(scene.control, sourceOf('before'))
  const keys = (control: Control) => new SigningKeys(control, scene.clock, before)
  await keys(scene.control).jwks()
  return {
    first: (control) => keys(control).rotate(operator),
    second: (control) => reseal(control, sourceOf('before'), sourceOf('after')),
    check: async () => {
      const retired = (await signingKeys(scene)).filter(({ retired_at_ms }) => retired_at_ms !== null)
      assert.deepEqual(
        retired.map(({ private_jwk }) => private_jwk),
        [''],
      )
    },
  }
})

const detectionOf = (control: Control, { clock }: RaceScene) =>
  new DetectionStore(control, clock, new TelemetryGate(), readActiveHolds)
const definition = definitionOf(errorsDraft)
const detecting = (scene: RaceScene) => (control: Control) =>
  detectionOf(control, scene).createDetector(scene.tenantId, definition, owner)

testRace('an organisation has no more detectors than it may have', async (scene) => {
  const { id } = await detecting(scene)(scene.control)
  await sql`insert into detectors (id, tenant_id, name, metric_key, method_key, params, scope, window_minutes, schedule_minutes, enabled, is_system, next_run_at_ms, created_at_ms, revision)
    select id || n, tenant_id, name, metric_key, method_key, params, scope, window_minutes, schedule_minutes, enabled, is_system, next_run_at_ms, created_at_ms, revision
    from detectors, generate_series(3, 1000) n where id = ${id}`.execute(scene.control)
  return {
    first: detecting(scene),
    second: detecting(scene),
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['InvalidInput'] }),
  }
})

testStatementRace('of two changes of a detector the second finds that it has changed', async (scene) => {
  const detector = await detecting(scene)(scene.control)
  const rename = (name: string) => (control: Control) =>
    detectionOf(control, scene).changeDetector(
      { before: detector, after: { ...detector.definition, name }, refused: [] },
      undefined,
      owner,
    )
  return {
    first: rename('one'),
    second: rename('two'),
    check: async (results) => {
      assert.equal(resultOf(results.second), null)
      const now = await detectionOf(scene.control, scene).findDetector(scene.tenantId, detector.id)
      assert.deepEqual([now?.definition.name, now?.revision], ['one', 2])
    },
  }
})

testRace('an organisation has no more mutes than it may have', async (scene) => {
  await sql`insert into detector_mutes (id, tenant_id, created_at_ms, created_by_kind, created_by_id, created_by_name)
    select 'mut_' || ${scene.tenantId} || n, ${scene.tenantId}, 0, 'operator', 'test', 'test'
    from generate_series(2, 200) n`.execute(scene.control)
  const mute = (control: Control) =>
    detectionOf(control, scene).feedback.createMute(scene.tenantId, {}, owner)
  return {
    first: mute,
    second: mute,
    check: (results) => assert.deepEqual(summaryOf(results), { fulfilled: 1, refused: ['InvalidInput'] }),
  }
})

/** A detector with one anomaly. */
async function withAnomaly(scene: RaceScene) {
  const detector = await detecting(scene)(scene.control)
  const store = detectionOf(scene.control, scene)
  assert.ok(await store.recordRun(runRecordOf(detector, startMs, [findingOf(atNs(0), atNs(10))])))
  const [anomaly] = await store.listAnomalies(scene.tenantId, { limit: 1, filter: {}, before: null })
  assert.ok(anomaly)
  return { detector, anomalyId: anomaly.id }
}

const judging = (scene: RaceScene, anomalyId: string) => (control: Control) =>
  detectionOf(control, scene).feedback.giveFeedback(
    scene.tenantId,
    anomalyId,
    { verdict: 'not_an_anomaly' },
    { requester: owner, role: 'owner' },
  )

testRace('each of two verdicts on a held anomaly keeps a version of it', async (scene) => {
  const { anomalyId } = await withAnomaly(scene)
  await new LegalHolds(scene.control, scene.clock, findRelated).place(
    scene.tenantId,
    { case_ref: 'case' },
    operator,
  )
  const judge = judging(scene, anomalyId)
  return {
    first: judge,
    second: judge,
    check: async (results) => {
      assert.deepEqual(summaryOf(results), { fulfilled: 2, refused: [] })
      const versions = await detectionOf(scene.control, scene).listVersions(scene.tenantId, anomalyId)
      assert.deepEqual(
        versions.map(({ version }) => version),
        [1, 2],
      )
    },
  }
})

testRace('a verdict on an anomaly while a hold is placed keeps a version of it', async (scene) => {
  const { anomalyId } = await withAnomaly(scene)
  return {
    first: (control) =>
      new LegalHolds(control, scene.clock, findRelated).place(scene.tenantId, { case_ref: 'case' }, operator),
    second: judging(scene, anomalyId),
    check: async () => {
      const versions = await detectionOf(scene.control, scene).listVersions(scene.tenantId, anomalyId)
      assert.equal(versions.length, 1)
    },
  }
})

testStatementRace('a run that used feedback from before a verdict is not recorded', async (scene) => {
  const { anomalyId, detector } = await withAnomaly(scene)
  const [tuning] = await detectionOf(scene.control, scene).feedback.tuningsOf([detector])
  assert.ok(tuning)
  return {
    first: judging(scene, anomalyId),
    second: (control) =>
      detectionOf(control, scene).recordRun({ ...runRecordOf(detector, startMs, []), tuning }),
    check: (results) => assert.equal(resultOf(results.second), false),
  }
})

testRace('an erasure finds what a run records at once', async (scene) => {
  const detector = await detecting(scene)(scene.control)
  const erasure = { signals: ['traces'] as const, range: { startNs: null, endNs: null } }
  return {
    first: (control) =>
      detectionOf(control, scene).recordRun(runRecordOf(detector, startMs, [findingOf(atNs(0), atNs(10))])),
    second: (control) =>
      new DerivedAnomalies(control, readActiveHolds).remove(scene.tenantId, erasure, (work) => work()),
    check: async (results) => {
      assert.equal(resultOf(results.first), true)
      assert.equal(resultOf(results.second), 1)
      const left = await new DerivedAnomalies(scene.control, readActiveHolds).count(
        scene.tenantId,
        erasure,
        [],
      )
      assert.equal(left, 0)
    },
  }
})

testStatementRace('of two processes one has a lease', async (scene) => ({
  first: (control) =>
    transact(control, (trx) => new Leases(trx, scene.clock, 'one').take(scene.tenantId, 1000)),
  second: (control) => new Leases(control, scene.clock, 'two').take(scene.tenantId, 1000),
  check: (results) => assert.deepEqual([resultOf(results.first), resultOf(results.second)], [true, false]),
}))

testStatementRace('two processes that count what was sent lose nothing, in whatever order', async (scene) => {
  const other = `${scene.tenantId}-other`
  await scene.control
    .insertInto('organisations')
    .values({ tenant_id: other, name: other, placement: 0, created_at_ms: 0 })
    .execute()
  const storeOf = (control: Control) =>
    new QuotaStore(control, scene.clock, { rowsPerSecond: null, bytesPerDay: null })
  const counts = { day: '2026-01-05', bytes: 1, rowsAccepted: 2, rowsRejected: 3, requestsRefused: 4 }
  const add = (tenants: readonly string[]) => (control: Control) => {
    const store = storeOf(control)
    return store.add(store.batchOf(tenants.map((tenantId) => ({ tenantId, ...counts }))))
  }
  return {
    first: add([scene.tenantId, other]),
    second: add([other, scene.tenantId]),
    check: async (results) => {
      assert.equal(summaryOf(results).fulfilled, 2)
      const store = storeOf(scene.control)
      for (const tenantId of [scene.tenantId, other]) {
        assert.deepEqual(await store.countsOf(tenantId, counts.day), {
          bytes: 2,
          rowsAccepted: 4,
          rowsRejected: 6,
          requestsRefused: 8,
        })
      }
    },
  }
})
