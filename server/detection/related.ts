// Which anomalies of an organisation are related. One failure shows in several series: in the service that
// fails, in those that call it, and in their logs. Nothing of this is stored. It is computed from the
// anomalies that are visible at the moment, so hidden and erased anomalies are related to nothing.
//
// Two anomalies are related when they overlap in time and either belong to the same service or began within
// an hour of each other. Overlap alone would relate everything that happens during a leak of a day to that
// leak. The relation is not transitive: a chain of overlaps would make a busy week one incident.

import type { RelatedAnomalies } from '../../contract/detection/context.ts'
import type { Anomaly } from '../../contract/detection/detectors.ts'
import { type Ns, nsPerMinute } from '../../contract/values/instant.ts'
import { partitionPoint } from '../core/partition-point.ts'
import { Pace } from '../core/turns/pace.ts'
import type { DetectionStore } from './detectors/store.ts'
import { earliest, latest, nsOf, type TimedAnomaly, withTimes } from './incidents/timed-anomalies.ts'

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
  if (!areRelated(one, other)) return []
  return [
    ...(areOfOneService(one, other) ? (['same_service'] as const) : []),
    ...(beganTogether(one, other) ? (['began_together'] as const) : []),
  ]
}

/** Allocates nothing: it is asked for hundreds of thousands of pairs. */
function areRelated(one: TimedAnomaly, other: TimedAnomaly): boolean {
  if (one.startedNs > other.seenUntilNs + slackNs || other.startedNs > one.seenUntilNs + slackNs) return false
  return (areOfOneService(one, other) || beganTogether(one, other)) && one.anomaly.id !== other.anomaly.id
}

function areOfOneService(one: TimedAnomaly, other: TimedAnomaly): boolean {
  return one.service !== null && one.service === other.service
}

function beganTogether(one: TimedAnomaly, other: TimedAnomaly): boolean {
  const apartNs = one.startedNs - other.startedNs
  return apartNs <= togetherNs && apartNs >= -togetherNs
}

/**
 * The ids of related anomalies, by anomaly id: at most {@link shownMax}, those that began closest in time
 * first. Every anomaly is compared with all around it, so other work of the event loop runs in between.
 */
export async function relatedIdsOf(
  store: DetectionStore,
  tenantId: string,
  anomalies: readonly Anomaly[],
  pace = new Pace(),
): Promise<Map<string, string[]>> {
  const around = await anomaliesAround({ store, tenantId, pace }, anomalies, halvingsMax)
  const byId = new Map(around.map((one) => [one.anomaly.id, one]))
  const ids = new Map<string, string[]>()
  for (const { id } of anomalies) {
    if (pace.isOver()) await pace.turn()
    const own = byId.get(id)
    const nearest = own === undefined ? [] : relatedTo(own, around).nearest
    ids.set(
      id,
      nearest.map(({ anomaly }) => anomaly.id),
    )
  }
  return ids
}

/** The anomalies that one is related to, and why. */
export async function relatedOf(
  store: DetectionStore,
  tenantId: string,
  anomaly: Anomaly,
  pace = new Pace(),
): Promise<RelatedAnomalies> {
  const around = await anomaliesAround({ store, tenantId, pace }, [anomaly], 0)
  const own = around.find((one) => one.anomaly.id === anomaly.id)
  if (own === undefined) return { count: 0, anomalies: [] }
  const { count, nearest } = relatedTo(own, around)
  return {
    count,
    anomalies: nearest.map((other) => {
      const { group, id, metric_key, reason, started_at } = other.anomaly
      return { id, started_at, metric_key, group, reason, because: relationsOf(own, other) }
    }),
  }
}

/**
 * How many are related, and the nearest {@link shownMax} of them: by the distance of their starts, then by
 * id.
 */
export function relatedTo(
  own: TimedAnomaly,
  around: readonly TimedAnomaly[],
): { readonly count: number; readonly nearest: readonly TimedAnomaly[] } {
  const nearest: { readonly other: TimedAnomaly; readonly apart: number }[] = []
  let count = 0
  for (const other of around) {
    if (!areRelated(own, other)) continue
    count++
    const apart = Math.abs(Number(other.startedNs - own.startedNs))
    const isNearer = (than: (typeof nearest)[number]) =>
      apart < than.apart || (apart === than.apart && other.anomaly.id < than.other.anomaly.id)
    const last = nearest[shownMax - 1]
    if (last !== undefined && !isNearer(last)) continue
    nearest.splice(
      partitionPoint(nearest.length, (i) => isNearer(nearest[i] ?? { other, apart })),
      0,
      { other, apart },
    )
    if (nearest.length > shownMax) nearest.pop()
  }
  return { count, nearest: nearest.map(({ other }) => other) }
}

/** Whose anomalies are read, and the pace of reading them. */
interface Scope {
  readonly store: DetectionStore
  readonly tenantId: string
  readonly pace: Pace
}

/** All anomalies that may be related to these, including themselves. */
async function anomaliesAround(
  scope: Scope,
  anomalies: readonly Anomaly[],
  halvingsLeft: number,
): Promise<TimedAnomaly[]> {
  const spans = anomalies.map(({ seen_until, started_at }) => {
    return { startNs: nsOf(started_at), endNs: nsOf(seen_until) }
  })
  const found = await listedAround(scope, spans, halvingsLeft, null)
  const distinct = new Map([...found, ...anomalies].map((one) => [one.id, one]))
  return withTimes(scope.store, scope.tenantId, [...distinct.values()], scope.pace)
}

interface Span {
  readonly startNs: Ns
  readonly endNs: Ns
}

/**
 * What the store lists around these times. Where that is too long, around each half of them: but not again
 * where a half spans the same time as the whole.
 */
async function listedAround(
  scope: Scope,
  spans: readonly Span[],
  halvingsLeft: number,
  whole: (Span & { readonly found: readonly Anomaly[] }) | null,
): Promise<readonly Anomaly[]> {
  const [first, ...rest] = spans
  if (first === undefined) return []
  const startNs = earliest(first.startNs, ...rest.map((one) => one.startNs))
  const endNs = latest(first.endNs, ...rest.map((one) => one.endNs))
  const isWhole = startNs === whole?.startNs && endNs === whole.endNs
  const filter = {
    range_start: startNs > slackNs ? startNs - slackNs - 1n : 0n,
    range_end: endNs + slackNs + 1n,
  }
  const { pace, store, tenantId } = scope
  const page = { limit: listedMax, filter, before: null, pace }
  const found = isWhole ? whole.found : await store.listAnomalies(tenantId, page)
  if (found.length < listedMax || rest.length === 0 || halvingsLeft === 0) return found
  const middle = spans.length >> 1
  const all: Anomaly[] = []
  for (const half of [spans.slice(0, middle), spans.slice(middle)]) {
    all.push(...(await listedAround(scope, half, halvingsLeft - 1, { startNs, endNs, found })))
  }
  return all
}
