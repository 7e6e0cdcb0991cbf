// Ranks the services of an incident by the evidence that it began there. Besides the evidence of the spans
// (trace-clues.ts) it counts whose series deviated first and how far, and what was deployed just before. A
// deviation that a deviating callee explains counts little: failures, slowness and traffic come to a service
// from its neighbours, use of memory or processors does not. No I/O, and no rule knows a service by its name.

import type { IncidentOrigin } from '../../../contract/detection/incidents.ts'
import { candidatesMax } from '../../../contract/detection/incidents.ts'
import { formatInstant, type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import type { KnownDeploy } from '../../deploys/deploys.ts'
import type { CallGraph } from './call-graph.ts'
import { type Clue, type Hint, weighed } from './clues.ts'
import { type ClassedAnomaly, explanations, firstByService, withClass } from './explained.ts'
import { slackNs } from './grouping.ts'
import { earliest, type TimedAnomaly } from './timed-anomalies.ts'

interface OriginRequest {
  /** By start; at least one. */
  readonly members: readonly TimedAnomaly[]
  /** The evidence of spans; null where none could be read. */
  readonly traces: { readonly clues: readonly Clue[]; readonly graph: CallGraph } | null
  readonly deploys: readonly KnownDeploy[]
}

/** After this time, in minutes, the weight of having deviated early is halved. */
const fadingMinutes = 15
/** The factor for a deviation that a neighbour explains, and for lower traffic where something fails. */
const inheritedShare = 0.25
const lowTrafficShare = 0.5
/** The weight of anomalies beside spans, and without spans. */
const besideTraces = 0.6
const deployGravity = 0.25
const deployBeforeNs = 60n * nsPerMinute
const sentencesMax = 5
/** What a series that stopped counts in addition: as a deviation that is 16 times larger. */
const goneSize = 4
const stoppedShare = 0.1

/** Likeliest first, at least one; the scores add up to 1 before the list is cut. */
export function rankOrigins({ deploys, members: all, traces }: OriginRequest): IncidentOrigin[] {
  const said = traces?.clues ?? []
  const members = all.map(withClass)
  const clues = [
    ...said,
    ...firstClues(members, traces?.graph ?? null, said.length > 0 ? besideTraces : 1),
    ...deployClues(members, deploys),
  ]
  const total = clues.reduce((sum, { weight }) => sum + weight, 0)
  const candidates = Map.groupBy(clues, ({ metricKey, service }) => service ?? `\u0000${metricKey}`)
  const causes = firstByService(members.filter(({ kind }) => kind === 'own'))
  const ranked = [...candidates.values()]
    .map((own) => candidateOf(own, causes, total, traces === null))
    .sort((a, b) => b.score - a.score || ((a.service ?? '') < (b.service ?? '') ? -1 : 1))
  return ranked.slice(0, candidatesMax)
}

/** @param causes by service: the first anomaly that no neighbour can cause */
function candidateOf(
  clues: readonly Clue[],
  causes: ReadonlyMap<string | null, ClassedAnomaly>,
  total: number,
  isWithoutTraces: boolean,
): IncidentOrigin {
  const ordered = clues.toSorted((a, b) => b.weight - a.weight)
  const [strongest] = ordered
  const service = strongest?.service ?? null
  const cause = causes.get(service)
  const score = ordered.reduce((sum, { weight }) => sum + weight, 0) / total
  const why = ordered.slice(0, sentencesMax).map(({ text }) => text)
  if (isWithoutTraces) why.push('There are no spans of that time, so this is based on the anomalies alone.')
  return {
    service,
    metric_key: cause?.anomaly.metric_key ?? strongest?.metricKey ?? '',
    score: Math.round(score * 1000) / 1000,
    why,
  }
}

/** Whose series deviated first, and how far. */
function firstClues(members: readonly ClassedAnomaly[], graph: CallGraph | null, gravity: number): Clue[] {
  const counted = members.filter(({ anomaly }) => anomaly.feedback?.verdict !== 'not_an_anomaly')
  const all = counted.length === 0 ? members : counted
  const firstNs = earliest(endOfTime, ...all.map(({ startedNs }) => startedNs))
  const isFailing = all.some(({ kind }) => kind === 'failures')
  const isExplained = explanations(all, graph)
  const hints = all.map((member): Hint => {
    const { anomaly, service, startedNs } = member
    const minutes = Number((startedNs - firstNs) / nsPerMinute)
    const size =
      Math.log2(1 + Math.min(Math.max(anomaly.score, 0), 1000)) + (hasStopped(member) ? goneSize : 0)
    const share = isExplained(member) ? inheritedShare : shareOf(member, isFailing)
    const when =
      minutes === 0 ? 'was among the first to deviate' : `deviated ${minutes} minutes after the first`
    return {
      kind: 'first',
      service,
      metricKey: anomaly.metric_key,
      amount: (0.5 + size) * share * 0.5 ** (minutes / fadingMinutes),
      text: `${anomaly.metric_key} of ${service ?? 'the organisation'} ${when}, at ${anomaly.started_at}.`,
    }
  })
  // Several metrics of one service are hardly more evidence than one: the strongest counts fully, each
  // further one half as much as the one before.
  const ranked = [...Map.groupBy(hints, ({ service }) => service).values()].flatMap((own) =>
    own
      .toSorted((a, b) => b.amount - a.amount)
      .map((hint, i) => ({ ...hint, amount: hint.amount * 0.5 ** i })),
  )
  return weighed(ranked, gravity)
}

const endOfTime: Ns = 2n ** 63n

/** Lower traffic is more often a consequence of failures than their cause. */
function shareOf(member: ClassedAnomaly, isFailing: boolean): number {
  const { expected, value } = member.anomaly
  const isLow = value !== null && expected !== null && value < expected
  const isConsequence = isFailing && isLow && member.kind === 'traffic' && !hasStopped(member)
  return isConsequence ? lowTrafficShare : 1
}

/** Whether a series ended, or hardly any of its traffic is left: failures elsewhere may come from that. */
function hasStopped({ anomaly: { expected, value }, kind }: ClassedAnomaly): boolean {
  if (value === null) return true
  return kind === 'traffic' && expected !== null && value < stoppedShare * expected
}

function deployClues(members: readonly ClassedAnomaly[], deploys: readonly KnownDeploy[]): Clue[] {
  const first = firstByService(members)
  const hints = deploys.flatMap(({ atNs, service, version }): Hint[] => {
    const own = first.get(service)
    if (own === undefined || atNs > own.startedNs + slackNs || atNs + deployBeforeNs < own.startedNs)
      return []
    const what = version === null ? 'It was deployed' : `Version ${version} of ${service} was deployed`
    const text = `${what} at ${formatInstant(atNs)}, just before it deviated.`
    return [{ kind: 'deploy', service, metricKey: own.anomaly.metric_key, amount: 1, text }]
  })
  return weighed(hints, deployGravity)
}
