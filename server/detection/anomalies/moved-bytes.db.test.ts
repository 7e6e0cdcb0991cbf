// No byte of erased anomalies stays in the files of the control plane, also where the database has moved rows
// between its pages before: organisations take turns to insert, and anomalies change and grow meanwhile.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { derivedTables } from '../../control/derived-tables.ts'
import { dialectOf } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import { allTime } from '../../core/time-range.ts'
import { atNs, eraseAnomalies, openControl } from '../detection-fixture.ts'
import { seededUniform } from '../scoring/seeded-random.ts'

const fixture = await openControl()
const { control, filesWith } = fixture
after(() => fixture.close())

const tenants = ['acme', 'globex', 'initech', 'umbrella'] as const
const count = 4000

/** Inserts anomalies of the organisations by turns, and changes three earlier ones after each. */
async function fill(): Promise<void> {
  const uniform = seededUniform(8)
  const below = (limit: number) => Math.floor(uniform() * limit)
  const reasonOf = (tenantId: string, i: number) =>
    `${tenantId} was found ${i}: ${'0.123, expected 0.1; '.repeat(below(8))}`
  const tenantOf = (i: number) => tenants[i % tenants.length] ?? 'acme'
  const idOf = (i: number) => `ano_${String(i).padStart(8, '0')}`
  for (let next = 0; next < count; ) {
    await transact(control, async (trx) => {
      for (const end = next + 500; next < end; next++) {
        const tenantId = tenantOf(next)
        await trx
          .insertInto('anomalies')
          .values({
            id: idOf(next),
            tenant_id: tenantId,
            detector_id: `det_${tenantId}`,
            group_key: `{"service":"${tenantId}-service-${below(20)}"}`,
            metric_key: 'spans.error_ratio',
            signal: 'traces',
            started_at_ns: String(atNs(next)),
            seen_until_ns: String(atNs(next + 5)),
            peak_at_ns: String(atNs(next)),
            value: uniform(),
            score: 2,
            reason: reasonOf(tenantId, next),
            created_at_ms: 0,
            updated_at_ms: 0,
          })
          .execute()
        for (let changes = 0; changes < 3; changes++) {
          const changed = below(next + 1)
          const seenUntilNs = String(atNs(changed + 5 + below(60)))
          await trx
            .updateTable('anomalies')
            .set({
              reason: reasonOf(tenantOf(changed), changed),
              seen_until_ns: seenUntilNs,
              ended_at_ns: uniform() < 0.5 ? seenUntilNs : null,
              value: uniform(),
            })
            .where('id', '=', idOf(changed))
            .execute()
        }
      }
    })
  }
}

test('where anomalies were moved between pages, no byte of erased ones is left, and the neighbours’ stay', async () => {
  await fill()
  const flush = () => dialectOf(control).flushErased(control, derivedTables)
  const ofOthers = () =>
    control.selectFrom('anomalies').selectAll().where('tenant_id', '<>', 'acme').orderBy('id').execute()
  const before = await ofOthers()
  for (const text of ['acme was found', 'acme-service']) assert.notDeepEqual(filesWith(text), [], text)

  const erased = await eraseAnomalies(fixture, 'acme', { signals: ['traces'], range: allTime })
  assert.equal(erased.inRange, count / tenants.length)
  await flush()
  for (const text of ['acme was found', 'acme-service', 'det_acme'])
    assert.deepEqual(filesWith(text), [], text)
  for (const text of ['globex was found', 'globex-service']) assert.notDeepEqual(filesWith(text), [], text)
  assert.deepEqual(await ofOthers(), before)
})
