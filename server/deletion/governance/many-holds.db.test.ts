// Thousands of legal holds: what they keep stays exact, statements stay small, and the number of holds of an
// organisation is limited.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { operatorActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { TimeRange } from '../../core/time-range.ts'
import { seededUniform } from '../../detection/scoring/seeded-random.ts'
import { weightless } from '../../telemetry/row-weights.ts'
import { planErasure } from '../attempt/planner.ts'
import { readBack, readBackOutsideHolds } from '../attempt/verifier.ts'
import { monday } from '../deletion-fixture.ts'
import { enrol } from '../governed-fixture.ts'
import type { ErasureTarget } from '../requests/selection.ts'
import { activeHoldsMax } from './active-holds.ts'
import { LegalHolds } from './holds.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const second = 1_000_000_000n
const place = { tenantId: 'held', placement: 1 }
const rows = 2000
const times = Array.from({ length: rows }, (_, i) => monday + BigInt(i) * second)

const targetWith = (held: readonly TimeRange[]): ErasureTarget => ({
  scope: 'all',
  signals: ['logs'],
  range: { startNs: null, endNs: null },
  held: held.map((range) => ({ signals: ['logs'], range })),
})

const isHeld = (ranges: readonly TimeRange[], ns: bigint) =>
  ranges.some(({ startNs, endNs }) => (startNs === null || startNs <= ns) && (endNs === null || ns < endNs))

async function selected(target: ErasureTarget): Promise<number> {
  const plan = await planErasure(stores.engine, place, target, weightless)
  return plan.reduce((sum, step) => sum + step.rows, 0)
}

async function left(target: ErasureTarget): Promise<number> {
  const { rowsLeft } = await readBack(stores.engine, [], place.tenantId, target)
  return rowsLeft.otel_logs ?? -1
}

/** The holds that the read-back names, by position. */
async function heldBy(ranges: readonly TimeRange[]): Promise<readonly string[]> {
  const holds = ranges.map((range, i) => ({ holdId: `${i}`, signals: ['logs' as const], range }))
  const request = { ...targetWith([]), tenantId: place.tenantId }
  return (await readBackOutsideHolds(stores.engine, [], request, holds)).heldBy
}

test('eraser and verifier leave exactly what holds cover, and name those that cover a row, however they overlap', async () => {
  await insertRows(stores.engine, place, batchOf('otel_logs', times))
  for (let seed = 1; seed <= 12; seed++) {
    const random = seededUniform(seed)
    const bound = () =>
      monday + BigInt(Math.floor(random() * (rows + 20)) - 10) * second + BigInt(Math.floor(random() * 3) - 1)
    const ranges = Array.from({ length: 1 + Math.floor(random() * 40) }, (): TimeRange => {
      const [a, b] = [bound(), bound()]
      const [startNs, endNs] = a < b ? [a, b] : [b, a + 1n]
      const shortEnd = startNs + BigInt(Math.floor(random() * 20)) * second + 1n
      const openness = random()
      return {
        startNs: openness < 0.02 ? null : startNs,
        endNs: openness > 0.98 ? null : random() < 0.9 ? shortEnd : endNs,
      }
    })
    const expected = times.filter((ns) => !isHeld(ranges, ns)).length
    const target = targetWith(ranges)
    assert.deepEqual([await selected(target), await left(target)], [expected, expected], `seed ${seed}`)
    const keeping = ranges.flatMap((range, i) => (times.some((ns) => isHeld([range], ns)) ? [`${i}`] : []))
    assert.deepEqual(await heldBy(ranges), keeping, `seed ${seed}`)
  }
})

test('erasures beside three thousand holds, as an older data folder may have, are planned and counted', async () => {
  const ranges = Array.from({ length: 3000 }, (_, i) => ({
    startNs: monday + BigInt(i * 2) * second,
    endNs: monday + BigInt(i * 2 + 1) * second,
  }))
  const target = targetWith(ranges)
  assert.deepEqual([await selected(target), await left(target)], [rows / 2, rows / 2])
})

test('the number of holds in force of an organisation is limited, except for the operator, and a release allows another', async () => {
  const holds = new LegalHolds(stores.control, new ManualClock(Number(monday / 1_000_000n)))
  const placeOne = (tenantId: string) => holds.place(tenantId, { case_ref: 'c' }, tokenNamed('owner'))
  let last = ''
  for (let i = 0; i < activeHoldsMax; i++) last = (await placeOne('many')).id
  const isTooMany = (error: unknown) =>
    error instanceof AppError && error.code === 'too_many_holds' && error.status === 409
  await assert.rejects(placeOne('many'), isTooMany)
  await placeOne('other')
  await enrol(stores.control, 'many')
  await holds.place('many', { case_ref: 'c' }, operatorActor('legal'))
  await holds.release('many', last, tokenNamed('owner'))
  await assert.rejects(placeOne('many'), isTooMany, 'those of the operator count too')
  const [another] = await holds.active('many')
  await holds.release('many', another?.holdId ?? '', tokenNamed('owner'))
  await placeOne('many')
})
