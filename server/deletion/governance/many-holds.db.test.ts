// Thousands of legal holds: what they keep stays exact, statements stay small, and the number of holds of an
// organisation is limited.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { withTurns } from '../../../tests/with-turns.ts'
import { actorValues } from '../../control/actor-columns.ts'
import { type Actor, operatorActor, tokenActor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { TimeRange } from '../../core/time-range.ts'
import { seededUniform } from '../../detection/scoring/seeded-random.ts'
import { weightless } from '../../telemetry/row-weights.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { planErasure } from '../attempt/planner.ts'
import { readBack, readBackOutsideHolds } from '../attempt/verifier.ts'
import { monday } from '../deletion-fixture.ts'
import { enrol } from '../governed-fixture.ts'
import type { ErasureTarget } from '../requests/selection.ts'
import { activeHoldsMax, activeHoldsOfPersonMax, operatorHoldsMax, readHoldsSince } from './active-holds.ts'
import { LegalHolds } from './holds.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const second = 1_000_000_000n
const ada = tokenActor('tok_1', 'ada')
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

test('holds that were released since an instant are read in pages, each of them once, with others in between', async () => {
  const since = 1_767_000_000_000
  const rowOf = (hold_id: string, tenant_id: string, released_at_ms: number | null) => ({
    ...{ hold_id, tenant_id, signals: '["logs"]', case_ref: 'c', placed_at_ms: 0, released_at_ms },
    ...{ range_start_ns: null, range_end_ns: null, review_at_ms: null },
    ...actorValues('placed_by', ada),
  })
  const released = Array.from({ length: 1_200 }, (_, i) => {
    // Many at the same millisecond, also across the ends of pages.
    return rowOf(`hold_r${String(i).padStart(4, '0')}`, 'pages', since + Math.floor(i / 300))
  })
  const others = [
    rowOf('hold_active', 'pages', null),
    rowOf('hold_before', 'pages', since - 1),
    rowOf('hold_theirs', 'not pages', since),
  ]
  const all = [...released, ...others]
  for (let i = 0; i < all.length; i += 100)
    await stores.control
      .insertInto('legal_holds')
      .values(all.slice(i, i + 100))
      .execute()
  const { result, turns } = await withTurns(() => readHoldsSince(stores.control, 'pages', since))
  assert.deepEqual(result.map(({ holdId }) => holdId).sort(), [
    'hold_active',
    ...released.map(({ hold_id }) => hold_id),
  ])
  assert.ok(turns >= 2, `${turns} turns`)
})

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

describe('the number of holds in force', () => {
  const clock = new ManualClock(Number(monday / 1_000_000n))
  const operator = operatorActor('legal')
  let organisations = 0

  /** An organisation without holds, whose people each have a token that the operator made. */
  async function organisation() {
    const tenantId = `many-${++organisations}`
    const tenancy = new TenancyStore(stores.control, clock)
    await enrol(stores.control, tenantId)
    const holds = new LegalHolds(stores.control, clock, findRelated)
    const place = (actor: Actor) => holds.place(tenantId, { case_ref: 'c' }, actor)
    const signals = JSON.stringify(['logs'])
    return {
      place,
      release: (holdId: string, actor: Actor) => holds.release(tenantId, holdId, actor),
      async person(madeBy: Actor = operator): Promise<Actor> {
        const secret = newTokenSecret('admin')
        const token = { tenantId, name: 'x', role: 'admin', secret, expiresAtMs: null } as const
        return tokenActor((await tenancy.createToken({ ...token, actor: madeBy })).id, 'x')
      },
      /** Stores so many holds of the actor. */
      async fill(actor: Actor, count: number): Promise<void> {
        const ids = Array.from({ length: count }, (_, i) => `${tenantId}-${actor.id}-${i}`)
        const rows = ids.map((hold_id) => ({
          ...{ hold_id, tenant_id: tenantId, signals, case_ref: 'c', placed_at_ms: 0, released_at_ms: null },
          ...{ range_start_ns: null, range_end_ns: null, review_at_ms: null },
          ...actorValues('placed_by', actor),
        }))
        await stores.control.insertInto('legal_holds').values(rows).execute()
      },
    }
  }

  const isTooMany = (error: unknown) =>
    error instanceof AppError && error.code === 'too_many_holds' && error.status === 409

  test('of one person is limited to half, with any of their tokens, and a release allows another', async () => {
    const { fill, person, place, release } = await organisation()
    const [ada, ben] = [await person(), await person()]
    const child = await person(ada)
    await fill(ada, activeHoldsOfPersonMax - 1)
    const last = await place(child)
    await assert.rejects(place(ada), isTooMany)
    await assert.rejects(place(child), isTooMany)
    await place(ben)
    await release(last.id, ben)
    await place(ada)
  })

  test('of an organisation is limited, and those of the operator have a limit of their own', async () => {
    const { fill, person, place } = await organisation()
    const people = [await person(), await person(), await person()] as const
    await fill(operator, operatorHoldsMax - 1)
    await fill(people[0], activeHoldsOfPersonMax)
    await fill(people[1], activeHoldsMax - activeHoldsOfPersonMax - 1)
    await place(people[2])
    await assert.rejects(place(people[2]), isTooMany)
    await place(operator)
    await assert.rejects(place(operator), isTooMany)
    await (await organisation()).place(operator)
  })
})
