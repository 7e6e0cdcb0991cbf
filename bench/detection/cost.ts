// What a detector costs: buckets per second on one core, for each method alone and for a whole evaluation with the
// alarm layer, on seeded noise with an incident in it. Prints one JSON object. Absolute rates depend on the machine;
// compare rows of one run. Best of several rounds, because the machine's other work can only slow a round down.
//
//   node bench/detection/cost.ts

import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { methodParams } from '../../contract/detection-methods.ts'
import { evaluateSeries } from '../../server/detection/evaluate.ts'
import { type MethodChoice, scoreSeries } from '../../server/detection/methods/catalogue.ts'
import { seededNormal } from '../../server/detection/seeded-noise.ts'
import type { Series } from '../../server/detection/series.ts'

const rounds = 5
const secondsPerRound = 0.4

/** Windows of one day, one week and 90 days of minutes. */
const lengths = [1_440, 10_080, 129_600]

const choices: Record<string, MethodChoice> = {
  threshold: { method_key: 'threshold', params: methodParams.threshold.parse({ upper: 110 }) },
  'robust_band, window_points 288': { method_key: 'robust_band', params: methodParams.robust_band.parse({}) },
  'robust_band, window_points 2880': {
    method_key: 'robust_band',
    params: methodParams.robust_band.parse({ window_points: 2_880 }),
  },
  'robust_band, window_points 20000': {
    method_key: 'robust_band',
    params: methodParams.robust_band.parse({ window_points: 20_000 }),
  },
}

function noisySeries(length: number): Series {
  const next = seededNormal(1)
  const values = Float64Array.from({ length }, () => 100 + next())
  values.fill(200, Math.floor(length / 2), Math.floor(length / 2) + 30)
  return { startNs: 0n, stepMinutes: 1, values, unknown: new Uint8Array(length), volumes: null }
}

/** Items per second of the best round; an item is one bucket, `perCall` of them per call. */
function bestRate(perCall: number, call: () => void): number {
  call()
  let best = 0
  for (let round = 0; round < rounds; round++) {
    const startMs = performance.now()
    let calls = 0
    while (performance.now() - startMs < secondsPerRound * 1000) {
      call()
      calls++
    }
    best = Math.max(best, (calls * perCall) / ((performance.now() - startMs) / 1000))
  }
  return Math.round(best)
}

const results = Object.entries(choices).flatMap(([name, choice]) =>
  lengths.map((length) => {
    const series = noisySeries(length)
    const evaluation = bestRate(length, () => evaluateSeries(series, choice))
    return {
      method: name,
      buckets: length,
      method_buckets_per_s: bestRate(length, () => scoreSeries(choice.method_key, series, choice.params)),
      evaluation_buckets_per_s: evaluation,
      evaluation_ms: Number(((length / evaluation) * 1000).toFixed(2)),
    }
  }),
)

const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
const machine = { node: process.version, cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length }
console.log(JSON.stringify({ bench: 'detection/cost', commit, machine, rounds, results }, null, 2))
