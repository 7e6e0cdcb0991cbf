// What a statement is told of attributes against what maps would say, over random rows of few keys and values that are
// beginnings and ends of each other, or empty: in a table whose own attributes are dictionaries and one of plain texts.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { openStores, type Stores } from '../../tests/fixtures.ts'
import { attribute, hasAttribute } from './attribute.ts'
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

/** The record's own, else its resource's, else empty. */
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
