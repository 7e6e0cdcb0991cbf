// Attacks through erasures and legal holds: their requests are short and their work is long.

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, Attacker, Organisation } from '../attack.ts'
import { attackerMetric, gaugeBody, instant, logsBody, nowMs, protobuf } from '../rows.ts'

const address = '/usage/storage/deletions'
export const hourMs = 3_600_000
const dayMs = 24 * hourMs

export function erasure({ tenantId }: Organisation, startMs: number, endMs: number, more: object = {}) {
  return {
    scope: 'range',
    confirm: tenantId,
    range_start: instant(startMs),
    range_end: instant(endMs),
    ...more,
  }
}

/** Requests an erasure; waits a moment where too many are open, or where the rate of requests is reached. */
export async function erase(
  attacker: Attacker,
  json: object,
  as: Organisation = attacker.orders,
): Promise<string | null> {
  const { status, text } = await attacker.call('POST', address, { as, role: 'admin', json })
  if (status === 202 || status === 200) return (JSON.parse(text) as { request_id: string }).request_id
  await sleep(50)
  return null
}

/**
 * Returns an erasure of an hour of a month ago that has completed; null where it did not within half a
 * minute.
 */
async function completedErasure(attacker: Attacker): Promise<string | null> {
  const startMs = nowMs() - 20 * dayMs
  const id = await erase(attacker, erasure(attacker.orders, startMs, startMs + hourMs))
  for (let tries = 0; tries < 60; tries++) {
    const { text } = await attacker.call('GET', `${address}/${id}`, { role: 'admin' })
    if (text.includes('"completed"')) return id
    await sleep(500)
  }
  return null
}

/** Hours of the last month in an order that leaves rows on both sides. */
export const hourAgo = (n: number): number => nowMs() - ((n * 37) % 700) * hourMs - 2 * hourMs

export const attacksByErasures: readonly Attack[] = [
  {
    name: 'many-erasures',
    does: 'Four connections request erasures of ten minutes each, as many as the service accepts.',
    run: (attacker) => {
      let next = 0
      return attacker.loops(4, () => {
        const startMs = hourAgo(next++)
        return erase(attacker, erasure(attacker.orders, startMs, startMs + hourMs / 6))
      })
    },
  },
  {
    name: 'long-rewrites',
    does: 'An hour of each week is erased again and again from 30,000 more log records of 3 kB, which copies all the others.',
    prepare: async (attacker) => {
      for (let body = 0; body < 20; body++) {
        const lines = Array.from({ length: 1500 }, (_, at) => ({
          atMs: nowMs() - ((at * 20 + body) % 680) * hourMs - hourMs,
          body: randomBytes(2400).toString('base64'),
        }))
        const { bytes } = logsBody('rewritten', lines)
        await attacker.call('POST', '/v1/logs', { role: 'ingest', body: bytes, headers: protobuf })
      }
    },
    run: (attacker) => {
      let next = 0
      return attacker.loops(4, () => {
        const startMs = hourAgo(next++)
        return erase(attacker, erasure(attacker.orders, startMs, startMs + hourMs))
      })
    },
  },
  {
    name: 'large-rewrites',
    does: 'A minute is erased again and again from 1,600,000 more points of three days, which copies all the others.',
    prepare: async (attacker) => {
      const endMs = nowMs() - hourMs
      for (let body = 0; body < 4; body++) {
        const points = Array.from({ length: 40_000 }, (_, at) => ({
          atMs: endMs - (at * 4 + body) * 1600,
          value: at,
          attributes: { route: `/large/${at % 50}` },
        }))
        const { bytes } = gaugeBody('rewritten', attackerMetric, points)
        for (let times = 0; times < 10; times++)
          await attacker.call('POST', '/v1/metrics', { role: 'ingest', body: bytes, headers: protobuf })
      }
    },
    run: (attacker) => {
      let next = 0
      return attacker.loops(4, () => {
        const startMs = nowMs() - 2 * hourMs - ((next++ * 37) % 4000) * 60_000
        return erase(attacker, erasure(attacker.orders, startMs, startMs + 60_000))
      })
    },
  },
  {
    name: 'erasure-previews',
    does: 'Thirty-two connections preview the erasure of everything.',
    run: (attacker) =>
      attacker.loops(32, () =>
        attacker.call('POST', `${address}/preview`, { role: 'admin', json: { scope: 'all' } }),
      ),
  },
  {
    name: 'verifications',
    does: 'Thirty-two connections verify one completed erasure.',
    prepare: async (attacker) => void (await completedErasure(attacker)),
    run: async (attacker) => {
      const { text } = await attacker.call('GET', `${address}?limit=1`, { role: 'admin' })
      const id = /"request_id":"([^"]+)"/.exec(text)?.[1]
      await attacker.loops(32, () => attacker.call('POST', `${address}/${id}/verify`, { role: 'admin' }))
    },
  },
  {
    name: 'many-holds',
    does: 'Sixteen connections place thousands of legal holds, and erase other ranges.',
    run: (attacker) => {
      let next = 0
      return attacker.loops(16, async (loop) => {
        const startMs = hourAgo(next++) - next * 1000
        const json = {
          case_ref: `case-${next}`,
          range_start: instant(startMs),
          range_end: instant(startMs + 60_000),
        }
        await attacker.call('POST', '/usage/storage/holds', { role: 'admin', json })
        if (loop === 0 && next % 50 === 0)
          await erase(attacker, erasure(attacker.orders, startMs - hourMs, startMs + hourMs))
      })
    },
  },
  {
    name: 'holds-in-turn',
    does: 'Sixteen connections place a legal hold and release it, again and again.',
    run: (attacker) =>
      attacker.loops(16, async () => {
        const json = { case_ref: 'one of many' }
        const { text } = await attacker.call('POST', '/usage/storage/holds', { role: 'admin', json })
        const id = /"id":"([^"]+)"/.exec(text)?.[1]
        if (id === undefined) return
        await attacker.call('POST', `/usage/storage/holds/${id}/release`, { role: 'admin' })
      }),
  },
  {
    name: 'refused-ranges',
    does: 'Sixteen connections erase ranges with refuse_late, and send rows and read charts in them.',
    run: (attacker) => {
      let next = 0
      return attacker.loops(16, async (loop) => {
        if (loop < 8) {
          const startMs = nowMs() - 40 * dayMs - next++ * 60_000
          await erase(attacker, erasure(attacker.orders, startMs, startMs + 30_000, { refuse_late: true }))
          return
        }
        const lines = Array.from({ length: 1000 }, (_, at) => ({
          atMs: nowMs() - 40 * dayMs - at * 60_000,
          body: 'late',
        }))
        const { bytes: body } = logsBody('late', lines)
        await attacker.call('POST', '/v1/logs', { role: 'ingest', body, headers: protobuf })
        const start = encodeURIComponent(instant(nowMs() - 60 * dayMs))
        await attacker.call('GET', `/telemetry/logs?range_start=${start}`, { role: 'viewer' })
      })
    },
  },
  {
    name: 'retention-storm',
    does: 'Eight connections change retention back and forth.',
    run: (attacker) =>
      attacker.loops(8, (loop) => {
        const days = 25 + (loop % 2)
        const json = { metrics_days: days, logs_days: days, traces_days: days }
        return attacker.call('PUT', '/usage/storage/retention', { role: 'admin', json })
      }),
  },
]
