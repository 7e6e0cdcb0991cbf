// What a detector costs: buckets per second of CPU on one core, for every method alone and for a whole
// evaluation with the alarm layer, on seeded noise around a daily wave with an incident in it. CPU time and
// the best of several rounds, so that other work of the machine does not count.
//
//   npm run bench -- detection/cost [only these, by the beginnings of their names, by comma]

import { methodKeys, methodParams } from '../../contract/detection/methods.ts'
import { type MethodChoice, scoreSeries } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries, peersOf } from '../../server/detection/runs/evaluate.ts'
import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import type { Series } from '../../server/detection/scoring/series.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'

const rounds = 3
const secondsPerRound = 0.4

/** Windows of one day, one week and 90 days of minutes. */
const [day, week, season] = [1_440, 10_080, 129_600]

interface Measured {
  readonly choice: MethodChoice
  readonly lengths: readonly number[]
  /** Series of the group; each is judged beside all others. */
  readonly group?: number
}

const plain = (choice: MethodChoice): Measured => ({ choice, lengths: [day, week] })
const band = (window_points: number): Measured => ({
  choice: { method_key: 'robust_band', params: methodParams.robust_band.parse({ window_points }) },
  lengths: [day, week, season],
})
const among = (group: number): Measured => ({
  choice: { method_key: 'peer_outlier', params: methodParams.peer_outlier.parse({}) },
  lengths: [day, week],
  group,
})
const forest = (params: object, lengths: readonly number[]): Measured => ({
  choice: { method_key: 'rcf', params: methodParams.rcf.parse(params) },
  lengths,
})

const all: Record<string, Measured> = {
  threshold: {
    choice: { method_key: 'threshold', params: methodParams.threshold.parse({ upper: 110 }) },
    lengths: [day, week, season],
  },
  'robust_band, window_points 288': band(288),
  'robust_band, window_points 2880': band(2_880),
  'robust_band, window_points 20000': band(20_000),
  seasonal_band: plain({ method_key: 'seasonal_band', params: methodParams.seasonal_band.parse({}) }),
  record_range: plain({ method_key: 'record_range', params: methodParams.record_range.parse({}) }),
  level_shift: plain({ method_key: 'level_shift', params: methodParams.level_shift.parse({}) }),
  rate_test: plain({ method_key: 'rate_test', params: methodParams.rate_test.parse({}) }),
  absence: plain({ method_key: 'absence', params: methodParams.absence.parse({}) }),
  shape_discord: plain({ method_key: 'shape_discord', params: methodParams.shape_discord.parse({}) }),
  spectral_residual: plain({
    method_key: 'spectral_residual',
    params: methodParams.spectral_residual.parse({}),
  }),
  sub_pca: plain({ method_key: 'sub_pca', params: methodParams.sub_pca.parse({}) }),
  rcf: forest({}, [day, week]),
  'rcf, 100 trees of 512, shingle 32': forest({ trees: 100, sample_points: 512, shingle_points: 32 }, [day]),
  'peer_outlier, 12 series': among(12),
  'peer_outlier, 50 series': among(50),
  auto: plain({ method_key: 'auto', params: methodParams.auto.parse({}) }),
}
for (const key of methodKeys) {
  if (!Object.values(all).some(({ choice }) => choice.method_key === key))
    throw new Error(`${key} is missing`)
}
const wanted = process.argv[2]?.split(',')
const measured = Object.entries(all).filter(([name]) => wanted?.some((each) => name.startsWith(each)) ?? true)

function noisySeries(length: number, seed: number): Series {
  const next = seededNormal(seed)
  const values = Float64Array.from({ length }, (_, i) => 100 + 5 * Math.sin((2 * Math.PI * i) / day) + next())
  if (seed === 1) values.fill(200, Math.floor(length / 2), Math.floor(length / 2) + 30)
  return { startNs: 0n, stepMinutes: 1, values, unknown: new Uint8Array(length), volumes: null }
}

const cpuSeconds = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1e6
}

/** Items per CPU second of the best round; an item is one bucket, `perCall` of them per call. */
function bestRate(perCall: number, call: () => void): number {
  call()
  let best = 0
  for (let round = 0; round < rounds; round++) {
    const start = cpuSeconds()
    let calls = 0
    while (cpuSeconds() - start < secondsPerRound) {
      call()
      calls++
    }
    best = Math.max(best, (calls * perCall) / (cpuSeconds() - start))
  }
  return Math.round(best)
}

for (const [name, { choice, group = 1, lengths }] of measured) {
  for (const length of lengths) {
    const [series, ...others] = Array.from({ length: group }, (_, i) => noisySeries(length, i + 1))
    if (series === undefined) throw new Error('A group has at least one series')
    const peers = peersOf([series, ...others], choice)[0]
    const evaluation = bestRate(length, () => evaluateSeries(series, choice, undefined, peers))
    const method = bestRate(length, () => scoreSeries(choice.method_key, series, choice.params, peers))
    report('Cost of a method', {
      method: name,
      buckets: length,
      'buckets/s of the method': method,
      'buckets/s with the alarm layer': evaluation,
      'ms an evaluation': rounded((length / evaluation) * 1000),
    })
  }
}
