// Which anomalies of an organisation belong together. One failure shows in several series: the service that fails, those
// that call it, their logs. Nothing of this is stored: it is derived from the anomalies that can be read at this moment,
// so what is hidden or erased is related to nothing.
//
// Two are related when they overlap in time and either are of the same service or began within an hour of each other.
// Overlap alone would tie everything that happens during a leak of a day to the leak. The relation holds between two,
// and is not passed on to a third: a chain of overlaps would make one incident of a busy week.

import type { Anomaly, DetectorScope } from '../../contract/detection.ts'
import type { RelatedAnomalies } from '../../contract/detection-context.ts'
import { type Ns, nsPerMinute, parseInstant } from '../../contract/instant.ts'
import { idsMax } from './anomalies/id-list.ts'
import type { DetectionStore } from './detectors/store.ts'

/** Buckets of different detectors have different widths, so what happens at once may look a quarter of an hour apart. */
const slackNs = 15n * nsPerMinute
/** What spreads from one service to the next does so within this time, widest buckets included. */
const togetherNs = 60n * nsPerMinute
/** Looked through at once. */
const lookedThroughMax = 1000
/** How often a time with more than that is halved. */
const halvingsMax = 3
const shownMax = 20

/** An anomaly and the service it is of, by its group or by the scope of its detector; null where neither names one. */
export interface PlacedAnomaly {
  readonly anomaly: Anomaly
  readonly startedNs: Ns
  readonly seenUntilNs: Ns
  readonly service: string | null
}

type Relation = RelatedAnomalies['anomalies'][number]['because'][number]

/** Why two belong together; empty where they don't. Symmetric. */
export function relationsOf(one: PlacedAnomaly, other: PlacedAnomaly): Relation[] {
  const isApart = one.startedNs > other.seenUntilNs + slackNs || other.startedNs > one.seenUntilNs + slackNs
  if (isApart || one.anomaly.id === other.anomaly.id) return []
  const apartNs = one.startedNs - other.startedNs
  const isTogether = apartNs <= togetherNs && apartNs >= -togetherNs
  return [
    ...(one.service !== null && one.service === other.service ? (['same_service'] as const) : []),
    ...(isTogether ? (['began_together'] as const) : []),
  ]
}

/** By id, the ids of the anomalies each is related to: those of {@link shownMax} at most, the closest beginnings first. */
export async function relatedIdsOf(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
): Promise<Map<string, string[]>> {
  const around = await placedAround(store, tenantId, anomalies, 0)
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
  const others = relatedTo(anomaly, await placedAround(store, tenantId, [anomaly], halvingsMax))
  return {
    count: others.length,
    anomalies: others.slice(0, shownMax).map(({ because, other }) => {
      const { group, id, metric_key, reason, started_at } = other.anomaly
      return { id, started_at, metric_key, group, reason, because }
    }),
  }
}

function relatedTo(anomaly: Anomaly, around: readonly PlacedAnomaly[]) {
  const own = around.find((one) => one.anomaly.id === anomaly.id)
  if (own === undefined) return []
  const distance = ({ startedNs }: PlacedAnomaly) => Math.abs(Number(startedNs - own.startedNs))
  return around
    .map((other) => ({ other, because: relationsOf(own, other) }))
    .filter(({ because }) => because.length > 0)
    .sort(
      (a, b) => distance(a.other) - distance(b.other) || (a.other.anomaly.id < b.other.anomaly.id ? -1 : 1),
    )
}

/** All that may be related to these, themselves included. Where there are too many, the time is halved. */
async function placedAround(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
  halvings: number,
): Promise<PlacedAnomaly[]> {
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
  const found = await store.listAnomalies(tenantId, { limit: lookedThroughMax, filter, before: null })
  if (found.length === lookedThroughMax && rest.length > 0 && halvings < halvingsMax) {
    const middle = anomalies.length >> 1
    const halves = [anomalies.slice(0, middle), anomalies.slice(middle)]
    const placed = await Promise.all(halves.map((half) => placedAround(store, tenantId, half, halvings + 1)))
    return [...new Map(placed.flat().map((one) => [one.anomaly.id, one])).values()]
  }
  return place(store, tenantId, [...new Map([...found, ...anomalies].map((one) => [one.id, one])).values()])
}

async function place(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
): Promise<PlacedAnomaly[]> {
  const nameless = anomalies.filter(({ group }) => group.service === undefined)
  const scopes = await scopesOf(store, tenantId, [...new Set(nameless.map(({ detector_id }) => detector_id))])
  return anomalies.map((anomaly) => {
    const scope = scopes.get(anomaly.detector_id)
    const ofScope = scope?.metricKey === anomaly.metric_key ? scope.scope.service : undefined
    return {
      anomaly,
      startedNs: nsOf(anomaly.started_at),
      seenUntilNs: nsOf(anomaly.seen_until),
      service: anomaly.group.service || ofScope || null,
    }
  })
}

async function scopesOf(store: DetectionStore, tenantId: string, ids: readonly string[]) {
  const scopes = new Map<string, { readonly metricKey: string; readonly scope: DetectorScope }>()
  for (let i = 0; i < ids.length; i += idsMax) {
    for (const [id, { definition }] of await store.findDetectors(tenantId, ids.slice(i, i + idsMax))) {
      scopes.set(id, { metricKey: definition.metric_key, scope: definition.scope })
    }
  }
  return scopes
}

/** An instant that this program has written itself. */
export function nsOf(text: string): Ns {
  const read = parseInstant(text)
  if ('ns' in read) return read.ns
  throw new Error(`An instant of ours is none: ${text}`)
}
