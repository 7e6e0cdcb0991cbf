// Which anomalies are one incident. Two belong together when they overlap in time and share a service or an
// attribute, are of services of which one calls the other, followed the same deploy, or began together. The
// relation is transitive. No I/O.
//
// An incident has the id of its oldest record. Anomalies that are recorded later have later ids, so an
// incident keeps its id when they join, and two that become one have the older id of the two.

import type { MemberLink } from '../../../contract/detection/incidents.ts'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import type { CallGraph } from './call-graph.ts'
import type { TimedAnomaly } from './timed-anomalies.ts'

/**
 * Buckets of different detectors have different widths, so simultaneous events may appear up to 15 minutes
 * apart.
 */
export const slackNs = 15n * nsPerMinute
/** A failure spreads from one service to the next within this time, also in the widest buckets. */
const spreadNs = 60n * nsPerMinute
/**
 * In one service a failure may follow its cause by hours, such as a process that is killed after a leak. An
 * anomaly that lasts for days must not join everything that happens meanwhile to its incident.
 */
const sameServiceNs = 12n * 60n * nsPerMinute
/** Releases of several services that belong together are rolled out within this time. */
const releaseNs = 15n * nsPerMinute

/** What is known beside the anomalies. */
export interface Surroundings {
  readonly graph: CallGraph
  readonly deploys: readonly KnownDeploy[]
}

export interface IncidentGroup {
  readonly id: string
  /** By start, then by id. */
  readonly members: readonly TimedAnomaly[]
  /** By anomaly id. */
  readonly because: ReadonlyMap<string, ReadonlySet<MemberLink>>
}

/** The incident that has this anomaly as its oldest record. */
function incidentIdOf(anomalyId: string): string {
  return `inc_${anomalyId.replace(/^ano_/, '')}`
}

/** The anomaly that an incident with this id has, or had, as its oldest record; null for any other text. */
export function anomalyIdOf(incidentId: string): string | null {
  return incidentId.startsWith('inc_') ? `ano_${incidentId.slice(4)}` : null
}

/** By start, then by id. `around` is asked for pairs of anomalies whose times alone do not decide. */
export function groupAnomalies(
  anomalies: readonly TimedAnomaly[],
  around: (one: TimedAnomaly) => Surroundings,
): IncidentGroup[] {
  const ordered = anomalies.toSorted(byStart)
  const parents = ordered.map((_, i) => i)
  const rootOf = (i: number): number => {
    let root = i
    while (parents[root] !== root) root = parents[root] ?? root
    parents[i] = root
    return root
  }
  const because = new Map<string, Set<MemberLink>>()
  for (const [i, one] of ordered.entries()) {
    for (let j = i - 1; j >= 0; j--) {
      const other = ordered[j]
      if (other === undefined || one.startedNs - other.startedNs > sameServiceNs) break
      const links = linksOf(other, one, () => around(other))
      if (links.length === 0) continue
      parents[rootOf(i)] = rootOf(j)
      for (const { anomaly } of [one, other]) {
        const known = because.get(anomaly.id) ?? new Set()
        for (const link of links) known.add(link)
        because.set(anomaly.id, known)
      }
    }
  }
  const groups = Map.groupBy(ordered, (_, i) => rootOf(i))
  return [...groups.values()].map((members) => ({ id: idOf(members), members, because }))
}

/** Why two anomalies belong together; empty where they don't. `one` is the one that began first. */
function linksOf(one: TimedAnomaly, other: TimedAnomaly, around: () => Surroundings): MemberLink[] {
  const apartNs = other.startedNs - one.startedNs
  if (other.startedNs > one.seenUntilNs + slackNs || apartNs > sameServiceNs) return []
  if (one.service !== null && one.service === other.service) return ['same_service']
  if (apartNs > spreadNs) return []
  if (one.service === null || other.service === null) {
    return [
      ...(shareAttribute(one, other) ? (['same_attributes'] as const) : []),
      ...(apartNs <= slackNs ? (['began_together'] as const) : []),
    ]
  }
  const { deploys, graph } = around()
  const areApart = graph.areApart(one.service, other.service)
  return [
    ...(shareAttribute(one, other) ? (['same_attributes'] as const) : []),
    ...(graph.isCall(one.service, other.service) ? (['calls'] as const) : []),
    ...(followOneRelease(one, other, deploys) ? (['same_deploy'] as const) : []),
    ...(apartNs <= slackNs && !areApart ? (['began_together'] as const) : []),
  ]
}

export function byStart(one: TimedAnomaly, other: TimedAnomaly): number {
  if (one.startedNs !== other.startedNs) return one.startedNs < other.startedNs ? -1 : 1
  return one.anomaly.id < other.anomaly.id ? -1 : 1
}

function idOf(members: readonly TimedAnomaly[]): string {
  const [oldest = ''] = members.map(({ anomaly }) => anomaly.id).sort()
  return incidentIdOf(oldest)
}

/** Whether both series have a label with the same value, other than the service: a host, a region. */
function shareAttribute({ anomaly: { group } }: TimedAnomaly, other: TimedAnomaly): boolean {
  return Object.entries(group).some(
    ([key, value]) =>
      key !== 'service' &&
      value !== '' &&
      Object.hasOwn(other.anomaly.group, key) &&
      other.anomaly.group[key] === value,
  )
}

/** Whether both services were deployed at about the same time, and both anomalies began soon after that. */
function followOneRelease(one: TimedAnomaly, other: TimedAnomaly, deploys: readonly KnownDeploy[]): boolean {
  const before = ({ service, startedNs }: TimedAnomaly) =>
    deploysOf(deploys, service).filter(
      ({ atNs }) => atNs <= startedNs + slackNs && atNs + spreadNs >= startedNs,
    )
  return before(one).some(({ atNs }) =>
    before(other).some((deploy) => {
      const apartNs = deploy.atNs - atNs
      return apartNs <= releaseNs && apartNs >= -releaseNs
    }),
  )
}

/** Each list of deploys by service: a list is searched for every pair of anomalies. */
const byService = new WeakMap<readonly KnownDeploy[], ReadonlyMap<string, readonly KnownDeploy[]>>()

function deploysOf(deploys: readonly KnownDeploy[], service: string | null): readonly KnownDeploy[] {
  const known = byService.get(deploys) ?? Map.groupBy(deploys, (deploy) => deploy.service)
  byService.set(deploys, known)
  return service === null ? [] : (known.get(service) ?? [])
}
