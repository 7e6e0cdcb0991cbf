// The identity that is written with a row equals the one that the engine computes for a row without: random
// exports, in tables of the same columns, so that rows from before the column was added belong to the same
// series.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { temporaryFolder } from '../../../tests/fixtures.ts'
import { arbitraryExport } from '../../../tests/otlp/arbitrary-export.ts'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { openChdb } from '../../telemetry/chdb.ts'
import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { insertColumns } from '../../telemetry/schema/create-schema.ts'
import { tablesOf } from '../../telemetry/schema/tables.ts'
import { raw } from '../../telemetry/sql.ts'

const folder = temporaryFolder()
let engine: TelemetryEngine
before(async () => {
  engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30 })
})
after(async () => {
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
})

const long = (length: number) => 'ä'.repeat(length)

/** Texts whose lengths take one, two and three bytes, and empty ones. */
const longExport = {
  resourceMetrics: [
    {
      resource: { attributes: [{ key: long(100), value: { stringValue: long(9000) } }] },
      scopeMetrics: [
        {
          scope: { name: long(70) },
          metrics: [
            {
              name: long(80),
              gauge: {
                dataPoints: [60, 63, 64, 8000, 8191, 8192].map((length, i) => ({
                  attributes: [{ key: 'k', value: { stringValue: long(length) } }],
                  timeUnixNano: String(i + 1),
                  asDouble: 1,
                })),
              },
            },
          ],
        },
      ],
    },
  ],
}

test('the engine gives every row the identity that was written with it', async () => {
  const seed = Number(process.env.LETHE_FUZZ_SEED ?? 20_261)
  const messages = [longExport, ...fc.sample(arbitraryExport.metrics, { numRuns: 300, seed })]
  const batches = messages.map((message) =>
    decodeHere('metrics', 'protobuf', encodeProto('metrics', message), 0n),
  )
  for (const table of tablesOf(['metrics'])) {
    const rows = batches.flatMap(({ batch }) => batch.filter((part) => part.table === table.name))
    for (const name of ['written', 'given'])
      await engine.command(raw(`CREATE TABLE ${name} AS ${table.name} ENGINE = Memory`))
    await engine.insert(
      'written',
      insertColumns(table),
      rows.map(({ bytes }) => bytes),
    )
    const names = insertColumns(table)
      .filter(({ fallback }) => fallback === undefined)
      .map(({ name }) => `\`${name}\``)
      .join(', ')
    await engine.command(raw(`INSERT INTO given (${names}) SELECT ${names} FROM written`))
    const [found] = await engine.select<{ rows: string; ids: string; foreign: string }>(
      raw(`SELECT (SELECT count() FROM written) AS rows, uniqExact(SeriesId) AS ids,
countIf((SeriesId, MetricName, TimeUnix) NOT IN (SELECT SeriesId, MetricName, TimeUnix FROM written)) AS foreign FROM given`),
    )
    assert.ok(Number(found?.rows) > 20 && Number(found?.ids) > 10, `${table.name}: ${JSON.stringify(found)}`)
    assert.equal(found?.foreign, '0', `${table.name}, seed ${seed}`)
    for (const name of ['written', 'given']) await engine.command(raw(`DROP TABLE ${name} SYNC`))
  }
})
