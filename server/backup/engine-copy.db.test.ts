// The engine's copy across versions of the tables: what an earlier build copied stands in the tables of this one, as
// long as these have only columns more that the engine can fill.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { systemClock } from '../core/clock.ts'
import { openChdb } from '../telemetry/chdb.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { createTableText } from '../telemetry/schema/create-schema.ts'
import { tables, tablesOf } from '../telemetry/schema/tables.ts'
import { raw, sql } from '../telemetry/sql.ts'
import type { TelemetryEngine } from '../telemetry/telemetry.ts'
import { copyEngine, restoreEngine } from './engine-copy.ts'
import { isReadableSchema, telemetrySchemaHash } from './manifest.ts'

const folder = temporaryFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

test('telemetry of before a column that the engine can fill is readable and comes back with it', async () => {
  const before = tables.map((table) => ({
    ...table,
    columns: table.columns.filter(({ name }) => name !== 'SeriesId'),
  }))
  const hash = createHash('sha256').update(before.map(createTableText).join('\n'), 'utf8').digest('hex')
  assert.ok(isReadableSchema(hash) && isReadableSchema(telemetrySchemaHash()) && !isReadableSchema('other'))

  const options = { maxMemoryBytes: 2 ** 30, backupFolder: join(folder, 'older') }
  const row = { MetricName: 'm', TimeUnix: 10n ** 18n, Attributes: { pod: 'a' } }
  const found = (from: TelemetryEngine) =>
    from.select<{ SeriesId: string; MetricName: string }>(
      sql`select SeriesId, MetricName from otel_metrics_gauge`,
    )
  const older = await openChdb({ ...options, folder: join(folder, 'older-telemetry') })
  let rows: unknown
  try {
    await insertFixture(older, { tenantId: 'acme', placement: 0 }, 'otel_metrics_gauge', [row])
    rows = await found(older)
    for (const { name } of tablesOf(['metrics']))
      await older.command(raw(`alter table ${name} drop column SeriesId`))
    const backupId = `bak_${'0'.repeat(26)}`
    await copyEngine({ engine: older, clock: systemClock }, backupId, 'engine', new AbortController().signal)
  } finally {
    await older.close()
  }
  const restored = await openChdb({ ...options, folder: join(folder, 'restored-telemetry') })
  try {
    await restoreEngine(restored)
    assert.deepEqual(await found(restored), rows)
  } finally {
    await restored.close()
  }
})
