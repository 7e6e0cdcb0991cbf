// Compares expressions of attributes with maps, over random rows with few keys and values that are beginnings
// and ends of each other, or empty: in a table whose own attributes have a dictionary and in one with plain
// texts.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { openStores, type Stores } from '../../tests/fixtures.ts'
import { attribute, hasAttribute, knowsAttribute } from './attribute.ts'
import { TelemetryGate } from './gate.ts'
import { type AttributeMap, insertFixture } from './row-fixture.ts'
import { raw, sql } from './sql.ts'
import { TenantReader } from './tenant-reader.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const seed = Number(process.env.LETHE_FUZZ_SEED ?? 20_267)
const keys = ['', 'a', 'b', 'aa', 'ab', 'þ', 'ÿ', '\u0000', "'"]
const values = ['', 'a', 'b', 'ab', 'þ', 'aþbÿ', '\u0000', '\\']
const map = fc.dictionary(fc.constantFrom(...keys), fc.constantFrom(...values), { maxKeys: 5 })

const startNs = 1_763_712_000_000_000_000n
const place = { tenantId: 'acme', placement: 3 }

/** The value of the record, else of its resource, else empty. */
const model = (own: AttributeMap, resource: AttributeMap, key: string): string =>
  Object.hasOwn(own, key) ? (own[key] ?? '') : Object.hasOwn(resource, key) ? (resource[key] ?? '') : ''

for (const [table, timeColumn, column] of [
  ['otel_metrics_sum', 'TimeUnix', 'Attributes'],
  ['otel_logs', 'Timestamp', 'LogAttributes'],
  ['otel_traces', 'Timestamp', 'SpanAttributes'],
] as const) {
  test(`attributes of ${table} are those of the row, else of its resource, else empty`, async () => {
    const rows = fc.sample(fc.tuple(map, map), { numRuns: 300, seed })
    await insertFixture(
      stores.engine,
      place,
      table,
      rows.map(([own, resource], i) => ({
        [timeColumn]: startNs + BigInt(i),
        [column]: own,
        ResourceAttributes: resource,
      })),
    )
    const reader = new TenantReader(stores.engine, place, new TelemetryGate())
    const pairs = `${column}Pairs`
    for (const key of [...keys, 'absent']) {
      const expected = rows.map(([own, resource]) => model(own, resource, key))
      const found = await reader.rows<{ value: string }>(
        (from) =>
          sql`SELECT ${attribute(pairs, key)} AS value FROM ${from(table)} ORDER BY ${raw(timeColumn)}`,
      )
      assert.deepEqual(
        found.map(({ value }) => value),
        expected,
        `key ${JSON.stringify(key)}, seed ${seed}`,
      )
      for (const value of [...values, 'absent']) {
        const ids = await reader.rows<{ at: string }>(
          (from) =>
            sql`SELECT toString(toUnixTimestamp64Nano(${raw(timeColumn)})) AS at FROM ${from(table, hasAttribute(pairs, key, value))} ORDER BY at`,
        )
        assert.deepEqual(
          ids.map(({ at }) => Number(BigInt(at) - startNs)),
          expected.flatMap((one, i) => (one === value ? [i] : [])),
          `${JSON.stringify(key)} = ${JSON.stringify(value)}, seed ${seed}`,
        )
      }
      const groups = await reader.rows<{ value: string; n: string }>(
        (from) =>
          sql`SELECT ${attribute(pairs, key)} AS value, count() AS n FROM ${from(table)} GROUP BY value`,
      )
      assert.deepEqual(
        new Map(groups.map(({ value, n }) => [value, Number(n)])),
        new Map(
          Map.groupBy(expected, (value) => value)
            .entries()
            .map(([value, { length }]) => [value, length]),
        ),
        `groups by ${JSON.stringify(key)}, seed ${seed}`,
      )
    }
  })
}

const nested = 'nested'
const json = (value: unknown): string => JSON.stringify(value)
/** Attributes of the record, attributes of its resource, a name, and the expected value. */
const paths: readonly (readonly [AttributeMap, AttributeMap, string, string | null])[] = [
  [{ http: json({ request: { method: 'GET' } }) }, {}, 'http.request.method', 'GET'],
  [{ http: json({ 'request.method': 'PUT' }) }, {}, 'http.request.method', 'PUT'],
  [{ 'http.request': json({ method: 'POST' }) }, {}, 'http.request.method', 'POST'],
  [
    { 'http.request.method': 'flat', http: json({ request: { method: 'no' } }) },
    {},
    'http.request.method',
    'flat',
  ],
  [{ http: json({ response: { status: 503, ok: false, size: 0.25 } }) }, {}, 'http.response.status', '503'],
  [{ http: json({ response: { status: 503, ok: false, size: 0.25 } }) }, {}, 'http.response.ok', 'false'],
  [{ http: json({ response: { status: 503, ok: false, size: 0.25 } }) }, {}, 'http.response.size', '0.25'],
  [{ http: json({ response: { a: 1, b: 'x' } }) }, {}, 'http.response', '{"a":1,"b":"x"}'],
  [{ http: json({ response: null }) }, {}, 'http.response', ''],
  [{ http: json({ response: {} }) }, {}, 'http.request.method', null],
  [{ http: 'plain' }, {}, 'http.request.method', null],
  [{ http: '{broken' }, {}, 'http.request.method', null],
  [{ other: '' }, { http: json({ route: '/r' }) }, 'http.route', '/r'],
  [{ http: '' }, { http: json({ route: '/r' }) }, 'http.route', null],
  [{ http: json({ route: '/own' }) }, { 'http.route': '/resource' }, 'http.route', '/resource'],
  [{ http: json({ other: '/own' }) }, { 'http.route': '/resource' }, 'http.route', '/resource'],
  [{ a: json({ 'b\'\\"ü\u0000': 'q"ü' }) }, {}, 'a.b\'\\"ü\u0000', 'q"ü'],
  [{ a: json({ b: { c: { d: { e: 'deep' } } } }) }, {}, 'a.b.c.d.e', 'deep'],
  [{ a: json({ b: { c: { d: { e: { f: 'deep' } } } } }) }, {}, 'a.b.c.d.e.f', null],
  [{ a: json({ b: { 'c.d': 'both' } }) }, {}, 'a.b.c.d', 'both'],
  [{ a: json({ b: 'one\nline' }) }, {}, 'a.b', 'one\nline'],
  [{ a: '{ "b" :\n [ 1,\n2 ] }' }, {}, 'a.b', '[1,2]'],
  [{ '': json({ '': 'empty names' }) }, {}, '.', 'empty names'],
  [{ items: json([{ sku: 'x1' }, { sku: 'x2' }]) }, {}, 'items.sku', null],
]

test('a name with dots also selects nested values, those of the record before those of its resource', async () => {
  const rows = paths.map(([own, resource], i) => ({
    Timestamp: startNs + BigInt(i),
    LogAttributes: own,
    ResourceAttributes: resource,
  }))
  const own = { tenantId: nested, placement: 3 }
  await insertFixture(stores.engine, own, 'otel_logs', rows)
  const reader = new TenantReader(stores.engine, own, new TelemetryGate())
  for (const [i, [, , key, text]] of paths.entries()) {
    const [row] = await reader.rows<Record<string, unknown>>(
      (from) =>
        sql`SELECT ${attribute('LogAttributesPairs', key)} AS value, toUInt8(${hasAttribute('LogAttributesPairs', key, text ?? '')}) AS is, toUInt8(${hasAttribute('LogAttributesPairs', key, 'absent')}) AS other, toUInt8(${knowsAttribute('LogAttributesPairs', key)}) AS known FROM ${from('otel_logs')} WHERE toUnixTimestamp64Nano(Timestamp) = ${raw(String(startNs + BigInt(i)))}`,
    )
    assert.deepEqual(
      row,
      { value: text ?? '', is: 1, other: 0, known: text === null ? 0 : 1 },
      `${i}: ${key}`,
    )
  }
})

test('a name with dots does not select nested values of a metric point', async () => {
  const own = { tenantId: 'nested_points', placement: 3 }
  const Attributes = { http: json({ route: '/r' }), tags: json(['a']) }
  await insertFixture(stores.engine, own, 'otel_metrics_gauge', [{ TimeUnix: startNs, Attributes }])
  const reader = new TenantReader(stores.engine, own, new TelemetryGate())
  const count = async (key: string, value: string) => {
    const [row] = await reader.rows<{ n: string }>(
      (from) =>
        sql`SELECT count() AS n FROM ${from('otel_metrics_gauge', hasAttribute('AttributesPairs', key, value))}`,
    )
    return Number(row?.n)
  }
  assert.equal(await count('http.route', '/r'), 0)
  assert.equal(await count('http', Attributes.http), 1)
  assert.equal(await count('tags', 'a'), 1)
})

test('a list is found by any of its items and by its whole text', async () => {
  const own = { tenantId: 'lists', placement: 3 }
  await insertFixture(
    stores.engine,
    own,
    'otel_logs',
    [
      { tags: json(['a', 'b"c', 7, true]) },
      { deep: json({ tags: ['a'], more: [{ sku: 'x1' }, { sku: 'x2' }] }) },
      { tags: 'a' },
      { tags: '["a' },
    ].map((LogAttributes, i) => ({ Timestamp: startNs + BigInt(i), LogAttributes })),
  )
  const reader = new TenantReader(stores.engine, own, new TelemetryGate())
  const found = async (key: string, value: string) => {
    const rows = await reader.rows<{ at: string }>(
      (from) =>
        sql`SELECT toString(toUnixTimestamp64Nano(Timestamp)) AS at FROM ${from('otel_logs', hasAttribute('LogAttributesPairs', key, value))} ORDER BY at`,
    )
    return rows.map(({ at }) => Number(BigInt(at) - startNs))
  }
  assert.deepEqual(await found('tags', 'a'), [0, 2])
  assert.deepEqual(await found('tags', 'b"c'), [0])
  assert.deepEqual(await found('tags', '7'), [0])
  assert.deepEqual(await found('tags', 'true'), [0])
  assert.deepEqual(await found('tags', json(['a', 'b"c', 7, true])), [0])
  assert.deepEqual(await found('tags', 'c'), [])
  assert.deepEqual(await found('deep.tags', 'a'), [1])
  assert.deepEqual(await found('deep.more', 'x1'), [])
})

test('job, instance and scope are found by their Prometheus names, and an own attribute of the name comes first', async () => {
  const own = { tenantId: 'labels', placement: 3 }
  const at = (i: number) => ({ TimeUnix: startNs + BigInt(i), MetricName: 'up' })
  await insertFixture(stores.engine, own, 'otel_metrics_gauge', [
    {
      ...at(0),
      ServiceName: 'api',
      ResourceAttributes: {
        'service.name': 'api',
        'service.instance.id': 'h:1',
        'service.namespace': 'shop',
      },
      ScopeName: 'meter',
      ScopeVersion: '1.2',
    },
    {
      ...at(1),
      ServiceName: 'node',
      ResourceAttributes: { 'service.name': 'node' },
      Attributes: { instance: 'x' },
    },
    { ...at(2), ServiceName: 'node', Attributes: { job: 'own' } },
    at(3),
  ])
  const reader = new TenantReader(stores.engine, own, new TelemetryGate())
  const valuesOf = async (key: string) =>
    (
      await reader.rows<{ value: string }>(
        (from) =>
          sql`SELECT ${attribute('AttributesPairs', key)} AS value FROM ${from('otel_metrics_gauge')} ORDER BY TimeUnix`,
      )
    ).map(({ value }) => value)
  assert.deepEqual(await valuesOf('job'), ['shop/api', 'node', 'own', ''])
  assert.deepEqual(await valuesOf('instance'), ['h:1', 'x', '', ''])
  assert.deepEqual(await valuesOf('otel_scope_name'), ['meter', '', '', ''])
  assert.deepEqual(await valuesOf('otel_scope_version'), ['1.2', '', '', ''])
  for (const [key, value, count] of [
    ['job', 'shop/api', 1],
    ['job', 'node', 1],
    ['job', 'api', 0],
    ['job', '', 1],
    ['instance', 'h:1', 1],
    ['instance', '', 2],
  ] as const) {
    const rows = await reader.rows((from) =>
      from('otel_metrics_gauge', hasAttribute('AttributesPairs', key, value)),
    )
    assert.equal(rows.length, count, `${key}=${value}`)
  }
})
