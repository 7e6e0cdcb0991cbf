// Which anomalies are one incident. Two belong together when they overlap in time and share a service or an
// attribute, are of services of which one calls the other, followed the same deploy, or began together. The
// relation is transitive. No I/O.
//
// An incident has the id of its oldest record. Anomalies that are recorded later have later ids, so an
// incident keeps its id when they join, and two that become one have the older id of the two.

import type { MemberLink } from '../../../contract/detection/incidents.ts'
import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import { partitionPoint } from '../../core/partition-point.ts'
import { Pace } from '../../core/turns/pace.ts'
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

/**
 * By start, then by id. `around` is asked for pairs of anomalies whose times alone do not decide. All pairs
 * that overlap are compared, so other work of the event loop runs in between.
 */
export async function groupAnomalies(
  anomalies: readonly TimedAnomaly[],
  around: (one: TimedAnomaly) => Surroundings,
  pace = new Pace(),
): Promise<IncidentGroup[]> {
  const members = membersOf(anomalies.toSorted(byStart), around)
  for (const [i, member] of members.entries()) {
    if (pace.isOver()) await pace.turn()
    for (let j = i - 1; j >= member.sameServiceFrom; j--) {
      const earlier = members[j]
      if (earlier !== undefined && earlier.overlapsUntil > i) join(earlier, member)
    }
  }
  const because = new Map(members.map(({ links, one }) => [one.anomaly.id, links]))
  return [...Map.groupBy(members, rootOf).values()].map((group) => {
    const own = group.map(({ one }) => one)
    return { id: idOf(own), members: own, because }
  })
}

/** An anomaly while it is grouped. Its distances in time are places in the order, which compare fast. */
interface Member {
  readonly one: TimedAnomaly
  /** Its place in the order of starts. */
  readonly at: number
  /** The first one that begins too late to overlap with it. */
  readonly overlapsUntil: number
  /** The first one that began at most {@link sameServiceNs} before it. */
  readonly sameServiceFrom: number
  /** The same for {@link spreadNs} and {@link slackNs}. */
  readonly spreadFrom: number
  readonly slackFrom: number
  /** A number for each label other than the service that has a value: a host, a region. */
  readonly labels: readonly number[]
  readonly near: () => Near
  /** Why it belongs to its group, in the order in which it was found. */
  readonly links: Set<MemberLink>
  /** Another one of its group; null for one of each group. */
  parent: Member | null
}

function membersOf(
  ordered: readonly TimedAnomaly[],
  around: (one: TimedAnomaly) => Surroundings,
): readonly Member[] {
  const starts = ordered.map(({ startedNs }) => startedNs)
  const firstAfter = (ns: Ns) => partitionPoint(starts.length, (i) => (starts[i] ?? ns) > ns)
  const firstFrom = (ns: Ns) => partitionPoint(starts.length, (i) => (starts[i] ?? ns) >= ns)
  const numbers = new Map<string, number>()
  const known = new Map<Surroundings, Near>()
  return ordered.map((one, at) => ({
    ...{ one, at, links: new Set(), parent: null, labels: labelsOf(one, numbers) },
    overlapsUntil: firstAfter(one.seenUntilNs + slackNs),
    sameServiceFrom: firstFrom(one.startedNs - sameServiceNs),
    spreadFrom: firstFrom(one.startedNs - spreadNs),
    slackFrom: firstFrom(one.startedNs - slackNs),
    near: once(() => {
      const surroundings = around(one)
      const near = known.get(surroundings) ?? nearOf(surroundings)
      known.set(surroundings, near)
      return near
    }),
  }))
}

/** The surroundings of an anomaly, prepared for the comparison of pairs. */
interface Near {
  readonly graph: CallGraph
  readonly releases: Releases
}

/** Makes a value when it is first asked for. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function nearOf({ deploys, graph }: Surroundings): Near {
  return { graph, releases: new Releases(deploys) }
}

function labelsOf({ anomaly: { group } }: TimedAnomaly, numbers: Map<string, number>): number[] {
  const labels = Object.entries(group).filter(([key, value]) => key !== 'service' && value !== '')
  return labels.map((label) => {
    const key = JSON.stringify(label)
    const number = numbers.get(key) ?? numbers.size
    numbers.set(key, number)
    return number
  })
}

function rootOf(member: Member): Member {
  let root = member
  while (root.parent !== null) {
    const parent = root.parent
    root.parent = parent.parent ?? parent
    root = parent
  }
  return root
}

/**
 * Puts two anomalies that overlap into one group where something links them. In one group already, only
 * links that not both of them have are looked for.
 */
function join(earlier: Member, later: Member): void {
  const [root, laterRoot] = [rootOf(earlier), rootOf(later)]
  const isAsked = (link: MemberLink) =>
    root !== laterRoot || !earlier.links.has(link) || !later.links.has(link)
  const links = linksOf(earlier, later, isAsked)
  if (links.length > 0 && root !== laterRoot) laterRoot.parent = root
  for (const link of links) {
    earlier.links.add(link)
    later.links.add(link)
  }
}

/** Why two anomalies that overlap belong together, of the links that are asked; empty where they don't. */
function linksOf(earlier: Member, later: Member, isAsked: (link: MemberLink) => boolean): MemberLink[] {
  const [service, itsService] = [earlier.one.service, later.one.service]
  if (service !== null && service === itsService) return isAsked('same_service') ? ['same_service'] : []
  if (earlier.at < later.spreadFrom) return []
  const isTogether = earlier.at >= later.slackFrom && isAsked('began_together')
  const found: MemberLink[] = []
  if (isAsked('same_attributes') && shareLabel(earlier, later)) found.push('same_attributes')
  if (service === null || itsService === null) return isTogether ? [...found, 'began_together'] : found
  const { graph, releases } = earlier.near()
  if (isAsked('calls') && graph.isCall(service, itsService)) found.push('calls')
  if (isAsked('same_deploy') && releases.areOne(earlier, later)) found.push('same_deploy')
  if (isTogether && !graph.areApart(service, itsService)) found.push('began_together')
  return found
}

/**
 * The start of the quarter of an hour in which most anomalies began: from then on the spans show the incident
 * most clearly.
 *
 * @param members in order of their start
 */
export function burstOf(members: readonly TimedAnomaly[]): Ns {
  let [burstNs, most, until] = [0n, 0, 0]
  for (const [i, { startedNs }] of members.entries()) {
    while (until < members.length && (members[until]?.startedNs ?? 0n) <= startedNs + slackNs) until++
    if (until - i > most) [burstNs, most] = [startedNs, until - i]
  }
  return burstNs
}

export function byStart(one: TimedAnomaly, other: TimedAnomaly): number {
  if (one.startedNs !== other.startedNs) return one.startedNs < other.startedNs ? -1 : 1
  return one.anomaly.id < other.anomaly.id ? -1 : 1
}

function idOf(members: readonly TimedAnomaly[]): string {
  const [oldest = ''] = members.map(({ anomaly }) => anomaly.id).sort()
  return incidentIdOf(oldest)
}

/** Whether both series have a label with the same value, other than the service. */
function shareLabel({ labels }: Member, other: Member): boolean {
  for (const label of labels) if (other.labels.includes(label)) return true
  return false
}

/** Which anomalies followed the same release, by one list of deploys. */
class Releases {
  /** In order of time. */
  readonly #deploys: ReadonlyMap<string, readonly KnownDeploy[]>
  readonly #before = new Map<Member, DeploysBefore>()
  /** By service and place in its list, because many anomalies began after the same deploys. */
  readonly #known = new Map<string, DeploysBefore>()

  constructor(deploys: readonly KnownDeploy[]) {
    const ordered = deploys.toSorted((a, b) => (a.atNs < b.atNs ? -1 : Number(a.atNs > b.atNs)))
    this.#deploys = Map.groupBy(ordered, ({ service }) => service)
  }

  /** Whether both services were deployed at about the same time, and both anomalies began soon after that. */
  areOne(one: Member, other: Member): boolean {
    if (this.#deploys.size < 2) return false
    const [own, its] = [this.#beforeOf(one), this.#beforeOf(other)]
    if (own.times.length === 0 || its.times.length === 0) return false
    const areOne = own.areNear.get(its) ?? areNear(own.times, its.times)
    own.areNear.set(its, areOne)
    return areOne
  }

  #beforeOf(member: Member): DeploysBefore {
    const known = this.#before.get(member)
    if (known !== undefined) return known
    const { service, startedNs } = member.one
    const deploys = this.#deploys.get(service ?? '') ?? []
    const from = partitionPoint(deploys.length, (i) => (deploys[i]?.atNs ?? 0n) + spreadNs >= startedNs)
    const until = partitionPoint(deploys.length, (i) => (deploys[i]?.atNs ?? 0n) > startedNs + slackNs)
    const key = JSON.stringify([service, from, until])
    const times = deploys.slice(from, until).map(({ atNs }) => atNs)
    const found = this.#known.get(key) ?? { times, areNear: new Map() }
    this.#known.set(key, found)
    this.#before.set(member, found)
    return found
  }
}

/** The deploys of a service just before some of its anomalies. */
interface DeploysBefore {
  /** In order. */
  readonly times: readonly Ns[]
  /** Whether one of them is near one of the others. */
  readonly areNear: Map<DeploysBefore, boolean>
}

/** Whether two of these times, both in order, are at most {@link releaseNs} apart. */
function areNear(times: readonly Ns[], others: readonly Ns[]): boolean {
  let i = 0
  for (const ns of times) {
    while (i < others.length && (others[i] ?? ns) < ns - releaseNs) i++
    if (i === others.length) return false
    if ((others[i] ?? ns) <= ns + releaseNs) return true
  }
  return false
}
