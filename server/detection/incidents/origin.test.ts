// Ranks origins by the anomalies alone, and together with the evidence of spans; only the rule, without a
// store.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import { CallGraph } from './call-graph.ts'
import type { Clue } from './clues.ts'
import { rankOrigins } from './origin.ts'
import type { TimedAnomaly } from './timed-anomalies.ts'

const minuteNs = 60_000_000_000n

function timed(service: string | null, from: number, more: Partial<Anomaly> = {}): TimedAnomaly {
  const anomaly = {
    ...{ id: `ano_${service}${from}`, metric_key: 'spans.error_ratio', score: 5, feedback: null },
    ...{ started_at: `minute ${from}`, ...more },
  }
  return {
    // The rule reads only these fields of the anomaly.
    anomaly: anomaly as Partial<Anomaly> as Anomaly,
    startedNs: BigInt(from) * minuteNs,
    seenUntilNs: BigInt(from + 30) * minuteNs,
    service,
  }
}

const graph = new CallGraph([
  ['gateway', 'checkout'],
  ['checkout', 'payments'],
])

const ranked = (members: readonly TimedAnomaly[], clues: readonly Clue[] | null = null, deploys = []) =>
  rankOrigins({ members, traces: clues === null ? null : { clues, graph }, deploys })
const namesOf = (...given: Parameters<typeof ranked>) => ranked(...given).map(({ service }) => service)

test('without spans the first and farthest deviation ranks first, and the evidence says that there are no spans', () => {
  assert.deepEqual(namesOf([timed('payments', 0), timed('gateway', 10)]), ['payments', 'gateway'])
  assert.deepEqual(namesOf([timed('payments', 0), timed('gateway', 0, { score: 50 })]), [
    'gateway',
    'payments',
  ])
  const [first] = ranked([timed('payments', 0)])
  assert.match(first?.why.at(-1) ?? '', /based on the anomalies alone/)
})

test('a caller whose callee fails too counts less, also where it was noticed at the same time', () => {
  const members = [timed('gateway', 0), timed('checkout', 0), timed('payments', 0)]
  assert.equal(namesOf(members, [])[0], 'payments')
})

test('traffic comes from callers, so the first caller ranks first', () => {
  const rate = { metric_key: 'spans.rate' }
  const members = [timed('payments', 0, rate), timed('checkout', 0, rate), timed('gateway', 0, rate)]
  assert.equal(namesOf(members, [])[0], 'gateway')
})

test('use of a resource is a service’s own, and is named as what shows the cause', () => {
  const memory = timed('checkout', 0, { metric_key: 'system.memory.utilization', score: 4 })
  const farther = timed('checkout', 0, { score: 6 })
  const [first] = ranked([memory, farther, timed('payments', 0)], [])
  assert.deepEqual([first?.service, first?.metric_key], ['checkout', 'system.memory.utilization'])
})

test('evidence from spans weighs more than the order of the anomalies', () => {
  const clue = { kind: 'failures', metricKey: 'spans.error_ratio', text: 'said by spans', weight: 1 } as const
  const [first] = ranked([timed('gateway', 0), timed('payments', 10)], [{ ...clue, service: 'payments' }])
  assert.deepEqual([first?.service, first?.why[0]], ['payments', 'said by spans'])
})

test('a service without an anomaly of its own may be the origin', () => {
  const clue = { kind: 'unanswered', metricKey: 'spans.rate', text: 'no answer', weight: 1 } as const
  const [first] = ranked([timed('checkout', 0)], [{ ...clue, service: 'payments' }])
  assert.deepEqual([first?.service, first?.metric_key], ['payments', 'spans.rate'])
})

test('a deploy just before points to its service, and one long before or of another does not', () => {
  const deploy = (service: string, minute: number): KnownDeploy => ({
    ...{ service, environment: null, version: '2', previous_version: '1', told_by: 'version' },
    atNs: BigInt(minute) * minuteNs,
  })
  const members = [timed('a', 100), timed('b', 100)]
  const first = (...deploys: KnownDeploy[]) => rankOrigins({ members, traces: null, deploys })[0]
  assert.equal(first(deploy('b', 95))?.service, 'b')
  assert.match(first(deploy('b', 95))?.why.join(' ') ?? '', /Version 2 of b was deployed/)
  assert.equal(first(deploy('b', 20))?.service, 'a')
  assert.equal(first(deploy('c', 95))?.service, 'a')
})

test('scores add up to 1, and anomalies with the verdict not_an_anomaly are not evidence while others exist', () => {
  const none = { feedback: { verdict: 'not_an_anomaly' } as Anomaly['feedback'] }
  const all = ranked([timed('a', 0, none), timed('b', 5), timed('c', 7), timed(null, 8)])
  assert.equal(all[0]?.service, 'b')
  assert.ok(Math.abs(all.reduce((sum, { score }) => sum + score, 0) - 1) < 0.01)
  assert.equal(ranked([timed('a', 0, none)])[0]?.service, 'a')
})
