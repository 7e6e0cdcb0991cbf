// Attacks of four organisations together, each within its own limits: what one of them may not do alone, they
// try together.

import type { Attack, Attacker, Organisation } from '../attack.ts'
import { protobuf } from '../rows.ts'
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
