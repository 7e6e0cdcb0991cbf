// The view of an incident: its title, its state, its timeline and its wire form. Everything is computed from
// its anomalies, its origin and the deploys around it, so that nothing shows what an erasure has removed from
// those. No I/O.

import type { Anomaly } from '../../../contract/detection/detectors.ts'
import {
  type Incident,
  type IncidentEvent,
  type IncidentMember,
  type IncidentOrigin,
  type IncidentWithMembers,
  membersMax,
  timelineMax,
} from '../../../contract/detection/incidents.ts'
import { formatInstant, type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import type { IncidentGroup } from './grouping.ts'
import { latest, nsOf, type TimedAnomaly } from './timed-anomalies.ts'

/** An incident is closed when nothing of it was seen for this time. */
const quietNs = 30n * nsPerMinute
const titleMax = 200
const namesMax = 60
const symptomsMax = 3

export interface ViewedIncident {
  readonly group: IncidentGroup
  /** Likeliest first; at least one. */
  readonly candidates: readonly [IncidentOrigin, ...IncidentOrigin[]]
  readonly deploys: readonly KnownDeploy[]
}

/** One item of the list. */
export function toIncident({ candidates, group }: ViewedIncident, nowNs: Ns): Incident {
  const { members } = group
  const [origin] = candidates
  const [first] = members
  const seenUntilNs = seenUntilOf(members)
  const isOpen = isOpenAt(group, nowNs)
  const all = members.map(({ anomaly }) => anomaly)
  return {
    id: group.id,
    title: titleOf(members, origin),
    state: isOpen ? 'open' : 'closed',
    started_at: formatInstant(first?.startedNs ?? 0n),
    ended_at: isOpen ? null : formatInstant(seenUntilNs),
    seen_until: formatInstant(seenUntilNs),
    told_at: toldAtOf(all),
    updated_at: all.map(changedAtOf).reduce(later),
    muted: all.every(({ muted }) => muted),
    verdict: verdictOf(all),
    services: [...new Set(members.flatMap(({ service }) => (service === null ? [] : [service])))],
    metric_keys: [...new Set(all.map(({ metric_key }) => metric_key))],
    anomaly_count: all.length,
    anomaly_ids: all.slice(0, membersMax).map(({ id }) => id),
    origin,
  }
}

export function toIncidentWithMembers(viewed: ViewedIncident, nowNs: Ns): IncidentWithMembers {
  const incident = toIncident(viewed, nowNs)
  const { members } = viewed.group
  return {
    ...incident,
    candidates: [...viewed.candidates],
    members: members.slice(0, membersMax).map((member) => toMember(member, viewed.group)),
    timeline: timelineOf(viewed, incident),
  }
}

/** Whether an anomaly of it is open, or was seen lately. */
export function isOpenAt({ members }: IncidentGroup, nowNs: Ns): boolean {
  return members.some(({ anomaly }) => anomaly.ended_at === null) || seenUntilOf(members) + quietNs > nowNs
}

export function seenUntilOf(members: readonly TimedAnomaly[]): Ns {
  return latest(0n, ...members.map(({ seenUntilNs }) => seenUntilNs))
}

function toMember({ anomaly, service }: TimedAnomaly, { because }: IncidentGroup): IncidentMember {
  const { detector_id, ended_at, group, metric_key, muted, reason, score, seen_until, started_at } = anomaly
  return {
    anomaly_id: anomaly.id,
    ...{ detector_id, service, metric_key, group, started_at, ended_at, seen_until, score, reason, muted },
    verdict: anomaly.feedback?.verdict ?? null,
    because: [...(because.get(anomaly.id) ?? [])],
  }
}

/** `payments: requests fail and are slow; 3 other services are affected`. */
function titleOf(members: readonly TimedAnomaly[], origin: IncidentOrigin): string {
  const own = members.filter(
    ({ anomaly, service }) =>
      service === origin.service && (service !== null || anomaly.metric_key === origin.metric_key),
  )
  const symptoms = [...new Set(own.map(({ anomaly }) => symptomOf(anomaly)))]
  const others = new Set(members.flatMap(({ service }) => (service === null ? [] : [service])))
  if (origin.service !== null) others.delete(origin.service)
  const shown = symptoms.slice(0, symptomsMax).join(', ')
  const what = shown === '' ? 'its callers suffer' : shown
  const more = symptoms.length > symptomsMax ? ' and more' : ''
  const where = origin.service === null ? '' : `${shortened(origin.service, namesMax)}: `
  const rest =
    others.size === 0 ? '' : `; ${others.size} other service${others.size === 1 ? ' is' : 's are'} affected`
  return shortened(`${where}${what}${more}`, titleMax - rest.length) + rest
}

const symptoms: Readonly<Record<string, readonly [high: string, low: string]>> = {
  'spans.error_ratio': ['requests fail', 'fewer requests fail'],
  'spans.latency_p50': ['requests are slow', 'requests are fast'],
  'spans.latency_p95': ['requests are slow', 'requests are fast'],
  'spans.latency_p99': ['requests are slow', 'requests are fast'],
  'spans.rate': ['more requests', 'fewer requests'],
  'logs.rate': ['more log records', 'fewer log records'],
  'logs.error_count': ['errors in logs', 'fewer errors in logs'],
}

function symptomOf({ expected, lower, metric_key, upper, value }: Anomaly): string {
  const isHigh = value !== null && ((upper !== null && value > upper) || value > (expected ?? Infinity))
  const isLow = value !== null && ((lower !== null && value < lower) || value < (expected ?? -Infinity))
  const words = Object.hasOwn(symptoms, metric_key) ? symptoms[metric_key] : undefined
  const name = shortened(metric_key, namesMax)
  if (value === null) return `no data of ${name}`
  if (isHigh) return words?.[0] ?? `${name} is high`
  if (isLow) return words?.[1] ?? `${name} is low`
  return `${name} is unusual`
}

function shortened(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`
}

function timelineOf({ deploys, group }: ViewedIncident, incident: Incident): IncidentEvent[] {
  const events: IncidentEvent[] = deploys.map(({ atNs, service, version }) => ({
    at: formatInstant(atNs),
    kind: 'deploy',
    service,
    anomaly_id: null,
    text: version === null ? `${service} is deployed` : `version ${version} of ${service} is deployed`,
  }))
  for (const { anomaly, service } of group.members) {
    const what = `${anomaly.metric_key}${service === null ? '' : ` of ${service}`}`
    const about = { service, anomaly_id: anomaly.id }
    events.push({ ...about, at: anomaly.started_at, kind: 'anomaly_started', text: `${what} deviates` })
    if (anomaly.ended_at === null) continue
    events.push({
      ...about,
      at: anomaly.ended_at,
      kind: 'anomaly_ended',
      text: `${what} is as expected again`,
    })
  }
  const whole = { service: null, anomaly_id: null }
  if (incident.told_at !== null) {
    events.push({
      ...whole,
      at: incident.told_at,
      kind: 'told',
      text: 'the incident alarms for the first time',
    })
  }
  if (incident.ended_at !== null) {
    const minutes = Number(quietNs / nsPerMinute)
    const text = `nothing of it was seen in the ${minutes} minutes since`
    events.push({ ...whole, at: incident.ended_at, kind: 'closed', text })
  }
  const ordered = events.map((event, i) => ({ event, i, atNs: nsOf(event.at) }))
  ordered.sort((a, b) => (a.atNs === b.atNs ? a.i - b.i : a.atNs < b.atNs ? -1 : 1))
  return ordered.slice(0, timelineMax).map(({ event }) => event)
}

/** When the first anomaly that alarms was recorded; the same for as long as that anomaly is there. */
function toldAtOf(all: readonly Anomaly[]): string | null {
  const alarming = all.filter(({ muted }) => !muted).map(({ created_at }) => created_at)
  return alarming.length === 0
    ? null
    : alarming.reduce((one, other) => (later(one, other) === one ? other : one))
}

function changedAtOf({ feedback, updated_at }: Anomaly): string {
  return feedback === null ? updated_at : later(updated_at, feedback.given_at)
}

function later(one: string, other: string): string {
  return nsOf(one) >= nsOf(other) ? one : other
}

function verdictOf(all: readonly Anomaly[]): Incident['verdict'] {
  if (all.some(({ feedback }) => feedback?.verdict === 'real')) return 'real'
  return all.every(({ feedback }) => feedback?.verdict === 'not_an_anomaly') ? 'not_an_anomaly' : null
}
