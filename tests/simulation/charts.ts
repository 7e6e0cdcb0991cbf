// A chart in a simulation: its owner reads log records per day, from before the first week until after the
// last. A day is marked as erased where a deletion hides a part of it or has erased one, and only there: time
// after the completion of a deletion is not erased, whatever the deletion selects. Every other day in the
// past shows its rows.

import assert from 'node:assert/strict'
import { formatInstant } from '../../contract/values/instant.ts'
import { hiding, type Model, type Range } from './model.ts'
import { dayNs, mondayNs } from './telemetry.ts'
import { assertAnswer, type World } from './world.ts'

const days = 90
const daySeconds = 86_400

export async function chart(world: World): Promise<void> {
  const own = world.pickOrganisation()
  const { tenantId } = own.place
  world.log(`${tenantId} reads a chart`)
  const [start, end] = [mondayNs, mondayNs + BigInt(days) * dayNs].map(formatInstant)
  const answer = await world.subject.ask(
    'GET',
    `/telemetry/series?metric=logs.rate&aggregation=count&start=${start}&end=${end}&step_seconds=${daySeconds}`,
    { secret: world.pick(own.secrets) },
  )
  assertAnswer(answer, 200, 'a chart')
  const [series] = answer.body.series
  if (series === undefined) return
  const unknown = unknownTime(world.model, tenantId)
  const nowNs = BigInt(world.subject.nowMs()) * 1_000_000n
  for (const { erased = false, time, value } of series.points as Point[]) {
    const day = { startNs: BigInt(Date.parse(time)) * 1_000_000n, endNs: 0n }
    day.endNs = day.startNs + dayNs
    assert.equal(
      erased,
      unknown.some((range) => meetsRange(range, day)),
      `the day ${time} of ${tenantId}`,
    )
    if (erased || day.startNs > nowNs) continue
    const rows = world.model.arrivals.filter(
      (row) => row.tenantId === tenantId && row.table === 'otel_logs' && isIn(day, row.timeNs),
    )
    assert.equal(value ?? 0, rows.length, `log records of ${time} of ${tenantId}`)
  }
}

interface Point {
  readonly time: string
  readonly value: number | null
  readonly erased?: boolean
}

function unknownTime(model: Model, tenantId: string): Range[] {
  return model.requestsOf(tenantId).flatMap((request) => {
    if (!request.signals.includes('logs')) return []
    if (hiding.has(request.status)) return [request.range]
    if (request.status !== 'completed' || request.doneAtMs === null) return []
    const doneNs = BigInt(request.doneAtMs) * 1_000_000n
    const { endNs, startNs } = request.range
    return [{ startNs, endNs: endNs === null || endNs > doneNs ? doneNs : endNs }]
  })
}

function meetsRange({ startNs, endNs }: Range, day: { startNs: bigint; endNs: bigint }): boolean {
  const isEmpty = startNs !== null && endNs !== null && startNs >= endNs
  return !isEmpty && (startNs === null || startNs < day.endNs) && (endNs === null || endNs > day.startNs)
}

function isIn({ startNs, endNs }: { startNs: bigint; endNs: bigint }, timeNs: bigint): boolean {
  return timeNs >= startNs && timeNs < endNs
}
