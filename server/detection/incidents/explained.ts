// Which deviations may come from a neighbour that deviates too: failures, slowness and traffic come to a
// service from its neighbours, use of memory or processors does not. No I/O, and the work grows with the
// number of services and calls, not with the number of pairs of anomalies.

import type { Ns } from '../../../contract/values/instant.ts'
import type { CallGraph } from './call-graph.ts'
import { slackNs } from './grouping.ts'
import { earliest, type TimedAnomaly } from './timed-anomalies.ts'

/** `own`: no neighbour can cause a deviation of it. */
type MetricClass = 'failures' | 'traffic' | 'own'

const failurePattern = /(?:^|[._-])(?:latency|duration|errors?|failures?|failed|time|p\d\d)(?:$|[._-])/i
const trafficPattern = /(?:^|[._-])(?:rate|requests?|count|throughput|load|traffic|visitors)(?:$|[._-])/i

function classOf(metricKey: string): MetricClass {
  if (failurePattern.test(metricKey)) return 'failures'
  return trafficPattern.test(metricKey) ? 'traffic' : 'own'
}

/** An anomaly with the class of its metric, by the usual words of metric names. */
export interface ClassedAnomaly extends TimedAnomaly {
  readonly kind: MetricClass
}

export function withClass(one: TimedAnomaly): ClassedAnomaly {
  return { ...one, kind: classOf(one.anomaly.metric_key) }
}

/** By service, its first anomaly in the order of the list. */
export function firstByService(members: readonly ClassedAnomaly[]): Map<string | null, ClassedAnomaly> {
  const first = new Map<string | null, ClassedAnomaly>()
  for (const member of members) if (!first.has(member.service)) first.set(member.service, member)
  return first
}

/**
 * Tells of each of these anomalies whether its deviation may come from a neighbour that deviates too:
 * failures and slowness from a callee, traffic from a caller.
 *
 * @param all in order of their start
 */
export function explanations(
  all: readonly ClassedAnomaly[],
  graph: CallGraph | null,
): (member: ClassedAnomaly) => boolean {
  if (graph === null) return () => false
  const callers = firstByService(all.filter(({ kind }) => kind === 'traffic'))
  const callees = firstByService(all.filter(({ kind }) => kind !== 'traffic'))
  // By service, when the first neighbour deviated that may be the reason.
  const trafficNs = new Map<string, Ns>()
  const failuresNs = new Map<string, Ns>()
  for (const service of new Set(all.map((member) => member.service))) {
    if (service === null) continue
    const asCaller = callers.get(service)
    for (const neighbour of graph.reached(service)) {
      if (neighbour === service) continue
      if (asCaller !== undefined) lower(trafficNs, neighbour, asCaller.startedNs)
      const callee = callees.get(neighbour)
      if (callee !== undefined) lower(failuresNs, service, callee.startedNs)
    }
  }
  return ({ kind, service, startedNs }) => {
    if (service === null || kind === 'own') return false
    const firstNs = (kind === 'traffic' ? trafficNs : failuresNs).get(service)
    return firstNs !== undefined && firstNs <= startedNs + slackNs
  }
}

function lower(times: Map<string, Ns>, service: string, ns: Ns): void {
  times.set(service, earliest(ns, times.get(service) ?? ns))
}
