// Attacks of several organisations together, each within its own limits: what one of them may not do alone,
// they try together.

import { type Attack, type Attacker, madeOnce, type Organisation } from '../attack.ts'
import { gaugeBody, logsBody, nowMs, protobuf } from '../rows.ts'
import { previewOf } from './detection.ts'
import { erase, erasure, hourAgo, hourMs } from './erasures.ts'
import { floodOfMetrics } from './ingest.ts'
import { monthChart } from './reads.ts'

/** Runs `work` on `connections` connections of each organisation until the time is over. */
async function together(
  attacker: Attacker,
  connections: number,
  work: (as: Organisation, loop: number) => Promise<unknown>,
): Promise<void> {
  await Promise.all(attacker.everyone.map((as) => attacker.loops(connections, (loop) => work(as, loop))))
}

const weekMs = 7 * 86_400_000
const weeksOfBody = 120
/** So many bodies of a signal are of the last twenty years together. */
const bodiesOfSignal = 8

/** Bodies with a row of each of {@link weeksOfBody} weeks, and no week of a signal twice. */
const otherWeeks = madeOnce(() =>
  Array.from({ length: bodiesOfSignal }, (_, body) => {
    const weeks = Array.from({ length: weeksOfBody }, (__, week) => body * weeksOfBody + week)
    const times = weeks.map((week) => nowMs() - week * weekMs)
    const lines = times.map((atMs) => ({ atMs, body: 'x' }))
    const points = times.map((atMs) => ({ atMs, value: 1, attributes: {} }))
    return [logsBody('weeks', lines), gaugeBody('weeks', 'attacker.weeks', points)]
  }).flat(),
)

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
    prepare: async () => void floodOfMetrics(),
    run: (attacker) => {
      const bodies = floodOfMetrics()
      return together(attacker, 16, (as, loop) => {
        const body = bodies[loop % bodies.length] ?? Buffer.alloc(0)
        return attacker.call('POST', '/v1/metrics', { as, role: 'ingest', body, headers: protobuf })
      })
    },
  },
  {
    name: 'together-many-weeks',
    does: 'Two organisations send rows of 120 weeks, each body of other weeks, 32 connections each.',
    prepare: async () => void otherWeeks(),
    run: async (attacker) => {
      const bodies = otherWeeks()
      const send = (as: Organisation) =>
        attacker.loops(32, (loop) => {
          const { bytes, signal } = bodies[loop % bodies.length] ?? logsBody('weeks', [])
          const sent = { as, role: 'ingest', body: bytes, headers: protobuf } as const
          return attacker.call('POST', `/v1/${signal}`, sent)
        })
      await Promise.all(attacker.everyone.slice(0, 2).map(send))
    },
  },
  {
    name: 'together-erasing',
    does: 'Four organisations erase hour after hour of the last month, four connections each.',
    run: (attacker) => {
      let next = 0
      return together(attacker, 4, (as) => {
        const startMs = hourAgo(next++)
        return erase(attacker, erasure(as, startMs, startMs + hourMs), as)
      })
    },
  },
  {
    name: 'together-previewing',
    does: 'Four organisations preview detectors of 50 series over two weeks, two connections each.',
    run: (attacker) =>
      together(attacker, 2, (as, loop) => {
        const json = previewOf(loop % 2 === 0 ? 'rcf' : 'auto')
        return attacker.call('POST', '/anomalies/detectors/preview', { as, role: 'member', json })
      }),
  },
]
