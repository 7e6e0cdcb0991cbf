// What a detector costs: buckets per second of CPU on one core, for a whole evaluation by every method with
// the alarm layer, on seeded noise around a daily wave with an incident in it. CPU time and the best of
// several rounds, so that other work of the machine does not count.
//
//   npm run bench -- detection/cost [only these, by the beginnings of their names, by comma]

import { comparesPeers, methodKeys } from '../../contract/detection/methods.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries, peersOf } from '../../server/detection/runs/evaluate.ts'
import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import type { Series } from '../../server/detection/scoring/series.ts'
import { report } from '../report.ts'
import { choiceOf, seriesOf } from './judging.ts'

const rounds = 3
const secondsPerRound = 0.4

/** Windows of one day and one week of minutes. */
const lengths = [1_440, 10_080]
/** Series of a group whose method compares them; each is judged beside all others. */
const groupSize = 12

const all: [name: string, choice: MethodChoice, group: number][] = methodKeys.map((key) => {
  if (comparesPeers(key)) return [`${key}, ${groupSize} series`, choiceOf(key), groupSize]
  return [key, choiceOf(key, key === 'threshold' ? { upper: 110 } : {}), 1]
})
const wanted = process.argv[2]?.split(',')
const measured = all.filter(([name]) => wanted?.some((each) => name.startsWith(each)) ?? true)

function noisySeries(length: number, seed: number): Series {
  const next = seededNormal(seed)
  const values = Float64Array.from(
    { length },
    (_, i) => 100 + 5 * Math.sin((2 * Math.PI * i) / 1440) + next(),
  )
  if (seed === 1) values.fill(200, Math.floor(length / 2), Math.floor(length / 2) + 30)
  return seriesOf(values, 1)
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

for (const [name, choice, group] of measured) {
  for (const length of lengths) {
    const [series, ...others] = Array.from({ length: group }, (_, i) => noisySeries(length, i + 1))
    if (series === undefined) throw new Error('A group has at least one series')
    const peers = peersOf([series, ...others], choice)[0]
    const evaluation = bestRate(length, () => evaluateSeries(series, choice, undefined, peers))
    report('Cost of a method', {
      method: name,
      buckets: length,
      'buckets/s with the alarm layer': evaluation,
    })
  }
}
