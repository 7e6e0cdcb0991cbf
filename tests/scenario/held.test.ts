// What an operator's legal hold covers, against everything that people of the organisation can do: for random
// telemetry, anomalies and a random hold, every operation of the route table that a role may call, with valid
// inputs and in random order, leaves the held rows unchanged, and the held anomalies unchanged or with their
// earlier versions stored. A route without an entry here fails the test, so that each new route is
// considered.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { type Role, roles } from '../../contract/role.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { type App, createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { actorValues } from '../../server/control/actor-columns.ts'
import type { Control } from '../../server/control/database.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { AppError } from '../../server/core/app-error.ts'
import { systemClock } from '../../server/core/clock.ts'
import { overlaps, type TimeRange } from '../../server/core/time-range.ts'
import type { Failpoint } from '../../server/deletion/attempt/eraser.ts'
import { LegalHolds } from '../../server/deletion/governance/holds.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import type { LocalEngine } from '../../server/telemetry/engine-files.ts'
import { type Signal, signals, tables } from '../../server/telemetry/schema/tables.ts'
import { raw, sql } from '../../server/telemetry/sql.ts'
import { rangeCondition } from '../../server/telemetry/tenant-reader.ts'
import { findRelated } from '../../server/tenancy/lineage.ts'
import { newTokenSecret } from '../../server/tenancy/tenancy.ts'
import { openSecondHandle } from '../control-planes.ts'
import { batchOf, insertRows, silent, temporaryFolder } from '../fixtures.ts'
import { sampleExport } from './telemetry.ts'

const hourNs = 3_600_000_000_000n
const hours = 24 * 20
/** A start at a whole hour, early enough that a day of history is before the held time. */
const startNs = (systemClock.nowNs() / hourNs - BigInt(hours)) * hourNs
const atHour = (hour: number) => startNs + BigInt(hour) * hourNs
const wire = (ns: bigint) => formatInstant(ns)

let folder = ''
let engine: LocalEngine
let app: App
let control: Control
let address = ''
let failpoint: Failpoint = async () => {}

before(async () => {
  folder = temporaryFolder()
  const config = readConfig({
    LETHE_DATA_DIR: folder,
    LETHE_PORT: '0',
    LETHE_RESERVE_MB: '1',
    LETHE_COMMIT_DELAY_MS: '1',
  })
  app = await createApp({
    config,
    clock: systemClock,
    logger: silent,
    isManual: true,
    failpoint: (name) => failpoint(name),
    openEngine: async (options) => {
      engine = await openChdb(options)
      return engine
    },
  })
  address = await app.start()
  // As the command line opens it beside the service.
  control = openSecondHandle(join(folder, 'control.db'))
})
after(async () => {
  await control.destroy()
  await app.close()
  rmSync(folder, { recursive: true, force: true })
})

interface AnomalyPlan {
  readonly signals: readonly Signal[]
  readonly from: number
  readonly length: number
  readonly isOpen: boolean
  readonly isJudged: boolean
}

interface World {
  /** Hours from the start at which every table has a row. */
  readonly rows: readonly number[]
  readonly anomalies: readonly AnomalyPlan[]
  readonly hold: {
    readonly signals: readonly Signal[]
    readonly from: number | null
    readonly until: number | null
  }
}

const someSignals = fc.subarray([...signals], { minLength: 1 })
const hour = fc.integer({ min: 0, max: hours - 1 })
const anomaly = fc.record({
  signals: someSignals,
  from: hour,
  length: fc.integer({ min: 1, max: 100 }),
  isOpen: fc.boolean(),
  isJudged: fc.boolean(),
})

/** The hold keeps at least a row of a table and an anomaly that has ended and has a verdict. */
const worlds: fc.Arbitrary<World> = fc
  .record({
    rows: fc.array(hour, { minLength: 5, maxLength: 40 }),
    first: anomaly,
    others: fc.array(anomaly, { minLength: 3, maxLength: 10 }),
    also: fc.subarray([...signals]),
    before: fc.option(fc.integer({ min: 0, max: 200 }), { nil: null }),
    after: fc.option(fc.integer({ min: 1, max: 200 }), { nil: null }),
  })
  .map(({ after, also, before, first, others, rows }) => ({
    rows: [...rows, first.from],
    anomalies: [{ ...first, isOpen: false, isJudged: true }, ...others],
    hold: {
      signals: signals.filter((one) => also.includes(one) || one === first.signals[0]),
      from: before === null ? null : first.from - before,
      until: after === null ? null : first.from + after,
    },
  }))

interface Held {
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

/** A separate organisation, with a token of every role. */
class Organisation {
  readonly place: TenantPlace
  held: Held
  readonly holdId: string
  readonly detectorId: string
  /** Number of erasures requested so far. */
  erasures = 0
  readonly #secrets: ReadonlyMap<Role, string>

  private constructor(
    place: TenantPlace,
    found: { held: Held; holdId: string; detectorId: string; secrets: ReadonlyMap<Role, string> },
  ) {
    this.place = place
    this.held = found.held
    this.holdId = found.holdId
    this.detectorId = found.detectorId
    this.#secrets = found.secrets
  }

  static async found(serial: number, world: World): Promise<Organisation> {
    const tenantId = `held-${serial}`
    const secrets = new Map(roles.map((role) => [role, newTokenSecret(role)]))
    const place = await app.createOrganisation(
      { tenantId, name: tenantId, actor: operatorActor('test') },
      newTokenSecret('owner'),
    )
    for (const [role, secret] of secrets) {
      await app.tenancy.createToken({
        tenantId,
        name: role,
        role,
        secret,
        expiresAtMs: null,
        actor: operatorActor('test'),
      })
    }
    for (const { name } of tables) {
      await insertRows(engine, place, batchOf(name, world.rows.map(atHour), { ServiceName: 'shop' }))
    }
    const { from, signals: held, until } = world.hold
    const range = {
      startNs: from === null ? null : atHour(from),
      endNs: until === null ? null : atHour(until),
    }
    const unheld = { held: { signals: held, range }, holdId: '', detectorId: '', secrets }
    const one = new Organisation(place, unheld)
    const detectorId = await one.createDetector()
    await one.send('POST', '/v1/logs', { json: sampleExport('logs', [systemClock.nowNs() - hourNs / 60n]) })
    await one.send('POST', `/anomalies/detectors/${detectorId}/run`)
    for (const [i, anomaly] of world.anomalies.entries()) await one.#insertAnomaly(detectorId, i, anomaly)
    const hold = await new LegalHolds(control, systemClock, findRelated).place(
      tenantId,
      {
        case_ref: 'case 7',
        signals: [...held],
        ...(range.startNs !== null && { range_start: range.startNs }),
        ...(range.endNs !== null && { range_end: range.endNs }),
      },
      operatorActor('legal'),
    )
    return new Organisation(place, { ...unheld, detectorId, holdId: hold.hold_id })
  }

  async createDetector(): Promise<string> {
    const { id } = await this.json('POST', '/anomalies/detectors', {
      name: 'Any log at all',
      metric_key: 'logs.rate',
      method_key: 'threshold',
      params: { upper: 0 },
      scope: { group_by: 'service' },
      window_minutes: 600,
      schedule_minutes: 60,
    })
    return id
  }

  async #insertAnomaly(detectorId: string, i: number, plan: AnomalyPlan): Promise<void> {
    const [from, to] = [atHour(plan.from), atHour(plan.from + plan.length)]
    const verdict = {
      verdict: 'real',
      verdict_note: 'said before',
      ...actorValues('verdict_by', operatorActor('test')),
      verdict_at_ms: 1,
    } as const
    await control
      .insertInto('anomalies')
      .values({
        id: `ano_${this.place.tenantId}_${i}`,
        tenant_id: this.place.tenantId,
        detector_id: detectorId,
        group_key: JSON.stringify({ service: `service ${i}` }),
        metric_key: 'logs.rate',
        signal: plan.signals.join(','),
        started_at_ns: String(from),
        ended_at_ns: plan.isOpen ? null : String(to),
        seen_until_ns: String(to),
        peak_at_ns: String(from),
        value: i,
        expected: 0,
        lower: 0,
        upper: 0,
        score: 3,
        reason: `reason ${i}`,
        read_from_ns: String(from - hourNs),
        created_at_ms: 1,
        updated_at_ms: 1,
        ...(plan.isJudged && verdict),
      })
      .execute()
  }

  async send(
    method: string,
    path: string,
    { json, as = 'owner' }: { json?: unknown; as?: Role } = {},
  ): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${address}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#secrets.get(as)}`,
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    })
    return { status: answer.status, text: await answer.text() }
  }

  /** The body of a response that must be a success. */
  async json(method: string, path: string, json?: unknown) {
    const { status, text } = await this.send(method, path, json === undefined ? {} : { json })
    assert.ok(status < 300, `${method} ${path}: ${status} ${text}`)
    return JSON.parse(text)
  }

  /** Count and hash of every held row, including hidden ones. */
  async heldRows(): Promise<Record<string, string>> {
    const found: Record<string, string> = {}
    for (const { name, signal, timeColumn } of tables) {
      if (!this.held.signals.includes(signal)) continue
      const [row] = await engine.select<{ rows: string; hash: string }>(sql`
        SELECT toString(count()) AS rows, toString(sum(cityHash64(*))) AS hash FROM ${raw(name)}
        WHERE TenantId = ${this.place.tenantId} AND ${rangeCondition(timeColumn, this.held.range)}`)
      found[name] = `${row?.rows} rows of hash ${row?.hash}`
    }
    return found
  }

  /** The stored rows of anomalies about held time, by id. */
  async heldAnomalies(): Promise<Map<string, string>> {
    const rows = await control
      .selectFrom('anomalies')
      .selectAll()
      .where('tenant_id', '=', this.place.tenantId)
      .execute()
    const held = rows.filter((row) => {
      const own = { startNs: BigInt(row.started_at_ns), endNs: BigInt(row.seen_until_ns) }
      const isOfSignal = row.signal.split(',').some((name) => this.held.signals.some((one) => one === name))
      return isOfSignal && overlaps(own, this.held.range)
    })
    return new Map(held.map((row) => [row.id, JSON.stringify(row)]))
  }

  /** All versions of an anomaly. */
  async saidOf(id: string): Promise<string[]> {
    const versions = await control
      .selectFrom('held_anomaly_versions')
      .select('record')
      .where('anomaly_id', '=', id)
      .execute()
    return [...versions.map(({ record }) => record), (await this.heldAnomalies()).get(id) ?? 'gone']
  }
}

interface Operation {
  readonly path: string
  readonly json?: unknown
}

/** A call of the route by a role: valid inputs, and existing ids. */
type Entry = (org: Organisation) => Promise<Operation> | Operation

const read =
  (path: string): Entry =>
  () => ({ path })

const lately = `range_start=${wire(startNs)}&range_end=${wire(systemClock.nowNs())}`

/** An anomaly that is held, has ended and has a verdict, so no run changes it. */
const anAnomaly = ({ place }: Organisation) => `ano_${place.tenantId}_0`

/** A deletion that waits, so that it can be decided. */
async function aDeletion(org: Organisation): Promise<string> {
  const { items } = await org.json('GET', '/usage/storage/deletions?limit=1')
  if (items[0] !== undefined) return items[0].request_id
  return (await org.json('POST', '/usage/storage/deletions', deletionOf(org, 60))).request_id
}

/** A change that waits for a second person, where the policy requires one; otherwise an unknown id. */
async function aRetentionChange(org: Organisation): Promise<string> {
  const { pending } = await org.json('GET', '/usage/storage/retention')
  return pending?.[0]?.id ?? 'none'
}

/** In turn everything until now, and the time right beside the held time, unless that has not come yet. */
function deletionOf({ erasures, held: { range }, place }: Organisation, delay_minutes = 0) {
  const nowNs = systemClock.nowNs()
  const isBeside = erasures % 2 === 0
  const isAfter = isBeside && range.startNs === null && range.endNs !== null && range.endNs < nowNs
  return {
    scope: 'range',
    confirm: place.tenantId,
    range_end: wire(isBeside && range.startNs !== null ? range.startNs : nowNs),
    ...(isAfter && range.endNs !== null && { range_start: wire(range.endNs) }),
    ...(delay_minutes > 0 && { delay_minutes }),
  }
}

const detectorBody = {
  name: 'Any log',
  metric_key: 'logs.rate',
  method_key: 'threshold',
  params: { upper: 5 },
  window_minutes: 600,
  schedule_minutes: 60,
}

const decision =
  (verb: string, json?: unknown): Entry =>
  async (org) => ({
    path: `/usage/storage/deletions/${await aDeletion(org)}/${verb}`,
    ...(json !== undefined && { json }),
  })

const entries: Readonly<Record<string, Entry>> = {
  'GET /me': read('/me'),
  'GET /organisation': read('/organisation'),
  'POST /session': () => ({ path: '/session' }),
  'DELETE /session': () => ({ path: '/session' }),
  'GET /tokens': read('/tokens'),
  'POST /tokens': () => ({ path: '/tokens', json: { name: 'another', role: 'viewer' } }),
  'DELETE /tokens/:token_id': async (org) => {
    const { id } = await org.json('POST', '/tokens', { name: 'to be revoked', role: 'viewer' })
    return { path: `/tokens/${id}` }
  },
  'POST /organisation/remove': ({ place }) => ({
    path: '/organisation/remove',
    json: { confirm: place.tenantId },
  }),
  'GET /audit-log': read('/audit-log'),
  'GET /audit-log/export': read('/audit-log/export'),
  'GET /ledger': read('/ledger'),
  'GET /ledger/export': read('/ledger/export'),
  'GET /usage/storage': read('/usage/storage'),
  'GET /usage/storage/services': read('/usage/storage/services'),
  'GET /usage/storage/erased': read('/usage/storage/erased'),
  'GET /usage/refusals': read('/usage/refusals'),
  'GET /usage/ingest': read('/usage/ingest'),
  'POST /usage/storage/deletions': (org) => {
    const json = deletionOf(org)
    org.erasures++
    return { path: '/usage/storage/deletions', json }
  },
  'POST /usage/storage/deletions/preview': ({ place }) => ({
    path: '/usage/storage/deletions/preview',
    json: { scope: 'all', confirm: place.tenantId },
  }),
  'GET /usage/storage/deletions': read('/usage/storage/deletions'),
  'GET /usage/storage/deletions/:request_id': async (org) => ({
    path: `/usage/storage/deletions/${await aDeletion(org)}`,
  }),
  'GET /usage/storage/deletions/:request_id/certificate': decision('certificate'),
  'POST /usage/storage/deletions/:request_id/cancel': decision('cancel'),
  'POST /usage/storage/deletions/:request_id/approve': decision('approve'),
  'POST /usage/storage/deletions/:request_id/reject': decision('reject', { reason: 'no' }),
  'POST /usage/storage/deletions/:request_id/retry': decision('retry'),
  'POST /usage/storage/deletions/:request_id/verify': decision('verify'),
  'GET /usage/storage/deletion-policy': read('/usage/storage/deletion-policy'),
  'PUT /usage/storage/deletion-policy': () => ({
    path: '/usage/storage/deletion-policy',
    json: { approval: 'none' },
  }),
  'GET /usage/storage/holds': read('/usage/storage/holds'),
  'POST /usage/storage/holds': () => ({ path: '/usage/storage/holds', json: { case_ref: 'our own' } }),
  'GET /usage/storage/holds/:hold_id': ({ holdId }) => ({ path: `/usage/storage/holds/${holdId}` }),
  'POST /usage/storage/holds/:hold_id/release': async (org) => {
    const { items } = await org.json('GET', '/usage/storage/holds?active=true')
    const own = items.find((hold: { hold_id: string }) => hold.hold_id !== org.holdId)
    return { path: `/usage/storage/holds/${own?.hold_id ?? org.holdId}/release` }
  },
  'GET /usage/storage/retention': read('/usage/storage/retention'),
  'PUT /usage/storage/retention': () => ({
    path: '/usage/storage/retention',
    json: { metrics_days: 1, logs_days: 1, traces_days: 1 },
  }),
  'PATCH /usage/storage/retention': () => ({ path: '/usage/storage/retention', json: { logs_days: 2 } }),
  'POST /usage/storage/retention/changes/:change_id/approve': async (org) => ({
    path: `/usage/storage/retention/changes/${await aRetentionChange(org)}/approve`,
  }),
  'POST /usage/storage/retention/changes/:change_id/reject': async (org) => ({
    path: `/usage/storage/retention/changes/${await aRetentionChange(org)}/reject`,
    json: { reason: 'no' },
  }),
  'GET /telemetry/series': read(`/telemetry/series?metric_key=logs.rate&step_seconds=3600&${lately}`),
  'GET /telemetry/logs': read(`/telemetry/logs?${lately}`),
  'GET /telemetry/logs/counts': read(`/telemetry/logs/counts?step_seconds=3600&${lately}`),
  'GET /telemetry/attributes': read(`/telemetry/attributes?signal=logs&${lately}`),
  'GET /telemetry/spans': read(`/telemetry/spans?${lately}`),
  'GET /telemetry/traces/:trace_id': read('/telemetry/traces/0123456789abcdef0123456789abcdef'),
  'GET /telemetry/services': read('/telemetry/services'),
  'GET /telemetry/metrics': read('/telemetry/metrics'),
  'GET /telemetry/deploys': read(`/telemetry/deploys?${lately}`),
  'GET /anomalies': read('/anomalies'),
  'GET /anomalies/methods': read('/anomalies/methods'),
  'GET /anomalies/metrics': read('/anomalies/metrics'),
  'GET /anomalies/:anomaly_id': (org) => ({ path: `/anomalies/${anAnomaly(org)}` }),
  'GET /anomalies/:anomaly_id/versions': async (org) => ({
    path: `/anomalies/${anAnomaly(org)}/versions`,
  }),
  'POST /anomalies/:anomaly_id/feedback': async (org) => ({
    path: `/anomalies/${anAnomaly(org)}/feedback`,
    json: { verdict: 'not_an_anomaly', note: 'said now' },
  }),
  'GET /incidents': read('/incidents'),
  'GET /incidents/:incident_id': (org) => ({ path: `/incidents/${anAnomaly(org).replace('ano_', 'inc_')}` }),
  'GET /anomalies/suggest': read('/anomalies/suggest?metric_key=logs.rate'),
  'GET /anomalies/mutes': read('/anomalies/mutes'),
  'POST /anomalies/mutes': () => ({
    path: '/anomalies/mutes',
    json: { all_detectors: true, open_ended: true },
  }),
  'DELETE /anomalies/mutes/:mute_id': async (org) => {
    const { id } = await org.json('POST', '/anomalies/mutes', { all_detectors: true, open_ended: true })
    return { path: `/anomalies/mutes/${id}` }
  },
  'POST /anomalies/detectors/preview': () => ({
    path: '/anomalies/detectors/preview',
    json: {
      ...detectorBody,
      range_start: wire(systemClock.nowNs() - 24n * hourNs),
      range_end: wire(systemClock.nowNs()),
    },
  }),
  'GET /anomalies/detectors': read('/anomalies/detectors'),
  'POST /anomalies/detectors': () => ({ path: '/anomalies/detectors', json: detectorBody }),
  'GET /anomalies/detectors/:detector_id': ({ detectorId }) => ({
    path: `/anomalies/detectors/${detectorId}`,
  }),
  'PATCH /anomalies/detectors/:detector_id': ({ detectorId }) => ({
    path: `/anomalies/detectors/${detectorId}`,
    json: { params: { upper: 1000 }, metric_key: 'logs.error_count' },
  }),
  'DELETE /anomalies/detectors/:detector_id': ({ detectorId }) => ({
    path: `/anomalies/detectors/${detectorId}`,
  }),
  'POST /anomalies/detectors/:detector_id/run': ({ detectorId }) => ({
    path: `/anomalies/detectors/${detectorId}/run`,
  }),
  'POST /v1/metrics': () => ({ path: '/v1/metrics', json: sampleExport('metrics', [atHour(1)]) }),
  'POST /v1/logs': () => ({ path: '/v1/logs', json: sampleExport('logs', [atHour(1)]) }),
  'POST /v1/traces': () => ({ path: '/v1/traces', json: sampleExport('traces', [atHour(1)]) }),
  // Stores rows like the OTLP routes; its form is binary, and it has other tests.
  'POST /api/v1/write': () => ({ path: '/api/v1/write', json: {} }),
}

/** Routes that may add rows to held time. */
const adding = new Set(['POST /v1/metrics', 'POST /v1/logs', 'POST /v1/traces'])

/** A role calls a route; then retention and erasures are carried out, and a detector runs. */
interface Step {
  readonly route: string
  readonly role: Role
}

/** Routes that only read are called once. */
function rolesFor(method: string, access: readonly Role[]): readonly Role[] {
  return method === 'GET' ? access.slice(0, 1) : access
}

function allSteps(): Step[] {
  return [...app.http.routeTable].flatMap(([url, methods]) =>
    [...methods].flatMap(([method, access]) =>
      method === 'HEAD' || !Array.isArray(access)
        ? []
        : rolesFor(method, access).map((role) => ({ route: `${method} ${url}`, role })),
    ),
  )
}

test('every route that a role may call has an entry, and every entry has its route', () => {
  assert.deepEqual([...new Set(allSteps().map(({ route }) => route))].sort(), Object.keys(entries).sort())
})

async function carryOut(org: Organisation, { role, route }: Step): Promise<void> {
  const entry = entries[route]
  assert.ok(entry !== undefined, route)
  const [method = ''] = route.split(' ')
  const { path, json } = await entry(org)
  const { status, text } = await org.send(method, path, { as: role, ...(json !== undefined && { json }) })
  const isWellMeant = status < 300 || [403, 404, 409, 415, 429, 503].includes(status)
  assert.ok(isWellMeant, `${role} ${method} ${path}: ${status} ${text}`)
}

let serial = 0

test('no action of the people of an organisation changes what an operator’s hold keeps', async () => {
  const runs = fc.asyncProperty(worlds, fc.integer(), async (world, order) => {
    const org = await Organisation.found(++serial, world)
    const said = await org.heldAnomalies()
    let rows = await org.heldRows()
    assert.ok(said.size > 0 && Object.values(rows).some((text) => !text.startsWith('0 rows')))
    for (const step of fc.sample(fc.shuffledSubarray(allSteps(), { minLength: allSteps().length }), {
      seed: order,
      numRuns: 1,
    })[0] ?? []) {
      const what = `${step.role} ${step.route}`
      await carryOut(org, step)
      if (adding.has(step.route)) rows = await org.heldRows()
      if (step.route.startsWith('GET')) continue
      await app.round()
      assert.deepEqual(await org.heldRows(), rows, what)
      for (const [id, before] of said) {
        assert.ok(
          (await org.saidOf(id)).includes(before),
          `${what}: ${before} is not among the stored versions`,
        )
      }
    }
    const { items } = await org.json('GET', '/anomalies/detectors?limit=500')
    assert.ok(items.some(({ id }: { id: string }) => id === org.detectorId))
  })
  // A world takes half a minute; each run of the tests has another one.
  await fc.assert(runs, { numRuns: 1, endOnFailure: true })
})

const everything: World = {
  rows: [10, 200, 400],
  anomalies: [
    { signals: ['logs'], from: 10, length: 5, isOpen: false, isJudged: true },
    { signals: ['metrics', 'traces'], from: 300, length: 5, isOpen: true, isJudged: false },
  ],
  // A hold on time without telemetry: the relevant hold is placed while the erasure is in progress.
  hold: { signals: ['logs'], from: null, until: 0 },
}

/** Points between two actions of an erasure. */
const moments = [
  'fenced',
  'planned',
  'before partition step',
  'partition dropped',
  'step recorded',
  'anomalies removed',
  'removed from disk',
  'before read-back',
]

for (const moment of moments) {
  test(`a hold placed while an erasure is at "${moment}" keeps all that is left then, or is refused`, async (t) => {
    const org = await Organisation.found(++serial, everything)
    org.held = { signals, range: { startNs: null, endNs: null } }
    let kept: readonly unknown[] | null = null
    let wasReached = false
    failpoint = async (name) => {
      if (name !== moment || wasReached) return
      wasReached = true
      try {
        await new LegalHolds(control, systemClock, findRelated).place(
          org.place.tenantId,
          { case_ref: 'late' },
          operatorActor('legal'),
        )
      } catch (error) {
        if (error instanceof AppError && error.code === 'erasing') return
        throw error
      }
      kept = [await org.heldRows(), await org.heldAnomalies()]
    }
    t.after(() => {
      failpoint = async () => {}
    })
    await org.json('POST', '/usage/storage/deletions', { scope: 'all', confirm: org.place.tenantId })
    await app.round()
    await app.round()
    assert.ok(wasReached)
    if (kept !== null) assert.deepEqual([await org.heldRows(), await org.heldAnomalies()], kept)
  })
}
