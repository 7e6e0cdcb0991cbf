// Which deviations a neighbour explains: the same as comparing each anomaly with every other one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import { CallGraph } from './call-graph.ts'
import { type ClassedAnomaly, explanations, withClass } from './explained.ts'

const minuteNs = 60_000_000_000n
const graph = new CallGraph([
  ['gateway', 'checkout'],
  ['gateway', 'search'],
  ['checkout', 'payments'],
  ['payments', 'checkout'],
])

const someAnomaly = fc.record({
  from: fc.integer({ min: 0, max: 60 }),
  service: fc.constantFrom('gateway', 'checkout', 'search', 'payments', 'unseen', null),
  metric_key: fc.constantFrom('spans.error_ratio', 'spans.rate', 'memory.usage'),
})

/** From the definition. */
function isExplained(one: ClassedAnomaly, all: readonly ClassedAnomaly[]): boolean {
  return all.some(({ kind, service, startedNs }) => {
    if (one.service === null || service === null || service === one.service) return false
    if (one.kind === 'own' || startedNs > one.startedNs + 15n * minuteNs) return false
    return one.kind === 'traffic'
      ? kind === 'traffic' && graph.reached(service).has(one.service)
      : kind !== 'traffic' && graph.reached(one.service).has(service)
  })
}

test('what a neighbour explains is what comparing every pair of anomalies finds', () => {
  const property = fc.property(fc.array(someAnomaly, { maxLength: 12 }), (given) => {
    const members = given
      .toSorted((a, b) => a.from - b.from)
      .map(({ from, metric_key, service }) =>
        withClass({
          // The rule reads only the metric of the anomaly.
          anomaly: { metric_key } as Anomaly,
          startedNs: BigInt(from) * minuteNs,
          seenUntilNs: 0n,
          service,
        }),
      )
    const found = explanations(members, graph)
    for (const one of members) assert.equal(found(one), isExplained(one, members))
    assert.ok(!members.some(explanations(members, null)), 'without spans nothing is explained')
  })
  fc.assert(property, { numRuns: 500 })
})
