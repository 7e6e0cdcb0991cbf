// How many weeks an organisation may have outside of the last twenty years, counted on the real engine.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, encodeRows, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { DistantWeeks } from './distant-weeks.ts'

/** A Monday in January 2026. */
const nowMs = 1_767_571_200_000
const weekNs = 604_800_000_000_000n
const yearNs = 31_557_600_000_000_000n
const nowNs = BigInt(nowMs) * 1_000_000n
/** Weeks of 1975 and later. */
const old = (...weeks: readonly number[]) => weeks.map((week) => nowNs - 51n * yearNs + BigInt(week) * weekNs)

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

function scene(max = 3) {
  const clock = new ManualClock(nowMs)
  const weeks = new DistantWeeks({ engine: stores.engine, clock, max })
  const send = async (place: TenantPlace, times: readonly bigint[]) => {
    const batch = encodeRows(place, [batchOf('otel_logs', times)])
    await weeks.prepare(place, batch)
    weeks.admit(place, batch)
    await insertRows(stores.engine, place, batchOf('otel_logs', times))
  }
  return { clock, send, weeks }
}

const isTooMany = { code: 'body_too_large', status: 413, message: /erase such telemetry first/ }

const eraseOld = (place: TenantPlace, week: number) =>
  stores.engine.command(
    raw(
      `DELETE FROM otel_logs WHERE TenantId = '${place.tenantId}' AND Timestamp = fromUnixTimestamp64Nano(toInt64(${old(week)[0]}))`,
    ),
  )

test('weeks of long ago are refused beyond the limit, those that exist are not, nor those of a neighbour', async () => {
  const { send } = scene()
  const [own, neighbour] = [1, 2].map((at) => ({ tenantId: `beside-${at}`, placement: 11 }))
  assert.ok(own !== undefined && neighbour !== undefined)
  await send(own, old(0, 1, 2))
  await assert.rejects(send(own, old(3)), isTooMany)
  await send(own, old(0, 2))
  await send(neighbour, old(3, 4, 5))
  await assert.rejects(send(neighbour, old(6)), isTooMany)
  await assert.rejects(send(own, old(3)), isTooMany)
  await assert.rejects(send(own, [nowNs + yearNs]), isTooMany)
})

test('telemetry of the last twenty years is never refused and does not count', async () => {
  const { send } = scene()
  const place = { tenantId: 'usual', placement: 12 }
  const usual = [nowNs - 20n * yearNs, nowNs - 10n * yearNs, nowNs, nowNs + weekNs - 1n]
  await send(place, usual)
  await send(place, old(0, 1, 2))
  await assert.rejects(send(place, old(3)), isTooMany)
  await send(place, [...usual, nowNs - 15n * yearNs])
})

test('after a restart the weeks that the engine has count, and more than the limit may stay and grow', async () => {
  const place = { tenantId: 'restarted', placement: 13 }
  await scene(4).send(place, old(0, 1, 2, 3))
  const { send } = scene()
  await send(place, old(0, 1, 2, 3))
  await assert.rejects(send(place, old(4)), isTooMany)
})

test('an erased week is free again within two minutes, and until then nothing is let in for it', async () => {
  const { clock, send } = scene()
  const [place, neighbour] = [1, 2].map((at) => ({ tenantId: `erased-${at}`, placement: 14 }))
  assert.ok(place !== undefined && neighbour !== undefined)
  await send(place, old(0, 1, 2))
  await send(neighbour, old(0))
  await assert.rejects(send(place, old(3)), isTooMany)
  await eraseOld(place, 0)
  const rows = await stores.engine.select<{ tenant: string; rows: string }>(
    sql`select TenantId as tenant, count() as rows from otel_logs where Placement = 14 group by tenant order by tenant`,
  )
  assert.deepEqual(
    rows.map(({ tenant, rows: count }) => [tenant, Number(count)]),
    [
      ['erased-1', 2],
      ['erased-2', 1],
    ],
  )
  await assert.rejects(send(place, old(3)), isTooMany)
  await clock.advance(60_000)
  await send(place, old(3))
  await assert.rejects(send(place, old(0)), isTooMany)
})

test('weeks count from when they are accepted, before they are committed', async () => {
  const { weeks } = scene()
  const place = { tenantId: 'waiting', placement: 15 }
  const accept = async (times: readonly bigint[]) => {
    const batch = encodeRows(place, [batchOf('otel_logs', times)])
    await weeks.prepare(place, batch)
    weeks.admit(place, batch)
  }
  await accept(old(0, 1))
  await accept(old(2))
  await assert.rejects(accept(old(3)), isTooMany)
})
