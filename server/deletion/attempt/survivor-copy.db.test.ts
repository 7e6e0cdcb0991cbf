// The table of a copy, on the real engine.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { CopyEngines } from './survivor-copy.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

/** Creates a table of this engine with eight parts of one row, asks for a merge, and returns its parts. */
async function partsAfterMerge(name: string, engineText: string): Promise<number> {
  const { engine } = stores
  await engine.command(raw(`CREATE TABLE ${name} AS otel_logs ENGINE = ${engineText}`))
  for (let part = 0; part < 8; part++) {
    await engine.command(raw(`INSERT INTO ${name} SELECT * FROM otel_logs LIMIT 1`))
  }
  await engine.command(raw(`OPTIMIZE TABLE ${name}`))
  const [found] = await engine.select<{ parts: string }>(
    sql`SELECT count() AS parts FROM system.parts WHERE table = ${name} AND active`,
  )
  return Number(found?.parts)
}

test('no part of a copy is merged, so each still belongs to one piece', async () => {
  const place = { tenantId: 'acme', placement: 0 }
  await insertRows(stores.engine, place, batchOf('otel_logs', [1_767_600_000_000_000_000n]))
  const engineText = await new CopyEngines(stores.engine).of('otel_logs')
  assert.equal(await partsAfterMerge('unmerged', engineText), 8)
  const others = engineText.replaceAll(/, max_bytes_to_merge_\w+ = 1/g, '')
  assert.equal(await partsAfterMerge('merged', others), 1, 'without the settings of a copy')
})
