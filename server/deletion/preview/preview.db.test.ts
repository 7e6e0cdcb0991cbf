// Previews on real stores. Two organisations share a placement and have the same rows, so a leak from one
// into the preview of the other shows as a count that is too high or a foreign name.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { DeletionPreview } from '../../../contract/deletion/requests.ts'
import { openStores, type Stores, watchedEngine } from '../../../tests/fixtures.ts'
import { derivedStores } from '../../app/derived-stores.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError, InvalidInput } from '../../core/app-error.ts'
import { systemClock } from '../../core/clock.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { atNs, createErrorsDetector, findingOf, runRecordOf } from '../../detection/detection-fixture.ts'
import { DetectionStore } from '../../detection/detectors/store.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { insertFixture } from '../../telemetry/row-fixture.ts'
import { weighRows } from '../../telemetry/row-weights.ts'
import { type TableName, tables } from '../../telemetry/schema/tables.ts'
import { raw } from '../../telemetry/sql.ts'
import { between as draftBetween, monday, sceneOf, weekNs } from '../deletion-fixture.ts'
import { readActiveHolds } from '../governance/active-holds.ts'
import type { KnownBackup } from '../requests/request.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { Previews, type PreviewsDeps } from './preview.ts'

const nowMs = Date.UTC(2026, 1, 1)
const secondNs = 1_000_000_000n
const own = { tenantId: 'own', placement: 60, requester: tokenNamed('owner') }
const neighbour = { tenantId: 'neighbour', placement: 60, requester: tokenNamed('owner') }
const signals = ['metrics', 'logs', 'traces'] as const
const all: DeletionSelection = { scope: 'all', signals, range: { startNs: null, endNs: null } }
const between = (startNs: bigint | null, endNs: bigint): DeletionSelection => ({
  ...all,
  scope: 'range',
  range: { startNs, endNs },
})
/** All rows of the first tests are before this. */
const untilSecondWeek = between(null, monday + weekNs)

let stores: Stores
let clock: ManualClock
let gate: TelemetryGate

before(async () => {
  stores = await openStores()
})
after(() => stores.close())
beforeEach(async () => {
  for (const { name } of tables) await stores.engine.command(raw(`TRUNCATE TABLE ${name}`))
  await stores.control.deleteFrom('deletion_previews').execute()
  clock = new ManualClock(nowMs)
  gate = new TelemetryGate()
})

class CreatedPreviews extends Previews {
  async create(...asked: Parameters<Previews['answer']>) {
    return (await this.answer(...asked)).body
  }
}

function previewsWith(more: Partial<PreviewsDeps> = {}): CreatedPreviews {
  return new CreatedPreviews({
    engine: stores.engine,
    control: stores.control,
    gate,
    clock,
    weighRows: ({ place }) => weighRows(stores.engine, place, true),
    derivedStores: derivedStores(stores.control),
    activeHolds: async () => [],
    knownBackups: async () => [],
    approvalCause: async () => null,
    ...more,
  })
}

const timeOf = (table: TableName) => (table.startsWith('otel_metrics') ? 'TimeUnix' : 'Timestamp')

/** A number of rows, a second apart, from an instant on. */
async function insert(
  place: TenantPlace,
  table: TableName,
  startNs: bigint,
  count: number,
  service = 'shop',
): Promise<void> {
  const rows = Array.from({ length: count }, (_, i) => ({
    [timeOf(table)]: startNs + BigInt(i) * secondNs,
    ServiceName: service,
  }))
  await insertFixture(stores.engine, place, table, rows)
}

async function insertForBoth(table: TableName, startNs: bigint, count: number): Promise<void> {
  for (const place of [own, neighbour])
    await insert(place, table, startNs, count, `shop of ${place.tenantId}`)
}

const derivedStoreOfNothing: DerivedStore = {
  name: 'nothing',
  tables: [],
  preview: async () => ({}),
  remove: async () => 0,
  count: async () => 0,
  keepers: async () => new Set(),
}

/** Ids at rest, oldest first. */
const stored = () =>
  stores.control.selectFrom('deletion_previews').selectAll().orderBy('preview_id').execute()

/** The new preview in a refusal. */
async function stalePreview(refused: Promise<void>): Promise<DeletionPreview> {
  const error = await refused.then(
    () => assert.fail('The preview was still valid.'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof AppError, String(error))
  assert.equal(error.code, 'preview_stale')
  return DeletionPreview.parse(error.facts.preview)
}

test('a preview counts the rows of its own organisation in the range by signal, and names its services', async () => {
  await insertForBoth('otel_logs', monday, 30)
  await insertForBoth('otel_metrics_gauge', monday, 5)
  await insertForBoth('otel_metrics_sum', monday + 10n * secondNs, 7)
  await insertForBoth('otel_logs', monday + weekNs, 4)
  const preview = await previewsWith().create(own, untilSecondWeek)
  assert.deepEqual(DeletionPreview.parse(preview), preview)
  const { id, preview_id, bytes, signals: perSignal, work, ...rest } = preview
  assert.match(id, /^prv_[0-9a-z]{26}$/)
  assert.equal(preview_id, id)
  assert.deepEqual(rest, {
    created_at: '2026-02-01T00:00:00.000Z',
    expires_at: '2026-02-01T00:15:00.000Z',
    scope: 'range',
    range_start: null,
    range_end: '2026-01-12T00:00:00Z',
    rows: 42,
    derived: { anomalies: 0, anomalies_learned_from: 0 },
    held: [],
    backups: [],
    backups_clear_by: null,
    needs_approval: false,
    warnings: [],
    tolerance_rows: 1000,
  })
  const services = ['shop of own']
  assert.deepEqual(
    perSignal.map(({ bytes: _, ...count }) => count),
    [
      {
        signal: 'metrics',
        rows: 12,
        first: '2026-01-05T00:00:00Z',
        last: '2026-01-05T00:00:16Z',
        services,
        services_total: 1,
      },
      {
        signal: 'logs',
        rows: 30,
        first: '2026-01-05T00:00:00Z',
        last: '2026-01-05T00:00:29Z',
        services,
        services_total: 1,
      },
      { signal: 'traces', rows: 0, first: null, last: null, services: [], services_total: 0 },
    ],
  )
  assert.ok(bytes > 0)
  assert.equal(
    bytes,
    perSignal.reduce((sum, signal) => sum + signal.bytes, 0),
  )
  assert.deepEqual(
    [work.partitions_dropped, work.partitions_rewritten],
    [3, 0],
    'the organisation has no rows left in them, and the neighbour’s rows are not revealed',
  )
  assert.equal((await previewsWith().create(neighbour, all)).rows, 46)
})

test('a preview cuts very long names of services, and counts them whole', async () => {
  for (const last of ['a', 'b', 'c'])
    await insert(own, 'otel_logs', monday, 2, `${'ß'.repeat(32_000)}${last}`)
  const { signals: perSignal } = await previewsWith().create(own, all)
  const logs = perSignal.find(({ signal }) => signal === 'logs')
  assert.deepEqual(
    [logs?.services_total, logs?.services.map((name) => [name.length, name.at(-1)])],
    [3, Array.from({ length: 3 }, () => [1_025, '…'])],
  )
})

test('a preview of some signals contains nothing of the others', async () => {
  await insertForBoth('otel_logs', monday, 3)
  await insertForBoth('otel_traces', monday, 4)
  const preview = await previewsWith().create(own, { ...all, signals: ['traces'] })
  assert.deepEqual(
    preview.signals.map(({ signal, rows }) => [signal, rows]),
    [['traces', 4]],
  )
  assert.equal(preview.rows, 4)
})

test('bounds are exact, and an empty selection has no rows', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const previews = previewsWith()
  assert.equal((await previews.create(own, between(monday + secondNs, monday + 3n * secondNs))).rows, 2)
  assert.equal((await previews.create(own, between(monday, monday + 1n))).rows, 1)
  const nothing = await previews.create(own, between(null, monday))
  assert.deepEqual(
    [nothing.rows, nothing.bytes, nothing.work],
    [0, 0, { partitions_dropped: 0, partitions_rewritten: 0, bytes_rewritten: 0 }],
  )
})

test('what another deletion has hidden is neither counted nor named, nor part of the estimated work', async () => {
  await insert(own, 'otel_logs', monday, 10, 'secret project')
  await insert(own, 'otel_logs', monday + weekNs, 5)
  const before = await previewsWith().create(own, all)
  assert.deepEqual([before.rows, before.work.partitions_dropped], [15, 2])
  assert.ok(JSON.stringify(before).includes('secret project'))
  gate.hide('own', { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: monday + weekNs } })
  const preview = await previewsWith().create(own, all)
  assert.deepEqual([preview.rows, preview.work.partitions_dropped], [5, 1])
  assert.ok(!JSON.stringify(preview).includes('secret project'))
  assert.equal(preview.signals[1]?.first, '2026-01-12T00:00:00Z')
})

test('what another deletion hides during a preview is neither counted nor named', async () => {
  for (const place of [own, neighbour]) {
    await insert(place, 'otel_logs', monday, 10, 'secret project')
    await insert(place, 'otel_logs', monday + weekNs, 5)
  }
  const hidden = { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: monday + weekNs } } as const
  const before = await previewsWith().create(own, all)
  assert.deepEqual([before.rows, before.signals[1]?.services], [15, ['secret project', 'shop']])
  let isNamed = false
  const engine = watchedEngine(stores.engine, (statement) => {
    if (statement.includes('AS services') && !isNamed) gate.hide('own', hidden)
    isNamed ||= statement.includes('AS services')
  })
  const counted = await previewsWith({ engine }).create(own, all)
  assert.deepEqual([counted.rows, counted.signals[1]?.services], [5, ['shop']])

  gate.unhide('own', 'del_1')
  const late: DerivedStore = {
    ...derivedStoreOfNothing,
    preview: async () => {
      gate.hide('own', hidden)
      late.preview = async () => ({})
      return {}
    },
  }
  const answered = await previewsWith({ derivedStores: [late] }).create(own, all)
  assert.deepEqual([answered.rows, answered.signals[1]?.services], [5, ['shop']])
  assert.equal((await previewsWith().create(neighbour, all)).rows, 15)
})

test('a stale preview says nothing of what another deletion hides during the comparison', async () => {
  await insertForBoth('otel_logs', monday, 5000)
  const { preview_id } = await previewsWith().create(own, all)
  await insertForBoth('otel_logs', monday + weekNs, 2000)
  const hidden = { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: monday + weekNs } } as const
  const late: DerivedStore = {
    ...derivedStoreOfNothing,
    preview: async () => {
      if (gate.hidden('own').length === 0) gate.hide('own', hidden)
      return {}
    },
  }
  const previews = previewsWith({ derivedStores: [late] })
  await assert.rejects(previews.check(own, preview_id, all), /has 2000 now/)
})

test('a preview counts the anomalies that can be seen, and nothing of those that another deletion hides', async () => {
  await insertForBoth('otel_traces', atNs(0), 5)
  const store = new DetectionStore(stores.control, clock, gate, readActiveHolds)
  for (const place of [own, neighbour]) {
    const { placement, tenantId } = place
    const organisation = { tenant_id: tenantId, name: tenantId, placement, created_at_ms: 0 }
    await stores.control.insertInto('organisations').values(organisation).execute()
    const detector = await createErrorsDetector(store, place)
    const findings = [findingOf(atNs(0), atNs(5)), findingOf(atNs(20), atNs(25))]
    assert.ok(await store.recordRun(runRecordOf(detector, nowMs, findings)))
  }
  const listed = async () =>
    (await store.listAnomalies('own', { limit: 9, filter: {}, before: null })).map(({ reason }) => reason)
  const part = (from: number | null, to: number) => between(from === null ? null : atNs(from), atNs(to))
  const previews = previewsWith()
  const derivedOf = async (selection: DeletionSelection, asker = own) => {
    const { derived } = await previews.create(asker, selection)
    return [derived.anomalies, derived.anomalies_learned_from]
  }
  const [past, both, later] = [part(null, -10), all, part(10, 30)]
  assert.deepEqual(await Promise.all([past, both, later].map((one) => derivedOf(one))), [
    [0, 2],
    [2, 0],
    [1, 0],
  ])
  const { preview_id } = await previews.create(own, all)
  gate.hide('own', { id: 'del_1', ...part(0, 1) })
  const [left = '', ...others] = await listed()
  assert.deepEqual(others, [])
  assert.match(left, /expected band was computed from telemetry that has since been erased/)
  assert.deepEqual(await Promise.all([past, both, later].map((one) => derivedOf(one))), [
    [0, 0],
    [1, 0],
    [1, 0],
  ])
  await clock.advance(15 * 60_000)
  const stale = await stalePreview(previews.check(own, preview_id, all))
  assert.deepEqual(stale.derived, { anomalies: 1, anomalies_learned_from: 0 })
  assert.deepEqual(await derivedOf(all, neighbour), [2, 0])
  gate.unhide('own', 'del_1')
  assert.deepEqual(await derivedOf(all), [2, 0], 'the deletion was cancelled')
  for (const table of ['anomalies', 'detectors', 'organisations'] as const)
    await stores.control.deleteFrom(table).execute()
})

test('the hundred busiest services are named over all tables of a signal, and all are counted', async () => {
  const rows = Array.from({ length: 130 }, (_, i) => ({
    TimeUnix: monday,
    ServiceName: `s${String(i).padStart(3, '0')}`,
  }))
  await insertFixture(stores.engine, own, 'otel_metrics_gauge', rows)
  await insert(own, 'otel_metrics_sum', monday, 2, 's129')
  await insert(neighbour, 'otel_metrics_sum', monday, 9, 'theirs')
  const [metrics] = (await previewsWith().create(own, all)).signals
  assert.equal(metrics?.services_total, 130)
  assert.equal(metrics?.services.length, 100)
  assert.deepEqual(metrics?.services.slice(0, 3), ['s129', 's000', 's001'])
})

test('derived anomalies, overlapping holds, backups and the need of a second person are included', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const hold = (holdId: string, signal: 'logs' | 'traces', startNs: bigint): ActiveHold => ({
    holdId,
    signals: [signal],
    range: { startNs, endNs: null },
  })
  const backups: KnownBackup[] = [
    { backup_id: 'bak_2', taken_at_ms: null, expires_at_ms: nowMs + 9000 },
    { backup_id: 'bak_1', taken_at_ms: nowMs - 5000, expires_at_ms: nowMs + 5000 },
  ]
  const asked: unknown[] = []
  const previews = previewsWith({
    derivedStores: [
      {
        ...derivedStoreOfNothing,
        async preview(tenantId, selection) {
          asked.push([tenantId, selection])
          return { anomalies: 3, anomalies_learned_from: 2 }
        },
      },
    ],
    activeHolds: async (tenantId) =>
      tenantId === 'own'
        ? [
            hold('hld_1', 'logs', monday + 4n * secondNs),
            hold('hld_2', 'logs', monday + weekNs),
            hold('hld_3', 'traces', monday),
          ]
        : [],
    knownBackups: async () => backups,
    approvalCause: async ({ tenantId }, { scope }) =>
      tenantId === 'own' && scope === 'range' ? 'ranges_together' : null,
  })
  const selection = { ...untilSecondWeek, signals: ['logs'] as const }
  const preview = await previews.create(own, selection)
  assert.deepEqual(preview.derived, { anomalies: 3, anomalies_learned_from: 2 })
  assert.deepEqual(asked, [['own', selection]])
  assert.deepEqual(preview.held, [
    { hold_id: 'hld_1', signals: ['logs'], range_start: '2026-01-05T00:00:04Z', range_end: null },
  ])
  assert.equal(preview.rows, 10, 'held rows are erased in the end, so they count')
  assert.deepEqual(preview.backups, [
    {
      backup_id: 'bak_1',
      taken_at: '2026-01-31T23:59:55.000Z',
      expires_at: '2026-02-01T00:00:05.000Z',
    },
  ])
  assert.equal(
    preview.backups_clear_by,
    '2026-02-01T00:00:09.000Z',
    'a backup in progress may have a copy too',
  )
  assert.equal(preview.needs_approval, true)
  const other = await previews.create(neighbour, selection)
  assert.deepEqual([other.held, other.needs_approval], [[], false])
})

test('the estimate of work leaves out what a legal hold defers', async () => {
  await insert(own, 'otel_logs', monday, 10)
  await insert(own, 'otel_logs', monday + weekNs, 5)
  const held: ActiveHold = {
    holdId: 'hld_1',
    signals: ['logs'],
    range: { startNs: monday + weekNs + secondNs, endNs: null },
  }
  const { rows, work } = await previewsWith({ activeHolds: async () => [held] }).create(own, all)
  assert.deepEqual([rows, work.partitions_dropped, work.partitions_rewritten], [15, 1, 1])
})

test('the previewed rows are erased, with the estimated work', async () => {
  for (const isShared of [false, true]) {
    const scene = await sceneOf(stores, { isShared })
    const asker = { ...scene.own, requester: tokenNamed('owner') }
    const previews = previewsWith({
      gate: scene.gate,
      clock: systemClock,
      activeHolds: (tenantId) => scene.holds.active(tenantId),
    })
    const draft = draftBetween(null, monday + weekNs + weekNs / 2n)
    const preview = await previews.create(asker, draft)
    await previews.check(asker, preview.preview_id, draft)
    const { request } = await scene.request(draft)
    await scene.round()
    const { status, detail } = await scene.status(request.request_id)
    assert.equal(status, 'completed')
    assert.ok(preview.rows > 0)
    assert.equal(detail.rows_erased, preview.rows)
    assert.deepEqual(
      [detail.partitions_dropped, detail.partitions_rewritten],
      [preview.work.partitions_dropped, preview.work.partitions_rewritten],
    )
    assert.deepEqual(
      [preview.work.partitions_dropped, preview.work.partitions_rewritten],
      [scene.tables.length, scene.tables.length],
      'the organisation has no rows left in the first week, whatever rows others have there',
    )
    assert.ok(preview.work.bytes_rewritten > 0)
    assert.equal((await previews.create(asker, draft)).rows, 0)
  }
})

test('rows that a neighbour of the placement writes between two previews change no byte of the second', async () => {
  for (const { name } of tables) {
    await insert(own, name, monday, 40)
    await insert(own, name, monday + weekNs, 30)
  }
  const selections = [all, untilSecondWeek, between(monday + 10n * secondNs, monday + weekNs + 5n * secondNs)]
  const previews = previewsWith()
  const answers = async () => {
    const found = []
    for (const selection of selections) {
      const { id: _, preview_id: __, ...told } = await previews.create(own, selection)
      found.push(told)
    }
    return JSON.stringify(found)
  }
  const before = await answers()
  assert.match(before, /"bytes_rewritten":[1-9]/)
  for (const { name } of tables) {
    await insert(neighbour, name, monday, 500, 'a service with a long name of its own'.repeat(20))
    await stores.engine.command(raw(`OPTIMIZE TABLE ${name} FINAL`))
  }
  assert.equal(await answers(), before)
})

test('a preview is valid for a quarter of an hour while its selection is unchanged', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const previews = previewsWith()
  const { preview_id } = await previews.create(own, all)
  await previews.check(own, preview_id, all)
  await clock.advance(15 * 60_000 - 1)
  await previews.check(own, preview_id, all)
  await clock.advance(1)
  const next = await stalePreview(previews.check(own, preview_id, all))
  assert.notEqual(next.preview_id, preview_id)
  assert.equal(next.rows, 10)
  await previews.check(own, next.preview_id, all)
})

test('a clock that was set back extends no preview', async () => {
  const previews = previewsWith()
  const { preview_id } = await previews.create(own, all)
  await clock.advance(-60_000)
  await stalePreview(previews.check(own, preview_id, all))
})

test('an unknown preview and a preview of another organisation are refused alike, with a new preview', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const previews = previewsWith()
  const theirs = await previews.create(neighbour, all)
  const sentences = new Set<string>()
  for (const id of [theirs.preview_id, 'prv_00000000000000000000000000', '', "' OR 1=1 --"]) {
    const refused = previews.check(own, id, all)
    refused.catch((error: Error) => sentences.add(error.message))
    const next = await stalePreview(refused)
    assert.deepEqual([next.rows, next.signals[1]?.services], [10, ['shop of own']])
  }
  assert.equal(sentences.size, 1)
  await previews.check(neighbour, theirs.preview_id, all)
})

test('a preview is of one selection, however little another one differs', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const previews = previewsWith()
  const { preview_id } = await previews.create(own, untilSecondWeek)
  for (const other of [
    all,
    between(null, monday + weekNs + 1n),
    between(0n, monday + weekNs),
    { ...untilSecondWeek, signals: ['logs', 'traces'] as const },
  ]) {
    await assert.rejects(previews.check(own, preview_id, other), (error) => {
      assert.ok(error instanceof InvalidInput)
      const [problem, ...rest] = error.problems
      assert.deepEqual(rest, [])
      assert.deepEqual(
        [problem?.loc, problem?.type, problem?.input],
        [['body', 'preview_id'], 'value_error', preview_id],
      )
      return true
    })
  }
  await previews.check(own, preview_id, untilSecondWeek)
})

test('rows may arrive up to the tolerance, and one more makes the preview stale', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const previews = previewsWith()
  const { preview_id, tolerance_rows } = await previews.create(own, all)
  assert.equal(tolerance_rows, 1000)
  await insert(own, 'otel_traces', monday, 600)
  await insert(own, 'otel_logs', monday + weekNs, 400)
  await insert(neighbour, 'otel_logs', monday, 5000)
  await previews.check(own, preview_id, all)
  await insert(own, 'otel_logs', monday, 1)
  const refused = previews.check(own, preview_id, all)
  await assert.rejects(refused, /had 10 rows .* has 1011 now/)
  const next = await stalePreview(refused)
  assert.equal(next.rows, 1011)
  await previews.check(own, next.preview_id, all)
})

test('rows that another deletion has hidden make the preview stale too', async () => {
  await insertForBoth('otel_logs', monday, 1001)
  const previews = previewsWith()
  const { preview_id } = await previews.create(own, all)
  gate.hide('neighbour', { id: 'del_1', signals: ['logs'], range: all.range })
  await previews.check(own, preview_id, all)
  gate.hide('own', { id: 'del_2', signals: ['logs'], range: all.range })
  assert.equal((await stalePreview(previews.check(own, preview_id, all))).rows, 0)
})

test('a stored preview has only counts, and the next preview of any organisation removes expired ones', async () => {
  await insertForBoth('otel_logs', monday, 10)
  const previews = previewsWith()
  await previews.create(neighbour, all)
  await clock.advance(1000)
  const mine = await previews.create(own, untilSecondWeek)
  const [first, second, ...rest] = await stored()
  assert.deepEqual(rest, [])
  assert.equal(first?.tenant_id, 'neighbour')
  assert.equal(second?.preview_id, mine.preview_id)
  assert.equal(second?.row_counts, '{"metrics":0,"logs":10,"traces":0}')
  assert.ok(!JSON.stringify(await stored()).includes('shop'))
  await clock.advance(15 * 60_000 - 1000)
  await previews.create(own, all)
  assert.deepEqual(
    (await stored()).map(({ tenant_id }) => tenant_id),
    ['own', 'own'],
  )
})
