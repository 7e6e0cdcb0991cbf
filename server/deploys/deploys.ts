// Finds when a service was deployed, from the versions in its telemetry. A deploy is the time at which a
// version begins that the service did not run just before, in one environment. Several versions at once, as
// in a rolling deploy, are one deploy; going back to an older version is one too. No I/O.
//
// A version has ended when it is missing for longer than its own telemetry usually pauses. So two versions
// that run side by side all the time, or a service that sends little, are not deployed repeatedly.

import type { Deploy } from '../../contract/telemetry/deploys.ts'
import { formatInstant, type Ns, nsPerMinute } from '../../contract/values/instant.ts'
import { partitionPoint } from '../core/partition-point.ts'

interface Stretch {
  readonly startNs: Ns
  /** The last sighting itself. */
  readonly endNs: Ns
}

/** When one version of a service was seen in a window. */
export interface SeenVersion {
  readonly service: string
  /** Empty where its telemetry names none. */
  readonly environment: string
  readonly version: string
  /** Number of buckets of time with sightings; each stretch has at least one. */
  readonly buckets: number
  /** In order of time, at least one; pauses shorter than some minutes are not recorded. */
  readonly stretches: readonly Stretch[]
}

/** A log event about a deploy of a service. */
export interface DeployEvent {
  readonly service: string
  /** Empty where the event names none. */
  readonly environment: string
  /** Empty where the event names none. */
  readonly version: string
  readonly atNs: Ns
}

/** A deploy with its instant; {@link toDeploy} has the wire form. */
export interface KnownDeploy extends Omit<Deploy, 'at'> {
  readonly atNs: Ns
}

/** A version that is missing for less than this has not ended. */
const leastAbsenceNs = 10n * nsPerMinute
/** A version has ended after this many times the pause that is longer than nine of ten of its pauses. */
const absenceFactor = 4n
const usualShare = 0.1
/** An event and the first sighting of its version are at most this far apart. */
const togetherMinutes = 30
const togetherNs = BigInt(togetherMinutes) * nsPerMinute

/** One uninterrupted time of a version. */
interface Run extends Stretch {
  readonly version: string
  /** The version has ended when it is absent for this long. */
  readonly absenceNs: Ns
  readonly stretches: readonly Stretch[]
}

/** Returns the deploys in the versions and events of one window, oldest first. */
export function deploysOf(seen: readonly SeenVersion[], events: readonly DeployEvent[]): KnownDeploy[] {
  const subjects = Map.groupBy(seen, (one) => JSON.stringify([one.service, one.environment]))
  const ofVersions = [...subjects.values()].flatMap(deploysOfSubject)
  return withEvents(ofVersions, events, seen).sort(byTime)
}

export function toDeploy({ atNs, ...deploy }: KnownDeploy): Deploy {
  return { ...deploy, at: formatInstant(atNs) }
}

/** A total order, so that pages of a list agree. */
export function byTime(one: KnownDeploy, other: KnownDeploy): number {
  if (one.atNs !== other.atNs) return one.atNs < other.atNs ? -1 : 1
  return (
    byText(one.service, other.service) ||
    byText(one.environment, other.environment) ||
    byText(one.version, other.version)
  )
}

function byText(one: string | null, other: string | null): number {
  if (one === other) return 0
  return (one ?? '') < (other ?? '') ? -1 : 1
}

/** The deploys of one service in one environment. */
function deploysOfSubject(seen: readonly SeenVersion[]): KnownDeploy[] {
  const runs = withoutStrays(seen).flatMap(runsOf).sort(byStart)
  const [first, oldest] = [seen[0], runs[0]]
  if (first === undefined || oldest === undefined) return []
  // A version that is seen this early may have run before the window.
  const initial = runs.filter(({ absenceNs, startNs }) => startNs - oldest.startNs < absenceNs)
  const later = runs.filter((run) => !initial.includes(run))
  const deploys: KnownDeploy[] = []
  let current = initial.reduce((last, run) => (run.endNs > last.endNs ? run : last), oldest)
  let isDeployed = false
  const deploy = (next: Run, atNs: Ns) => {
    deploys.push({
      service: first.service,
      environment: first.environment === '' ? null : first.environment,
      version: next.version,
      previous_version: current.version,
      atNs,
      told_by: 'version',
    })
    current = next
    isDeployed = true
  }
  /** A version that was deployed and ended while an earlier one continues was rolled back. */
  const takeBack = (untilNs: Ns | null) => {
    for (;;) {
      const ended = current
      if (!isDeployed || (untilNs !== null && ended.endNs + ended.absenceNs >= untilNs)) return
      const next = runs.findLast(
        (run) => run.startNs <= ended.endNs && run.endNs > ended.endNs + ended.absenceNs,
      )
      if (next === undefined) return
      deploy(next, takenBackNs(next, ended))
    }
  }
  for (const run of later) {
    takeBack(run.startNs)
    if (run.version === current.version) current = run
    else deploy(run, run.startNs)
  }
  takeBack(null)
  return deploys
}

/** Leaves out versions that were seen once while another continued, such as from a developer's run. */
function withoutStrays(seen: readonly SeenVersion[]): SeenVersion[] {
  const ends = seen.map(({ stretches }) => stretches.at(-1)?.endNs ?? 0n)
  return seen.filter(
    ({ buckets }, i) =>
      buckets > 1 || !ends.some((endNs, j) => j !== i && endNs - (ends[i] ?? 0n) > leastAbsenceNs),
  )
}

/**
 * Returns when the older version was seen again after a pause; otherwise when the newer one was last seen.
 */
function takenBackNs(next: Run, { endNs, startNs }: Run): Ns {
  const again = next.stretches.findLast((one) => one.startNs > startNs && one.startNs <= endNs)
  return again?.startNs ?? endNs
}

/** Joins stretches with shorter absences of the version than those that end it. */
function runsOf({ buckets, stretches, version }: SeenVersion): Run[] {
  const usual = absenceFactor * usualPauseNs(buckets, stretches)
  const absenceNs = usual > leastAbsenceNs ? usual : leastAbsenceNs
  const runs: { startNs: Ns; endNs: Ns; stretches: Stretch[] }[] = []
  for (const stretch of stretches) {
    const last = runs.at(-1)
    if (last === undefined || stretch.startNs - last.endNs > absenceNs) {
      runs.push({ ...stretch, stretches: [stretch] })
    } else {
      last.endNs = stretch.endNs
      last.stretches.push(stretch)
    }
  }
  return runs.map((run) => ({ ...run, version, absenceNs }))
}

/** Pauses inside a stretch are short and count as none. */
function usualPauseNs(buckets: number, stretches: readonly Stretch[]): Ns {
  const pauses = stretches.slice(1).map(({ startNs }, i) => startNs - (stretches[i]?.endNs ?? startNs))
  pauses.sort((a, b) => (a > b ? -1 : 1))
  return pauses[Math.floor((buckets - 1) * usualShare)] ?? 0n
}

function byStart(one: Run, other: Run): number {
  if (one.startNs !== other.startNs) return one.startNs < other.startNs ? -1 : 1
  return one.version < other.version ? -1 : 1
}

/** An event joins the deploy that it is about, or that of an earlier event, or is a deploy itself. */
function withEvents(
  deploys: readonly KnownDeploy[],
  events: readonly DeployEvent[],
  seen: readonly SeenVersion[],
): KnownDeploy[] {
  const all = [...deploys]
  // Twenty thousand deploys are compared with a thousand events, so most are ruled out by a number.
  const minutes = new Float64Array(deploys.length + events.length)
  for (const [i, { atNs }] of deploys.entries()) minutes[i] = minuteOf(atNs)
  const history = new History(seen)
  for (const event of events.toSorted((a, b) => (a.atNs < b.atNs ? -1 : 1))) {
    const known = findAbout(event, all, minutes)
    const deploy = all[known]
    const told = deploy === undefined ? ofEvent(event, history) : withEvent(deploy, event)
    const at = deploy === undefined ? all.length : known
    all[at] = told
    minutes[at] = minuteOf(told.atNs)
  }
  return all
}

function withEvent(deploy: KnownDeploy, { atNs }: DeployEvent): KnownDeploy {
  return { ...deploy, told_by: 'event', atNs: atNs < deploy.atNs ? atNs : deploy.atNs }
}

/** Returns the position of the first deploy that the event is about; -1 where there is none. */
function findAbout(event: DeployEvent, deploys: readonly KnownDeploy[], minutes: Float64Array): number {
  const minute = minuteOf(event.atNs)
  for (const [i, deploy] of deploys.entries()) {
    const apart = Math.abs((minutes[i] ?? 0) - minute)
    if (apart <= togetherMinutes + 1 && isAbout(event, deploy)) return i
  }
  return -1
}

function minuteOf(atNs: Ns): number {
  return Number(atNs / nsPerMinute)
}

function isAbout(event: DeployEvent, deploy: KnownDeploy): boolean {
  const apartNs = event.atNs - deploy.atNs
  return (
    event.service === deploy.service &&
    (event.environment === '' || event.environment === deploy.environment) &&
    (event.version === '' || event.version === deploy.version) &&
    apartNs <= togetherNs &&
    apartNs >= -togetherNs
  )
}

/** A stretch of a version, and the version that had ended last when it began. */
interface Begun {
  readonly startNs: Ns
  readonly latest: { readonly version: string; readonly endNs: Ns }
}

/** Which version of a service ran at an instant. There may be thousands of stretches, and of events. */
class History {
  readonly #seen: readonly SeenVersion[]
  /** By service and environment, in order of the start. */
  readonly #begun = new Map<string, readonly Begun[]>()

  constructor(seen: readonly SeenVersion[]) {
    this.#seen = seen
  }

  /** Returns the version that ended last of those that had begun; an empty environment means any. */
  before({ atNs, environment, service }: DeployEvent): string | null {
    const key = JSON.stringify([service, environment])
    const begun = this.#begun.get(key) ?? this.#read(service, environment)
    this.#begun.set(key, begun)
    const later = partitionPoint(begun.length, (i) => (begun[i]?.startNs ?? 0n) > atNs)
    return begun[later - 1]?.latest.version ?? null
  }

  #read(service: string, environment: string): readonly Begun[] {
    const own = this.#seen
      .filter((one) => one.service === service && (environment === '' || one.environment === environment))
      .flatMap(({ stretches, version }) => stretches.map((stretch) => ({ version, ...stretch })))
      .sort((a, b) => (a.startNs < b.startNs ? -1 : Number(a.startNs > b.startNs)))
    let latest: Begun['latest'] | null = null
    return own.map(({ endNs, startNs, version }) => {
      if (latest === null || endNs > latest.endNs) latest = { version, endNs }
      return { startNs, latest }
    })
  }
}

/** The deploy of an event without another version, such as a change of configuration. */
function ofEvent(event: DeployEvent, history: History): KnownDeploy {
  const { atNs, environment, service, version } = event
  const before = history.before(event)
  return {
    service,
    environment: environment === '' ? null : environment,
    version: version === '' ? before : version,
    previous_version: before,
    atNs,
    told_by: 'event',
  }
}
