// Deploys in real telemetry of all signals, with a neighbour that has the same rows: what is found, that
// hidden telemetry reveals nothing, and that neither many versions nor many windows cost more than the
// limits.

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { engineOfFile } from '../../tests/fixtures.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { type TableName, tables } from '../telemetry/schema/tables.ts'
import { raw } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { readDeploys } from './read-deploys.ts'

const engine = engineOfFile()

const acme: TenantPlace = { tenantId: 'acme', placement: 7 }
const globex: TenantPlace = { tenantId: 'globex', placement: 7 }
const limits = { maxSeconds: 10, maxMemoryBytes: 256 << 20 }
const noonMs = Date.UTC(2026, 8, 11, 12)
const atNs = (minute: number) => BigInt(noonMs + minute * 60_000) * 1_000_000n

let gate = new TelemetryGate()
beforeEach(async () => {
  gate = new TelemetryGate()
  for (const { name } of tables) await engine.command(raw(`TRUNCATE TABLE ${name}`))
})

const timeOf = (table: TableName) => tables.find(({ name }) => name === table)?.timeColumn ?? ''

/** One row a minute of a service in a version, in one table. */
async function run(
  table: TableName,
  [from, until]: readonly [number, number],
  version: string,
  more: FixtureRow = {},
  places: readonly TenantPlace[] = [acme, globex],
): Promise<void> {
  const rows = Array.from({ length: until - from }, (_, i) => ({
    [timeOf(table)]: atNs(from + i),
    ServiceName: 'checkout',
    ResourceAttributes: { 'service.name': 'checkout', 'service.version': version, 'host.name': 'a1' },
    ...more,
  }))
  for (const place of places) await insertFixture(engine, place, table, rows)
}

const readerOf = (place = acme) => new TenantReader(engine, place, gate)

async function found(
  [from, until]: readonly [number, number] = [0, 600],
  services?: readonly string[],
  place = acme,
): Promise<string[]> {
  const windows = [{ startNs: atNs(from), endNs: atNs(until) }]
  const { deploys } = await readDeploys(readerOf(place), { windows, services }, limits)
  return deploys.map(
    ({ atNs: ns, environment, previous_version, service, version }) =>
      `${service}${environment === null ? '' : ` in ${environment}`} ${previous_version} > ${version} at ${Number((ns - atNs(0)) / 60_000_000_000n)}`,
  )
}

for (const { name } of tables) {
  test(`a version that changes in ${name} is a deploy`, async () => {
    await run(name, [0, 60], '2.3.0')
    await run(name, [60, 90], '2.3.1')
    assert.deepEqual(await found(), ['checkout 2.3.0 > 2.3.1 at 60'])
  })
}

test('what ran before the range is known, and its deploys are not in the range', async () => {
  await run('otel_traces', [-120, -60], '1.0')
  await run('otel_logs', [-60, 60], '1.1')
  await run('otel_metrics_sum', [60, 90], '1.2')
  assert.deepEqual(await found([0, 90]), ['checkout 1.1 > 1.2 at 60'])
  assert.deepEqual(await found([-90, 60]), ['checkout 1.0 > 1.1 at -60'])
})

test('hidden telemetry reveals no deploy, and the neighbour’s identical rows still do', async () => {
  await run('otel_traces', [0, 60], '2.3.0')
  await run('otel_traces', [60, 90], '2.3.1')
  assert.equal((await found()).length, 1, 'it is there before')
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: atNs(60), endNs: null } })
  assert.deepEqual(await found(), [])
  assert.deepEqual(await found([0, 600], undefined, globex), ['checkout 2.3.0 > 2.3.1 at 60'])
})

test('environments are separate, also by their old name', async () => {
  const inside = (name: string, version: string, key = 'deployment.environment.name') => ({
    ResourceAttributes: { 'service.version': version, [key]: name },
  })
  await run('otel_traces', [0, 60], '', inside('production', '1.0'))
  await run('otel_traces', [60, 90], '', inside('production', '1.1'))
  await run('otel_traces', [0, 30], '', inside('staging', '1.0', 'deployment.environment'))
  await run('otel_traces', [30, 90], '', inside('staging', '1.1', 'deployment.environment'))
  assert.deepEqual(await found(), [
    'checkout in staging 1.0 > 1.1 at 30',
    'checkout in production 1.0 > 1.1 at 60',
  ])
})

test('a log event named deployment gives what its attributes or its resource name', async () => {
  const said = (attributes: Record<string, string>, more: FixtureRow = {}) => ({
    EventName: 'deployment',
    LogAttributes: attributes,
    ...more,
  })
  await run('otel_traces', [0, 200], '1.0')
  await run('otel_logs', [50, 51], '1.1', said({}))
  await run('otel_logs', [100, 101], '8', {
    ...said({ 'service.name': 'checkout', 'service.version': '1.2' }),
    ServiceName: 'pipeline',
  })
  await run(
    'otel_logs',
    [150, 151],
    '1.3',
    said({ 'deployment.status': 'failed', 'service.name': 'checkout' }),
  )
  await run('otel_logs', [160, 161], '1.4', {
    ...said({}),
    EventName: 'deployment.planned',
    ServiceName: 'cart',
  })
  assert.deepEqual(await found([0, 149], ['checkout']), [
    'checkout 1.0 > 1.1 at 50',
    'checkout 1.0 > 1.2 at 100',
  ])
  assert.deepEqual(await found([0, 200], ['pipeline', 'cart']), [])
})

test('several windows are read at once, each with the time before it', async () => {
  await run('otel_traces', [0, 60], '1.0')
  await run('otel_traces', [60, 120], '1.1')
  await run('otel_traces', [1000, 1060], '1.1')
  await run('otel_traces', [1060, 1100], '1.2')
  const windows = [
    { startNs: atNs(30), endNs: atNs(90) },
    { startNs: atNs(1030), endNs: atNs(1090) },
  ]
  const { deploys } = await readDeploys(readerOf(), { windows }, limits)
  assert.deepEqual(
    deploys.map(({ version }) => version),
    ['1.1', '1.2'],
  )
})

test('a service that names a version for each request has no deploys, and does not hide those of others', async () => {
  const rows = Array.from({ length: 5_000 }, (_, i) => ({
    Timestamp: atNs(0) + BigInt(i) * 1_000_000_000n,
    ServiceName: 'restless',
    ResourceAttributes: { 'service.version': `request-${i}${'x'.repeat(5_000)}` },
  }))
  await insertFixture(engine, acme, 'otel_traces', rows)
  await run('otel_traces', [0, 60], '2.3.0')
  await run('otel_traces', [60, 90], '2.3.1')
  const windows = [{ startNs: atNs(0), endNs: atNs(600) }]
  const { deploys, restless } = await readDeploys(readerOf(), { windows }, limits)
  assert.deepEqual(
    deploys.map(({ version }) => version),
    ['2.3.1'],
  )
  assert.deepEqual(restless, ['restless'])
})

test('a service with a name that no query may name has no deploys, and a long environment is cut', async () => {
  const [named, unnamed] = ['n'.repeat(1024), 'u'.repeat(1025)]
  for (const ServiceName of [named, unnamed]) {
    const of = (version: string) => ({
      ServiceName,
      ResourceAttributes: { 'service.version': version, 'deployment.environment.name': 'e'.repeat(300) },
    })
    await run('otel_traces', [0, 60], '', of('2.3.0'))
    await run('otel_traces', [60, 90], '', of('2.3.1'))
    await run('otel_logs', [200, 201], '', { EventName: 'deployment', ...of('2.4') })
  }
  const short = ([deploy]: readonly string[]) => deploy?.replace(named, 'named')
  const environment = 'e'.repeat(200)
  assert.equal(short(await found([0, 100])), `named in ${environment} 2.3.0 > 2.3.1 at 60`)
  assert.equal(short(await found([100, 300])), `named in ${environment} 2.3.1 > 2.4 at 200`)
  assert.equal((await found()).length, 2)
})

test('a text that looks like a part of a set of attributes is not a version', async () => {
  const trap = {
    ResourceAttributes: { 'my.service.version': '9', note: 'service.version', 'service.versions': '8' },
  }
  await run('otel_traces', [0, 60], '', trap)
  await run('otel_traces', [60, 90], '2.3.1')
  assert.deepEqual(await found(), [])
})
