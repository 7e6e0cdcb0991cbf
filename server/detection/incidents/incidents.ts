// Incidents of an organisation, computed from its visible anomalies on request. Nothing is stored: what is
// hidden belongs to no incident from that moment on, and an erasure has nothing to remove here.
// The work is limited: a list loads a fixed number of anomalies for a page and reads the spans of a fixed
// number of incidents; the other incidents are described by their anomalies alone.

import type { Anomaly } from '../../../contract/detection/detectors.ts'
import type { Incident, IncidentOrigin, IncidentWithMembers } from '../../../contract/detection/incidents.ts'
import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import { elapsedMs } from '../../core/clock.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { DetectionStore } from '../detectors/store.ts'
import { anomalyIdOf, burstOf, byStart, groupAnomalies, type IncidentGroup, slackNs } from './grouping.ts'
import {
  isOpenAt,
  seenUntilOf,
  toIncident,
  toIncidentWithMembers,
  type ViewedIncident,
} from './incident-view.ts'
import type { KnownSurroundings } from './kept-surroundings.ts'
import { rankOrigins } from './origin.ts'
import { nothingKnown, type SurroundingsReader } from './surroundings.ts'
import { earliest, latest, nsOf, type TimedAnomaly, withTimes } from './timed-anomalies.ts'
import { windowAround } from './trace-evidence.ts'

/** Where a page ends: the incident's start and id. */
export interface IncidentPosition {
  readonly startedNs: Ns
  readonly id: string
}

interface IncidentPage {
  readonly limit: number
  readonly state?: 'open' | 'closed' | undefined
  readonly service?: string | undefined
  readonly startNs?: Ns | undefined
  readonly endNs?: Ns | undefined
  /** The last incident of the page before. */
  readonly before: IncidentPosition | null
}

interface FoundIncidents {
  readonly incidents: readonly { readonly position: IncidentPosition; readonly incident: Incident }[]
  /** Where the next page starts; null where there is nothing more. */
  readonly next: IncidentPosition | null
}

/** Anomalies that are loaded at once. */
const loadedMax = 1000
/** How often a list loads more, or a window grows. */
const loadsMax = 4
/** An anomaly joins an incident that began before it by at most this. */
const reachNs = 12n * 60n * nsPerMinute
/** For anomalies that began closer than this, the calls between services may decide. */
const spreadNs = 60n * nsPerMinute
/** Times of one request at which spans are looked at: to group, and to rank origins. */
const probesOfIncidents = { most: 20, longestMs: Number.POSITIVE_INFINITY }
/** For the incidents of listed anomalies, which people ask for more often. None begins after `longestMs`. */
const probesOfListed = { most: 6, longestMs: 1500 }
/** Times at which the calls of one long stretch of anomalies are looked at. */
const probesOfStretch = 4
/** The length of a bucket: spans of an incident that was just opened are read for this long. */
const leastDuringNs = 5n * nsPerMinute

export class Incidents {
  readonly #store: DetectionStore
  readonly #surroundings: SurroundingsReader
  readonly #elapsedMs: () => number

  constructor(store: DetectionStore, surroundings: SurroundingsReader, elapsed: () => number = elapsedMs) {
    this.#elapsedMs = elapsed
    this.#store = store
    this.#surroundings = surroundings
  }

  /** By start, latest first. A page may be short where there is more. */
  async list(reader: TenantReader, page: IncidentPage, nowNs: Ns): Promise<FoundIncidents> {
    return reader.together(async () => {
      const probe = this.#prober(reader, nowNs, probesOfIncidents)
      const pace = new Pace(reader.share.turn)
      const found: IncidentGroup[] = []
      let [before, isMore] = [page.before, true]
      for (let load = 0; load < loadsMax && isMore && found.length <= page.limit; load++) {
        const part = await this.#groupsBefore(reader.place.tenantId, page, before, probe, pace)
        found.push(...part.groups.filter((group) => isWanted(group, page, nowNs)))
        before = part.next
        isMore = before !== null
      }
      const shown = found.slice(0, page.limit)
      const last = shown.at(-1)
      const next = found.length > page.limit && last !== undefined ? positionOf(last) : before
      const incidents: FoundIncidents['incidents'][number][] = []
      for (const group of shown) {
        if (pace.isOver()) await pace.turn()
        const incident = toIncident(await viewOf(group, probe, nowNs), nowNs)
        incidents.push({ position: positionOf(group), incident })
      }
      return { incidents, next }
    })
  }

  /** Null where there is none. An id that belonged to a part of an incident leads to the whole. */
  async find(reader: TenantReader, id: string, nowNs: Ns): Promise<IncidentWithMembers | null> {
    const { tenantId } = reader.place
    const anomalyId = anomalyIdOf(id)
    return reader.together(async () => {
      const anomaly = anomalyId === null ? null : await this.#store.findAnomaly(tenantId, anomalyId)
      if (anomaly === null) return null
      const pace = new Pace(reader.share.turn)
      const [own] = await withTimes(this.#store, tenantId, [anomaly], pace)
      if (own === undefined) return null
      const probe = this.#prober(reader, nowNs, probesOfIncidents)
      const group = await this.#groupOf(tenantId, own, probe, pace)
      return group === null ? null : toIncidentWithMembers(await viewOf(group, probe, nowNs), nowNs)
    })
  }

  /**
   * The ids of the incidents of these anomalies, by anomaly id; others may be among them. Absent are those
   * for which too much would have to be read.
   */
  async idsOf(
    reader: TenantReader,
    anomalies: readonly Anomaly[],
    nowNs: Ns,
  ): Promise<ReadonlyMap<string, string>> {
    const { tenantId } = reader.place
    const endNs = latest(0n, ...anomalies.map(({ seen_until }) => nsOf(seen_until))) + reachNs
    const firstNs = earliest(endNs, ...anomalies.map(({ started_at }) => nsOf(started_at))) - reachNs
    return reader.together(async () => {
      const probe = this.#prober(reader, nowNs, probesOfListed)
      const pace = new Pace(reader.share.turn)
      const ids = new Map<string, string>()
      let startNs = firstNs
      for (
        let load = 0;
        load < loadsMax && !anomalies.every(({ id }) => ids.has(id));
        load++, startNs -= 2n * reachNs
      ) {
        const range = { range_start: startNs > 0n ? startNs : 0n, range_end: endNs }
        const loaded = await this.#load(tenantId, range, pace)
        const unread = new Set<TimedAnomaly>()
        const groups = await grouped(loaded, probe, pace, unread)
        const isCut = loaded.length === loadedMax
        const oldestNs = earliest(endOfTime, ...loaded.map(({ startedNs }) => startedNs))
        const knownNs = (isCut ? oldestNs : startNs) + slackNs
        for (const group of groups) {
          const isUnread = group.members.some((member) => unread.has(member))
          if (isUnread || positionOf(group).startedNs <= knownNs) continue
          for (const { anomaly } of group.members) ids.set(anomaly.id, group.id)
        }
        if (isCut) break
      }
      return ids
    })
  }

  /** Groups that start before the position, latest first, and where those begin that may be incomplete. */
  async #groupsBefore(
    tenantId: string,
    { endNs, startNs }: IncidentPage,
    before: IncidentPosition | null,
    probe: Probe,
    pace: Pace,
  ): Promise<{ groups: IncidentGroup[]; next: IncidentPosition | null }> {
    const untilNs = before === null ? endNs : before.startedNs + 1n
    const range = {
      range_start: startNs === undefined ? undefined : startNs > reachNs ? startNs - reachNs : 0n,
      range_end: untilNs === undefined ? undefined : untilNs + reachNs,
    }
    const loaded = await this.#load(tenantId, range, pace)
    const groups = (await grouped(loaded, probe, pace)).toReversed()
    const isCut = loaded.length === loadedMax
    const oldestNs = earliest(endOfTime, ...loaded.map(({ startedNs }) => startedNs))
    const isWhole = (group: IncidentGroup) => !isCut || positionOf(group).startedNs > oldestNs + reachNs
    const wanted = groups.filter((group) => before === null || isBefore(positionOf(group), before))
    const whole = wanted.filter(isWhole)
    // A sequence of anomalies that is longer than one load is returned in parts.
    const listed = whole.length > 0 ? whole : wanted
    const last = listed.at(-1)
    return { groups: listed, next: isCut && last !== undefined ? positionOf(last) : null }
  }

  /** The group of an anomaly, from a window that grows until nothing outside it can belong to the group. */
  async #groupOf(
    tenantId: string,
    own: TimedAnomaly,
    probe: Probe,
    pace: Pace,
  ): Promise<IncidentGroup | null> {
    let [startNs, endNs] = [own.startedNs - reachNs, own.seenUntilNs + reachNs]
    for (let load = 1; ; load++) {
      const range = { range_start: startNs > 0n ? startNs : 0n, range_end: endNs }
      const groups = await grouped(await this.#load(tenantId, range, pace), probe, pace)
      const group = groups.find(({ members }) => members.some(({ anomaly }) => anomaly.id === own.anomaly.id))
      if (group === undefined) return null
      const [firstNs, lastNs] = [positionOf(group).startedNs, seenUntilOf(group.members)]
      const isWhole = firstNs > startNs + slackNs && lastNs + slackNs < endNs
      if (isWhole || load === loadsMax) return group
      if (firstNs <= startNs + slackNs) startNs = firstNs - 2n * reachNs
      if (lastNs + slackNs >= endNs) endNs = lastNs + 2n * reachNs
    }
  }

  async #load(
    tenantId: string,
    filter: { range_start?: Ns | undefined; range_end?: Ns | undefined },
    pace: Pace,
  ) {
    const page = { limit: loadedMax, filter, before: null, pace }
    return withTimes(this.#store, tenantId, await this.#store.listAnomalies(tenantId, page), pace)
  }

  /**
   * Reads the surroundings of a limited number of times, each once, for a limited duration; others are not
   * read.
   */
  #prober(reader: TenantReader, nowNs: Ns, { longestMs, most }: typeof probesOfListed): Probe {
    const beganMs = this.#elapsedMs()
    const known = new Map<string, KnownSurroundings>()
    return async (startedNs, fromNs, untilNs) => {
      const endNs = earliest(nowNs, latest(untilNs, fromNs + leastDuringNs))
      const window = windowAround(startedNs, fromNs, endNs)
      const key = `${startedNs} ${fromNs} ${window.during.endNs}`
      const found = known.get(key)
      if (found !== undefined) return found
      if (window.during.endNs <= fromNs) return nothingKnown
      if (known.size >= most || this.#elapsedMs() - beganMs > longestMs) return notRead
      const read = await this.#surroundings.read(reader, window, nowNs)
      known.set(key, read)
      return read
    }
  }
}

/** What is around an incident that began at the first instant, seen between the other two. */
type Probe = (startedNs: Ns, fromNs: Ns, untilNs: Ns) => Promise<KnownSurroundings>

const endOfTime: Ns = 2n ** 63n
/** Nothing is known, because it would be too much to read. */
const notRead: KnownSurroundings = { ...nothingKnown }

/** `unread` receives the anomalies whose surroundings were not read. */
async function grouped(
  anomalies: readonly TimedAnomaly[],
  probe: Probe,
  pace: Pace,
  unread?: Set<TimedAnomaly>,
): Promise<IncidentGroup[]> {
  const around = new Map<TimedAnomaly, KnownSurroundings>()
  for (const stretch of stretchesOf(anomalies).toReversed()) {
    const services = new Set(stretch.map(({ service }) => service).filter((one) => one !== null))
    if (services.size < 2) continue
    let known = nothingKnown
    let [probes, probedNs] = [0, -spreadNs]
    for (const one of stretch) {
      if (probes < probesOfStretch && one.startedNs >= probedNs + spreadNs) {
        known = await probe(one.startedNs, one.startedNs, one.seenUntilNs)
        probedNs = one.startedNs
        probes++
      }
      if (known === notRead) unread?.add(one)
      around.set(one, known)
    }
  }
  return groupAnomalies(anomalies, (one) => around.get(one) ?? nothingKnown, pace)
}

/** Anomalies of which each began soon after the one before it. */
function stretchesOf(anomalies: readonly TimedAnomaly[]): TimedAnomaly[][] {
  const stretches: TimedAnomaly[][] = []
  let lastNs: Ns = -endOfTime
  for (const one of anomalies.toSorted(byStart)) {
    if (one.startedNs > lastNs + spreadNs) stretches.push([])
    stretches.at(-1)?.push(one)
    lastNs = one.startedNs
  }
  return stretches
}

async function viewOf(group: IncidentGroup, probe: Probe, nowNs: Ns): Promise<ViewedIncident> {
  const { members } = group
  const { startedNs } = positionOf(group)
  const isOpen = members.some(({ anomaly }) => anomaly.ended_at === null)
  const untilNs = isOpen ? nowNs : seenUntilOf(members)
  const { clues, deploys, graph } = await probe(startedNs, burstOf(members), untilNs)
  const services = new Set(members.map(({ service }) => service))
  const own = deploys.filter(({ service }) => services.has(service))
  const traces = clues === null ? null : { clues, graph }
  const [first, ...rest] = rankOrigins({ members, traces, deploys: own })
  return { group, candidates: [first ?? unknownOrigin, ...rest], deploys: own }
}

const unknownOrigin: IncidentOrigin = { service: null, metric_key: '', score: 0, why: [] }

function isWanted(group: IncidentGroup, { endNs, service, startNs, state }: IncidentPage, nowNs: Ns) {
  const isOpen = isOpenAt(group, nowNs)
  return (
    (state === undefined || isOpen === (state === 'open')) &&
    (service === undefined || group.members.some((member) => member.service === service)) &&
    (startNs === undefined || isOpen || seenUntilOf(group.members) > startNs) &&
    (endNs === undefined || positionOf(group).startedNs < endNs)
  )
}

function positionOf({ id, members }: IncidentGroup): IncidentPosition {
  return { startedNs: members[0]?.startedNs ?? 0n, id }
}

function isBefore(one: IncidentPosition, other: IncidentPosition): boolean {
  if (one.startedNs !== other.startedNs) return one.startedNs < other.startedNs
  return one.id < other.id
}
