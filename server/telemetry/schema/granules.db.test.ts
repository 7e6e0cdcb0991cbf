// Sizes of granules: smaller in tables of distributions, and unchanged in tables of an earlier build.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, test } from 'node:test'
import { temporaryFolder, withEngine } from '../../../tests/fixtures.ts'
import type { TelemetryEngine } from '../engine.ts'
import { insertFixture } from '../row-fixture.ts'
import { raw, sql } from '../sql.ts'
import { createTableText } from './create-schema.ts'
import { tables } from './tables.ts'

const folder = temporaryFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

async function granulesOf(engine: TelemetryEngine, table: string): Promise<number> {
  const [found] = await engine.select<{ marks: string }>(
    sql`select sum(marks) - count() as marks from system.parts where active and table = ${table}`,
  )
  return Number(found?.marks)
}

const place = { tenantId: 'own', placement: 1 }
const points = Array.from({ length: 3000 }, (_, i) => ({
  MetricName: 'latency',
  TimeUnix: 1_767_571_200_000_000_000n + BigInt(i),
}))

test('a table of distributions has granules of a thousand rows, and a table of an earlier build keeps its own', async () => {
  const spec = tables.find(({ name }) => name === 'otel_metrics_histogram')
  assert.ok(spec)
  await withEngine(folder, async (engine) => {
    await insertFixture(engine, place, spec.name, points)
    assert.equal(await granulesOf(engine, spec.name), 3)
    const { granuleRows, ...earlier } = spec
    assert.equal(granuleRows, 1024)
    await engine.command(raw(`DROP TABLE ${spec.name} SYNC`))
    await engine.command(raw(createTableText(earlier)))
    await insertFixture(engine, place, spec.name, points)
    assert.equal(await granulesOf(engine, spec.name), 1)
  })
  await withEngine(folder, async (engine) => {
    await insertFixture(engine, place, spec.name, points)
    assert.equal(await granulesOf(engine, spec.name), 2)
    const rows = await engine.select<{ n: string }>(sql`select count() as n from otel_metrics_histogram`)
    assert.deepEqual(rows, [{ n: '6000' }])
  })
})
