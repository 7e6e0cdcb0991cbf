// Attacks of four organisations together, each within its own limits: what one of them may not do alone, they
// try together.

import { setTimeout as sleep } from 'node:timers/promises'
import { ingestBodies } from '../../ingest/payloads.ts'
import { type Attack, type Attacker, madeOnce, type Organisation } from '../attack.ts'
import { attackerMetric, instant, nowMs } from '../rows.ts'
import { monthChart } from './reads.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const protobuf = { 'content-type': 'application/x-protobuf' }

/** Runs `work` on `connections` connections of each organisation until the time is over. */
async function together(
  attacker: Attacker,
  connections: number,
  work: (as: Organisation, loop: number) => Promise<unknown>,
): Promise<void> {
  await Promise.all(attacker.everyone.map((as) => attacker.loops(connections, (loop) => work(as, loop))))
}

const flood = madeOnce(() => ingestBodies('metrics', 8, 7, BigInt(nowMs()) * 1_000_000n))

export const attacksOfSeveral: readonly Attack[] = [
  {
    name: 'together-reading',
    does: 'Four organisations request charts of a month with many groups, eight connections each.',
    run: (attacker) =>
      together(attacker, 8, (as, loop) => {
        const aggregation = loop % 2 === 0 ? 'p99' : 'avg'
        const path = monthChart(`step_seconds=240&group_by=route&group_by=zone&aggregation=${aggregation}`)
        return attacker.call('GET', path, { as, role: 'viewer' })
      }),
  },
  {
    name: 'together-sending',
    does: 'Four organisations send metrics as fast as they are accepted, sixteen connections each.',
    prepare: async () => void flood(),
    run: (attacker) =>
      together(attacker, 16, (as, loop) => {
        const body = flood()[loop % flood().length] ?? Buffer.alloc(0)
        return attacker.call('POST', '/v1/metrics', { as, role: 'ingest', body, headers: protobuf })
      }),
  },
  {
    name: 'together-erasing',
    does: 'Four organisations erase hour after hour of the last month, four connections each.',
    run: (attacker) => {
      let next = 0
      return together(attacker, 4, async (as) => {
        const startMs = nowMs() - ((next++ * 37) % 700) * hourMs - 2 * hourMs
        const range = { range_start: instant(startMs), range_end: instant(startMs + hourMs) }
        const json = { scope: 'range', confirm: as.tenantId, ...range }
        const { status } = await attacker.call('POST', '/usage/storage/deletions', {
          ...{ as, json },
          role: 'admin',
        })
        if (status !== 202) await sleep(50)
      })
    },
  },
  {
    name: 'together-previewing',
    does: 'Four organisations preview detectors of 50 series over two weeks, two connections each.',
    run: (attacker) =>
      together(attacker, 2, (as, loop) => {
        const json = {
          name: 'together',
          metric_key: attackerMetric,
          method_key: loop % 2 === 0 ? 'rcf' : 'auto',
          params: {},
          scope: { group_by: 'route' },
          window_minutes: 1440,
          schedule_minutes: 15,
          range_start: instant(nowMs() - 14 * dayMs),
          range_end: instant(nowMs() - 1000),
        }
        return attacker.call('POST', '/anomalies/detectors/preview', { as, role: 'member', json })
      }),
  },
]
