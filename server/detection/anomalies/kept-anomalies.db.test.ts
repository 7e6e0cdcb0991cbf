// The oldest anomalies of a detector leave once it has very many, in a real control plane. Open ones, those
// with a verdict and those under a legal hold stay, and so does everything of a neighbour.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { readChain } from '../../audit/log.ts'
import { operatorActor } from '../../core/actor.ts'
import { callerNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { LegalHolds } from '../../deletion/governance/holds.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import {
  atNs,
  type ControlFixture,
  createErrorsDetector,
  findingOf,
  globex,
  noonMs,
  openControl,
  removeDetectors,
  runRecordOf,
} from '../detection-fixture.ts'
import type { StoredDetector } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import type { Finding } from './findings.ts'
import { forgetReleasedVersions } from './held-anomalies.ts'
import { keptMax } from './kept-anomalies.ts'

let fixture: ControlFixture
let clock: ManualClock
let store: DetectionStore
let holds: LegalHolds

before(async () => {
  fixture = await openControl()
})
after(() => fixture.close())
beforeEach(async () => {
  await fixture.control.deleteFrom('legal_holds').execute()
  await removeDetectors(fixture)
  clock = new ManualClock(noonMs)
  store = new DetectionStore(fixture.control, clock, new TelemetryGate(), readActiveHolds)
  holds = new LegalHolds(fixture.control, clock, findRelated, forgetReleasedVersions)
})

/** An episode of half a minute, some minutes after noon. */
const finding = (minute: number, more: Partial<Finding> = {}) =>
  findingOf(atNs(minute), atNs(minute + 0.5), more)
const findings = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => finding(from + i))
/** Of another series. */
const open = finding(-1, { isOpen: true, groupKey: '{"service":"search"}' })

/** Stores a run of the detector, as it is now, that judged everything. */
async function run({ id, tenantId }: StoredDetector, found: readonly Finding[]): Promise<void> {
  const detector = await store.findDetector(tenantId, id)
  assert(detector !== null)
  const window = { startNs: atNs(-60), windowStartNs: atNs(-60), judgedUntilNs: null, isTruncated: false }
  assert(await store.recordRun(runRecordOf(detector, clock.nowMs(), found, { window })))
}

const all = (tenantId = 'acme') =>
  store.listAnomalies(tenantId, { limit: 2 * keptMax, filter: {}, before: null })

/** The starts of the oldest anomalies, as minutes after noon. */
const oldest = async (tenantId?: string) =>
  (await all(tenantId))
    .map(({ started_at }) => (Date.parse(started_at) - noonMs) / 60_000)
    .toReversed()
    .slice(0, 4)

test('a detector keeps its newest anomalies, and a run that finds more records no older one', async () => {
  const [own, other] = [await createErrorsDetector(store), await createErrorsDetector(store, globex)]
  // More than would leave at once.
  await run(own, findings(0, keptMax + 600))
  await run(other, findings(0, 5))
  assert.deepEqual([(await all()).length, await oldest()], [keptMax, [600, 601, 602, 603]])
  await run(own, [...findings(0, 600), finding(keptMax + 600)])
  assert.deepEqual([(await all()).length, await oldest()], [keptMax, [601, 602, 603, 604]])
  assert.deepEqual(await oldest('globex'), [0, 1, 2, 3], 'the same anomalies of a neighbour')
})

test('an anomaly that is open, was judged by a person, or is under a legal hold does not leave', async () => {
  const [own, sibling] = [await createErrorsDetector(store), await createErrorsDetector(store)]
  await run(sibling, [finding(0)])
  await run(own, [...findings(0, keptMax), open])
  assert.deepEqual(await oldest(), [-1, 0, 0, 1], 'an open one is above the number')
  const judged = (await all()).find(({ detector_id, started_at }) => {
    return detector_id === own.id && Date.parse(started_at) === noonMs
  })
  assert(judged !== undefined)
  await store.feedback.giveFeedback('acme', judged.id, { verdict: 'real' }, callerNamed('me'))
  const range = { range_start: atNs(1), range_end: atNs(1.1) }
  const hold = await holds.place('acme', { case_ref: 'case 7', ...range }, operatorActor('legal'))
  await run(own, [...findings(keptMax, keptMax + 2), open])
  assert.deepEqual(await oldest(), [-1, 0, 0, 1])
  assert.equal(
    (await all()).length,
    keptMax + 4,
    'three that stay are above the number, and the sibling has one',
  )
  await holds.release('acme', hold.hold_id, operatorActor('legal'))
  await run(own, [finding(keptMax + 2), open])
  assert.deepEqual(await oldest(), [-1, 0, 0, 3])
})

/** Inserts ended anomalies of a detector as an earlier version kept them, minutes after noon. */
async function insertOld({ id, tenantId }: StoredDetector, from: number, to: number): Promise<void> {
  const rows = Array.from({ length: to - from }, (_, i) => {
    const [startedNs, endedNs] = [String(atNs(from + i)), String(atNs(from + i + 0.5))]
    return {
      ...{ id: `ano_old_${from + i}`, tenant_id: tenantId, detector_id: id },
      ...{ group_key: '{"service":"checkout"}', metric_key: 'spans.error_ratio', signal: 'traces' },
      ...{ started_at_ns: startedNs, ended_at_ns: endedNs, seen_until_ns: endedNs, peak_at_ns: startedNs },
      ...{ value: 1, expected: 0, lower: 0, upper: 0, score: 3, reason: 'old' },
      ...{ read_from_ns: startedNs, created_at_ms: 1, updated_at_ms: 1 },
    }
  })
  for (let at = 0; at < rows.length; at += 500)
    await fixture.control
      .insertInto('anomalies')
      .values(rows.slice(at, at + 500))
      .execute()
}

test('a run looks at some anomalies beyond the number from either end, whatever a hold keeps between', async () => {
  const own = await createErrorsDetector(store)
  const beyond = 1600
  await insertOld(own, 0, keptMax + beyond)
  const hold = { case_ref: 'case 8', range_start: atNs(600), range_end: atNs(1550) }
  await holds.place('acme', hold, operatorActor('legal'))
  const counts: number[] = []
  const count = async () => {
    const { n } = await fixture.control
      .selectFrom('anomalies')
      .select((select) => select.fn.countAll<number>().as('n'))
      .where('detector_id', '=', own.id)
      .executeTakeFirstOrThrow()
    return Number(n)
  }
  for (let minute = keptMax + beyond; minute < keptMax + beyond + 3; minute++) {
    await run(own, [finding(minute)])
    counts.push(await count())
  }
  const chain = await readChain(fixture.control, 'audit_entries', 'acme')
  const noted = chain
    .map(({ text }) => JSON.parse(text))
    .flatMap(({ action, facts, target }) =>
      action === 'detector.anomalies_forgotten' && target === own.id ? [facts] : [],
    )
  assert.deepEqual(noted, [{ anomalies: 551 }, { anomalies: 101 }])
  // Of the newest 500 beyond, the hold keeps all but 51; the oldest 500 leave, then the last 100 of them.
  assert.deepEqual(counts, [keptMax + beyond - 500 - 51 + 1, keptMax + 950, keptMax + 950])
})
