// What a legal hold keeps of anomalies, in a real control plane: neither a person nor a run removes what was
// recorded about held time, and the versions kept for a hold are removed with it.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { Role } from '../../../contract/role.ts'
import { operatorActor } from '../../core/actor.ts'
import { callerNamed, tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { TimeRange } from '../../core/time-range.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { LegalHolds } from '../../deletion/governance/holds.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import {
  acme,
  atNs,
  type ControlFixture,
  createErrorsDetector,
  eraseAnomalies,
  findingOf,
  globex,
  noonMs,
  openControl,
  removeDetectors,
  runRecordOf,
} from '../detection-fixture.ts'
import type { StoredDetector } from '../detectors/detector.ts'
import { patchDetector } from '../detectors/patch.ts'
import { DetectionStore } from '../detectors/store.ts'
import { countVersionsIn } from './anomaly-erasure.ts'
import type { Finding } from './findings.ts'
import { forgetReleasedVersions, versionsMaxOf } from './held-anomalies.ts'

let fixture: ControlFixture
let clock: ManualClock
let store: DetectionStore
let holds: LegalHolds

before(async () => {
  fixture = await openControl()
})
after(() => fixture.close())
beforeEach(async () => {
  const { control } = fixture
  await control.deleteFrom('legal_holds').execute()
  await removeDetectors(fixture)
  clock = new ManualClock(noonMs)
  store = new DetectionStore(control, clock, new TelemetryGate(), readActiveHolds)
  holds = new LegalHolds(control, clock, findRelated, forgetReleasedVersions)
})

const create = (place = acme) => createErrorsDetector(store, place)

const finding = (from: number, to: number, more: Partial<Finding> = {}) =>
  findingOf(atNs(from), atNs(to), { isOpen: true, expected: 0.01, ...more })

/** Stores a run of the detector as it is now. */
async function run({ tenantId, id }: StoredDetector, findings: readonly Finding[]): Promise<void> {
  const detector = await store.findDetector(tenantId, id)
  assert(detector !== null)
  const isRecorded = await store.recordRun(runRecordOf(detector, clock.nowMs(), findings))
  assert(isRecorded)
}

const place = (range_start?: bigint, range_end?: bigint, tenantId = 'acme') =>
  holds.place(
    tenantId,
    { case_ref: 'case 7', ...(range_start && { range_start }), ...(range_end && { range_end }) },
    operatorActor('legal'),
  )

const anomalies = (tenantId = 'acme') =>
  store.listAnomalies(tenantId, { limit: 50, filter: {}, before: null })

async function only() {
  const [anomaly, ...more] = await anomalies()
  assert(anomaly !== undefined && more.length === 0)
  return anomaly
}

const versions = async () => {
  const { id } = await only()
  return store.listVersions('acme', id)
}

const erase = async (range: TimeRange) => {
  const held = await readActiveHolds(fixture.control, 'acme')
  return (await eraseAnomalies(fixture, 'acme', { signals: ['traces'], range }, held)).inRange
}

function isHeld(error: unknown): boolean {
  return error instanceof AppError && error.code === 'held'
}

test('a detector whose anomalies a hold keeps cannot be deleted until the hold is released', async () => {
  const [own, other] = [await create(), await create(globex)]
  for (const detector of [own, other]) await run(detector, [finding(0, 10)])
  const hold = await place(atNs(5))
  const before = await anomalies()
  await assert.rejects(store.deleteDetector('acme', own.id, undefined, tokenNamed('me')), (error) => {
    assert.ok(error instanceof AppError && error.message.includes(hold.hold_id), String(error))
    return isHeld(error)
  })
  assert.deepEqual(await anomalies(), before)
  await store.deleteDetector('globex', other.id, undefined, tokenNamed('me'))
  assert.deepEqual(await anomalies('globex'), [], 'the hold of one organisation is none of another')
  await holds.release('acme', hold.hold_id, operatorActor('legal'))
  await store.deleteDetector('acme', own.id, undefined, tokenNamed('me'))
  assert.deepEqual(await anomalies(), [])
})

test('of very many anomalies of a detector one that a hold keeps is enough, and the hold is named', async () => {
  const own = await create()
  await run(
    own,
    Array.from({ length: 260 }, (_, i) => finding(i, i + 0.5, { isOpen: false })),
  )
  await place(atNs(-60), atNs(0))
  const hold = await place(atNs(259.2))
  await assert.rejects(store.deleteDetector('acme', own.id, undefined, tokenNamed('me')), (error) => {
    return isHeld(error) && String(error).includes(hold.hold_id)
  })
})

test('a detector with anomalies only outside the held time is deleted with them', async () => {
  const own = await create()
  await run(own, [finding(0, 10)])
  await place(atNs(10))
  await place(atNs(-60), atNs(0))
  await holds.place('acme', { case_ref: 'of logs', signals: ['logs'] }, operatorActor('legal'))
  await store.deleteDetector('acme', own.id, undefined, tokenNamed('me'))
  assert.deepEqual(await anomalies(), [])
})

test('no statement deletes an anomaly while a hold keeps it', async () => {
  await run(await create(), [finding(0, 10)])
  const hold = await place(atNs(9), atNs(20))
  await assert.rejects(fixture.control.deleteFrom('anomalies').execute(), /legal hold/)
  assert.equal((await anomalies()).length, 1)
  await holds.release('acme', hold.hold_id, operatorActor('legal'))
  await fixture.control.deleteFrom('anomalies').execute()
  assert.deepEqual(await anomalies(), [])
})

test('a verdict that replaces another leaves the first one readable until the hold is released', async () => {
  await run(await create(), [finding(0, 10)])
  const { id } = await only()
  await store.feedback.giveFeedback('acme', id, { verdict: 'real', note: 'the truth' }, callerNamed('ann'))
  const hold = await place()
  await store.feedback.giveFeedback(
    'acme',
    id,
    { verdict: 'not_an_anomaly', note: 'nothing' },
    callerNamed('bob'),
  )
  await store.feedback.giveFeedback('acme', id, { verdict: 'not_an_anomaly' }, callerNamed('cas'))
  assert.equal((await only()).feedback?.note, null)
  assert.deepEqual(
    (await versions()).map(({ anomaly, heldBy, replacedBy }) => [anomaly.feedback?.note, heldBy, replacedBy]),
    [
      ['the truth', [hold.hold_id], 'token:bob (tok_bob)'],
      ['nothing', [hold.hold_id], 'token:cas (tok_cas)'],
    ],
  )
  await holds.release('acme', hold.hold_id, operatorActor('legal'))
  assert.deepEqual(await versions(), [])
})

test('a version that is hidden while it is read is not returned, and a neighbour’s is', async () => {
  const gate = new TelemetryGate()
  const watching = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  const ids = new Map<string, string>()
  for (const { tenantId } of [acme, globex]) {
    await run(await create(tenantId === 'acme' ? acme : globex), [finding(0, 10)])
    const [anomaly] = await anomalies(tenantId)
    ids.set(tenantId, anomaly?.id ?? '')
    await place(undefined, undefined, tenantId)
    const giving = [tenantId, anomaly?.id ?? ''] as const
    await store.feedback.giveFeedback(...giving, { verdict: 'real' }, callerNamed('ann'))
  }
  const read = (tenantId: string) => watching.listVersions(tenantId, ids.get(tenantId) ?? '')
  assert.deepEqual([(await read('acme')).length, (await read('globex')).length], [1, 1])
  const [mine, theirs] = [read('acme'), read('globex')]
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: null } })
  assert.deepEqual([(await mine).length, (await theirs).length], [0, 1])
})

test('a run that updates a held anomaly keeps the version from when the hold was placed, once', async () => {
  const detector = await create()
  await run(detector, [finding(0, 10, { value: 0.5 })])
  const before = await only()
  await place()
  for (const value of [0.6, 0.7, 0.8]) await run(detector, [finding(0, 20, { value })])
  assert.equal((await only()).value, 0.8, 'the update is written')
  assert.deepEqual(
    (await versions()).map(({ anomaly }) => anomaly),
    [before],
  )
})

test('whatever a person changes, the earlier version of a held anomaly is kept', async () => {
  const detector = await create()
  await run(detector, [finding(0, 10, { value: 0.5 })])
  const said = [await only()]
  await place()
  const acts = [
    () =>
      patchDetector(
        store,
        { tenantId: 'acme', id: detector.id },
        { body: { window_minutes: 120 }, isMerge: false, ifMatch: undefined, actor: tokenNamed('me') },
      ),
    () => store.feedback.createMute('acme', { detector_id: detector.id, open_ended: true }, tokenNamed('me')),
    () => store.feedback.giveFeedback('acme', said[0]?.id ?? '', { verdict: 'real' }, callerNamed('me')),
  ]
  for (const [i, act] of acts.entries()) {
    await act()
    const current = await only()
    await run(detector, [finding(0, 10, { value: 0.6 + i / 10, isMuted: true })])
    said.push(current)
  }
  await run(detector, [])
  assert.equal((await only()).ended_at, (await only()).seen_until)
  const kept = (await versions()).map(({ anomaly }) => anomaly.value)
  assert.deepEqual(kept, [0.5, 0.6, 0.7], 'the version before each change is kept')
})

test('held time stays part of an anomaly, whatever a later run sees', async () => {
  const detector = await create()
  await run(detector, [finding(0, 30)])
  await place(atNs(20), atNs(25))
  await run(detector, [finding(0, 10, { isOpen: false })])
  const { ended_at, seen_until } = await only()
  assert.deepEqual([seen_until, ended_at], ['2026-09-11T12:30:00Z', '2026-09-11T12:10:00Z'])
  await erase({ startNs: null, endNs: atNs(20) })
  assert.equal((await anomalies()).length, 1, 'the hold still keeps it')
})

test('members cannot use up the versions that runs, owners and admins need of a held anomaly', async () => {
  const detector = await create()
  await run(detector, [finding(0, 10)])
  const { id } = await only()
  const hold = await place()
  const judge = (role: Role, note: string) =>
    store.feedback.giveFeedback('acme', id, { verdict: 'real', note }, callerNamed('me', role))
  for (let i = 0; i < versionsMaxOf.member; i++) await judge('member', `${i}`)
  await assert.rejects(judge('member', 'more'), isHeld)
  await run(detector, [finding(0, 10, { value: 0.8 })])
  assert.equal((await only()).value, 0.8, 'a run still updates it')
  for (const role of ['owner', 'admin'] as const) {
    await judge(role, `of the ${role}`)
    assert.equal((await only()).feedback?.note, `of the ${role}`)
  }
  for (let i = (await versions()).length; i < versionsMaxOf.run; i++) await judge('admin', `${i}`)
  const current = await only()
  await run(detector, [finding(0, 10, { value: 0.9 })])
  await run(detector, [])
  assert.deepEqual(await only(), current, 'a run does not change what has no version')
  for (let i = (await versions()).length; i < versionsMaxOf.administrator; i++) await judge('owner', `${i}`)
  const full = await only()
  await assert.rejects(judge('owner', 'more'), isHeld)
  assert.deepEqual([await only(), (await versions()).length], [full, 100])
  await holds.release('acme', hold.hold_id, operatorActor('legal'))
  await judge('member', 'again')
  assert.equal((await only()).feedback?.note, 'again')
})

test('an erasure keeps held anomalies with their versions, and removes both after the release', async () => {
  const detector = await create()
  await run(detector, [finding(0, 10)])
  const hold = await place(atNs(0), atNs(10))
  await run(detector, [finding(0, 10, { value: 0.9 })])
  const range = { startNs: null, endNs: atNs(60) }
  const count = async () =>
    countVersionsIn(
      fixture.control,
      'acme',
      { signals: ['traces'], range },
      await readActiveHolds(fixture.control, 'acme'),
    )
  assert.equal(await erase(range), 0)
  assert.deepEqual([(await anomalies()).length, (await versions()).length, await count()], [1, 1, 0])
  // An older release of the service, without versions, released a hold like this.
  await fixture.control
    .updateTable('legal_holds')
    .set({ released_at_ms: 1 })
    .where('hold_id', '=', hold.hold_id)
    .execute()
  assert.equal(await count(), 1, 'the read-back counts a version that is left')
  assert.equal(await erase(range), 1)
  assert.equal(await count(), 0)
  assert.deepEqual(await fixture.control.selectFrom('held_anomaly_versions').select('version').execute(), [])
})

/** Stores one version of an anomaly of both organisations, for a hold on everything. Returns the holds. */
async function keepForBoth() {
  const placed = []
  for (const at of [acme, globex]) {
    const detector = await create(at)
    await run(detector, [finding(0, 10)])
    placed.push({ detector, hold: await place(undefined, undefined, at.tenantId) })
    await run(detector, [finding(0, 10, { value: 0.9 })])
  }
  const [own, other] = placed
  assert(own !== undefined && other !== undefined)
  return { own, other }
}

/** The organisations of all versions that are stored. */
const keptOf = async () =>
  (await fixture.control.selectFrom('held_anomaly_versions').select('tenant_id').execute())
    .map(({ tenant_id }) => tenant_id)
    .toSorted()

test('a release whose removal of versions was interrupted removes them when it is repeated', async () => {
  const { own } = await keepForBoth()
  let isBroken = true
  const interrupted = new LegalHolds(fixture.control, clock, findRelated, async (...asked) => {
    if (isBroken) throw new Error('interrupted')
    await forgetReleasedVersions(...asked)
  })
  const release = () => interrupted.release('acme', own.hold.hold_id, operatorActor('legal'))
  await assert.rejects(release(), /interrupted/)
  assert.deepEqual(await keptOf(), ['acme', 'globex'])
  isBroken = false
  assert.notEqual((await release()).released_at, null)
  assert.deepEqual(await keptOf(), ['globex'])
})

test('a hold that is placed while versions are removed after a release keeps them', async () => {
  await keepForBoth()
  let reads = 0
  await forgetReleasedVersions(fixture.control, 'acme', async (control, tenantId) =>
    reads++ === 0 ? [] : readActiveHolds(control, tenantId),
  )
  assert.deepEqual([reads, await keptOf()], [2, ['acme', 'globex']])
})

test('a detector is deleted with versions of its anomalies that an interrupted release left', async () => {
  const { own } = await keepForBoth()
  await fixture.control.updateTable('legal_holds').set({ released_at_ms: 1 }).execute()
  assert.deepEqual(await keptOf(), ['acme', 'globex'])
  await store.deleteDetector('acme', own.detector.id, undefined, tokenNamed('me'))
  assert.deepEqual(await keptOf(), ['globex'])
})
