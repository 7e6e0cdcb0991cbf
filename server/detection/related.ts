// Which anomalies of an organisation are related. One failure shows in several series: in the service that
// fails, in those that call it, and in their logs. Nothing of this is stored. It is computed from the
// anomalies that are visible at the moment, so hidden and erased anomalies are related to nothing.
//
// Two anomalies are related when they overlap in time and either belong to the same service or began within
// an hour of each other. Overlap alone would relate everything that happens during a leak of a day to that
// leak. The relation is not transitive: a chain of overlaps would make a busy week one incident.

import type { RelatedAnomalies } from '../../contract/detection/context.ts'
import type { Anomaly } from '../../contract/detection/detectors.ts'
import { nsPerMinute } from '../../contract/values/instant.ts'
import type { DetectionStore } from './detectors/store.ts'
import { nsOf, type TimedAnomaly, withTimes } from './incidents/timed-anomalies.ts'

/**
 * Buckets of different detectors have different widths, so simultaneous events may
 * appear up to 15 minutes apart.
 */
const slackNs = 15n * nsPerMinute
/** A failure spreads from one service to the next within this time, also in the widest buckets. */
const togetherNs = 60n * nsPerMinute
/** Anomalies listed at once. */
const listedMax = 1000
/** How often a list that is too long is divided in two. */
const halvingsMax = 3
const shownMax = 20

type Relation = RelatedAnomalies['anomalies'][number]['because'][number]

/** Why two anomalies are related; empty where they are not. Symmetric. */
export function relationsOf(one: TimedAnomaly, other: TimedAnomaly): Relation[] {
  const isApart = one.startedNs > other.seenUntilNs + slackNs || other.startedNs > one.seenUntilNs + slackNs
  if (isApart || one.anomaly.id === other.anomaly.id) return []
  const apartNs = one.startedNs - other.startedNs
  const isTogether = apartNs <= togetherNs && apartNs >= -togetherNs
  return [
    ...(one.service !== null && one.service === other.service ? (['same_service'] as const) : []),
    ...(isTogether ? (['began_together'] as const) : []),
  ]
}

/**
 * The ids of related anomalies, by anomaly id: at most {@link shownMax}, those that
 * began closest in time first.
 */
export async function relatedIdsOf(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
): Promise<Map<string, string[]>> {
  const around = await anomaliesAround(store, tenantId, anomalies, 0)
  return new Map(
    anomalies.map((anomaly) => {
      const others = relatedTo(anomaly, around)
      return [anomaly.id, others.slice(0, shownMax).map(({ other }) => other.anomaly.id)]
    }),
  )
}

/** The anomalies that one is related to, and why. */
export async function relatedOf(
  store: DetectionStore,
  tenantId: string,
  anomaly: Anomaly,
): Promise<RelatedAnomalies> {
  const others = relatedTo(anomaly, await anomaliesAround(store, tenantId, [anomaly], halvingsMax))
  return {
    count: others.length,
    anomalies: others.slice(0, shownMax).map(({ because, other }) => {
      const { group, id, metric_key, reason, started_at } = other.anomaly
      return { id, started_at, metric_key, group, reason, because }
    }),
  }
}

function relatedTo(anomaly: Anomaly, around: readonly TimedAnomaly[]) {
  const own = around.find((one) => one.anomaly.id === anomaly.id)
  if (own === undefined) return []
  const distance = ({ startedNs }: TimedAnomaly) => Math.abs(Number(startedNs - own.startedNs))
  return around
    .map((other) => ({ other, because: relationsOf(own, other) }))
    .filter(({ because }) => because.length > 0)
    .sort(
      (a, b) => distance(a.other) - distance(b.other) || (a.other.anomaly.id < b.other.anomaly.id ? -1 : 1),
    )
}

/**
 * All anomalies that may be related to these, including themselves. A list that is too long is divided in
 * two.
 */
async function anomaliesAround(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
  halved: number,
): Promise<TimedAnomaly[]> {
  const [first, ...rest] = anomalies
  if (first === undefined) return []
  let [startNs, endNs] = [nsOf(first.started_at), nsOf(first.seen_until)]
  for (const { seen_until, started_at } of rest) {
    if (nsOf(started_at) < startNs) startNs = nsOf(started_at)
    if (nsOf(seen_until) > endNs) endNs = nsOf(seen_until)
  }
  const filter = {
    range_start: startNs > slackNs ? startNs - slackNs - 1n : 0n,
    range_end: endNs + slackNs + 1n,
  }
  const found = await store.listAnomalies(tenantId, { limit: listedMax, filter, before: null })
  if (found.length === listedMax && rest.length > 0 && halved < halvingsMax) {
    const middle = anomalies.length >> 1
    const halves = [anomalies.slice(0, middle), anomalies.slice(middle)]
    const parts = await Promise.all(halves.map((half) => anomaliesAround(store, tenantId, half, halved + 1)))
    return [...new Map(parts.flat().map((one) => [one.anomaly.id, one])).values()]
  }
  return withTimes(store, tenantId, [
    ...new Map([...found, ...anomalies].map((one) => [one.id, one])).values(),
  ])
}
