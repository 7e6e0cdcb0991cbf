// The hand-written protobuf decoder against the reference decoder for a given time, with a new seed each
// round. It stops at the first difference and prints the body; LETHE_FUZZ_SEED repeats a round in the tests.
//
// Run: node tests/otlp/fuzz-decoders.ts [--seconds 60] [--seed 1]

import { parseArgs } from 'node:util'
import { signals } from '../../server/telemetry/schema/tables.ts'
import { fuzzDecoders, noneYet } from './compare-decoders.ts'

const { values: flags } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } },
})
const untilMs = performance.now() + Number(flags.seconds) * 1000
const total = noneYet()
let seed = Number(flags.seed)
for (; performance.now() < untilMs; seed++) {
  for (const signal of signals) {
    const count = fuzzDecoders(signal, seed, 200, 30)
    for (const what of Object.keys(total) as (keyof typeof total)[]) total[what] += count[what]
  }
}
process.stdout.write(`${JSON.stringify({ ...total, seeds: `${flags.seed} to ${seed - 1}` })}\n`)
