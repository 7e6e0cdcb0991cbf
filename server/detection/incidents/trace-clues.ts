// What spans show of the origin of an incident: where failures begin, where time is spent, which calls get no
// answer, and whose traffic changed without a change of its callers. It is compared with the time before the
// incident, and a difference counts only where chance does not explain it. No I/O.

import { CallGraph } from './call-graph.ts'
import { type Clue, type Hint, msText, numberText, weighed } from './clues.ts'
import type { CallReading, Reading, ServiceReading, TraceEvidence } from './trace-evidence.ts'

/** A difference has to be this many standard errors. */
const sureErrors = 3
/**
 * The share of requests that fail in addition, and the factors of time and traffic, from which on the gravity
 * is 1.
 */
const graveFailures = 0.05
const graveSlowness = 1
const graveTraffic = 1
/** Smaller changes of time and traffic are ordinary. */
const leastSlowness = 0.15
const leastTraffic = 0.3
/** Fewer calls than this share of what was expected have stopped. */
const stoppedShare = 0.2
const leastCalls = 5

/** The graph of all calls that were seen. */
export function graphOf({ calls }: Pick<TraceEvidence, 'calls'>): CallGraph {
  return new CallGraph(
    calls.flatMap(({ callee, caller }) => (callee === null ? [] : [[caller, callee] as const])),
  )
}

/** Clues by what they are about; empty where nothing changed. */
export function cluesOf(evidence: TraceEvidence): Clue[] {
  const answers = unansweredCalls(evidence)
  return [
    ...failureClues(evidence, answers),
    ...timeClues(evidence, answers),
    ...trafficClues(evidence),
    ...callClues(evidence, answers),
  ]
}

/** Calls that no span answers and whose callee is known. */
interface Unanswered {
  readonly caller: string
  readonly callee: string
  /** More than before. */
  readonly failed: number
  readonly waitedMs: number
}

/**
 * A peer is the service that answered its calls before: those of this caller, otherwise those of all callers.
 * Where callers name no peer, as some proxies do, the failures that begin in the caller are those of a callee
 * whose calls have stopped.
 */
function unansweredCalls({ calls, services, window }: TraceEvidence): Unanswered[] {
  const answering = new Map<string, string>()
  for (const { before, callee, caller, peer } of calls) {
    if (callee === null || peer === '' || before.count === 0) continue
    answering.set(JSON.stringify([caller, peer]), callee)
    if (!answering.has(peer)) answering.set(peer, callee)
  }
  const scale = scaleOf(window)
  const lost = calls.flatMap((call): Unanswered[] => {
    const callee = answering.get(JSON.stringify([call.caller, call.peer])) ?? answering.get(call.peer)
    if (call.callee !== null || callee === undefined || callee === call.caller) return []
    const failed = Math.max(0, call.during.failed - call.before.failed * scale)
    const waitedMs = call.during.ownMs * call.during.count - call.before.ownMs * call.before.count * scale
    return [{ caller: call.caller, callee, failed, waitedMs: Math.max(0, waitedMs) }]
  })
  const unnamed = callRates({ calls, services }).filter(({ isNamed, isStopped }) => isStopped && !isNamed)
  const stopped = unnamed.flatMap(({ callee, caller, missing }): Unanswered[] => {
    const failed = Math.min(missing, excessFailures(caller))
    if (failed === 0) return []
    const waitedMs = slowness(caller.before, caller.during).ms * caller.during.count
    return [{ caller: caller.service, callee, failed, waitedMs }]
  })
  return [...lost, ...stopped]
}

/** How often a caller makes a call for each of its own requests. */
interface CallRate {
  readonly caller: ServiceReading
  readonly callee: string
  readonly before: number
  readonly during: number
  /** Calls that the rate before would have made in addition; negative where there are more. */
  readonly missing: number
  /** Whether the caller names its peer. */
  readonly isNamed: boolean
  readonly isStopped: boolean
}

/** Only of calls that are frequent enough to judge. */
function callRates({ calls, services }: Pick<TraceEvidence, 'calls' | 'services'>): CallRate[] {
  const byName = new Map(services.map((one) => [one.service, one]))
  const edges = Map.groupBy(
    calls.filter(({ callee }) => callee !== null),
    ({ callee, caller }) => JSON.stringify([caller, callee]),
  )
  const rates = [...edges.values()].flatMap((rows): CallRate[] => {
    const [first] = rows
    const caller = byName.get(first?.caller ?? '')
    const callee = first?.callee ?? null
    if (caller === undefined || callee === null) return []
    if (caller.before.count === 0 || caller.during.count === 0) return []
    const made = sum(rows.map((row) => row.during.count))
    const before = sum(rows.map((row) => row.before.count)) / caller.before.count
    const expected = before * caller.during.count
    if (expected < leastCalls) return []
    return [
      {
        ...{ caller, callee, before, during: made / caller.during.count, missing: expected - made },
        isNamed: rows.some(({ peer }) => peer !== ''),
        isStopped: made < stoppedShare * expected,
      },
    ]
  })
  // If a caller stopped calling all of several callees, the caller is what changed.
  return [...Map.groupBy(rates, ({ caller }) => caller).values()].flatMap((own) =>
    own.length > 1 && own.every(({ isStopped }) => isStopped)
      ? own.map((rate) => ({ ...rate, isStopped: false }))
      : own,
  )
}

function failureClues({ calls, services }: TraceEvidence, unanswered: readonly Unanswered[]): Clue[] {
  const own = services.map((service) => {
    const moved = sum(unanswered.filter(({ caller }) => caller === service.service).map((one) => one.failed))
    return { service, excess: Math.max(0, excessFailures(service) - moved) }
  })
  const lost = Map.groupBy(unanswered, ({ callee }) => callee)
  const total = sum(own.map(({ excess }) => excess)) + sum(unanswered.map(({ failed }) => failed))
  const hints: Hint[] = own.map(({ excess, service: { service } }) => ({
    kind: 'failures',
    service,
    metricKey: 'spans.error_ratio',
    amount: excess,
    text: `${numberText(excess)} of ${numberText(total)} additional failures began in ${service}: nothing that it calls failed.`,
  }))
  for (const [service, calls] of lost) {
    const amount = sum(calls.map(({ failed }) => failed))
    const text = `${numberText(amount)} calls to ${service} failed without an answer.`
    hints.push({ kind: 'unanswered', service, metricKey: 'spans.rate', amount, text })
  }
  for (const { before, callee, caller, during } of calls) {
    const excess = callee === null ? 0 : excessFailures({ before, during })
    if (callee === null || excess === 0) continue
    const about = { kind: 'unanswered', metricKey: 'spans.error_ratio' } as const
    const text = `${numberText(excess)} calls of ${caller} to ${callee} failed, though ${callee} did not fail: the way between them.`
    // The failure may be at either end of the connection.
    hints.push({ ...about, service: callee, amount: 0.6 * excess, text })
    hints.push({ ...about, service: caller, amount: 0.4 * excess, text })
  }
  const worst = Math.max(0, ...services.map(({ before, during }) => ratioOf(during) - ratioOf(before)))
  return weighed(hints, Math.min(1, worst / graveFailures))
}

/** Own failures beyond what the ratio before explains; 0 where chance may have made them. */
function excessFailures({ before, during }: Pick<ServiceReading, 'before' | 'during'>): number {
  const expected = ((before.ownFailed + 0.5) / (before.count + 1)) * during.count
  const excess = during.ownFailed - expected
  return excess > sureErrors * Math.sqrt(expected + 1) ? excess : 0
}

function timeClues({ calls, services }: TraceEvidence, unanswered: readonly Unanswered[]): Clue[] {
  const hints: Hint[] = []
  let gravity = 0
  for (const { before, during, service } of services) {
    const slower = slowness(before, during)
    const moved = sum(unanswered.filter(({ caller }) => caller === service).map((one) => one.waitedMs))
    if (slower.ms === 0) continue
    const amount = Math.max(0, slower.ms * during.count - moved) * Math.min(1, slower.share)
    gravity = Math.max(gravity, slower.share / graveSlowness)
    const text = `Requests took ${msText(during.ownMs)} in ${service} itself on average, before ${msText(before.ownMs)}.`
    hints.push({ kind: 'time', service, metricKey: 'spans.latency_p95', amount, text })
  }
  for (const [service, waits] of Map.groupBy(unanswered, ({ callee }) => callee)) {
    const amount = sum(waits.map(({ waitedMs }) => waitedMs))
    const text = `Callers waited for ${service} ${msText(amount)} more, all together, without an answer.`
    hints.push({ kind: 'waiting', service, metricKey: 'spans.latency_p95', amount, text })
  }
  for (const { before, callee, caller, during } of calls) {
    const slower = slowness(before, during)
    if (callee === null || slower.ms === 0) continue
    gravity = Math.max(gravity, Math.min(1, slower.share / graveSlowness) / 2)
    const text = `Between ${caller} and ${callee} a call waited ${msText(during.ownMs)}, before ${msText(before.ownMs)}.`
    const waited = slower.ms * during.count * Math.min(1, slower.share)
    // The wait may be at either end of the connection; most often it is a callee that accepts late.
    hints.push({
      kind: 'waiting',
      service: callee,
      metricKey: 'spans.latency_p95',
      amount: 0.7 * waited,
      text,
    })
    hints.push({
      kind: 'waiting',
      service: caller,
      metricKey: 'spans.latency_p95',
      amount: 0.3 * waited,
      text,
    })
  }
  return weighed(hints, Math.min(1, gravity))
}

/** By how much the mean time grew, beyond chance and ordinary changes; `share` of the time before. */
function slowness(before: Reading, during: Reading): { readonly ms: number; readonly share: number } {
  const calm = { ms: 0, share: 0 }
  if (before.count < 2 || during.count < 2) return calm
  const ms = during.ownMs - before.ownMs
  const error = Math.sqrt(before.ownSpreadMs ** 2 / before.count + during.ownSpreadMs ** 2 / during.count)
  const share = ms / Math.max(before.ownMs, 0.1)
  return ms > sureErrors * error && share > leastSlowness ? { ms, share } : calm
}

/** Changed traffic of services that no seen service calls, where traffic enters. */
function trafficClues({ calls, services, window }: TraceEvidence): Clue[] {
  const called = new Set(calls.map(({ callee }) => callee))
  const scale = scaleOf(window)
  let gravity = 0
  const hints = services.flatMap(({ before, during, service }): Hint[] => {
    const expected = before.count * scale
    const change = Math.log2((during.count + 1) / (expected + 1))
    const isSure = Math.abs(during.count - expected) > sureErrors * 2 * Math.sqrt(expected + 1)
    if (called.has(service) || !isSure || Math.abs(change) < leastTraffic) return []
    gravity = Math.max(gravity, Math.abs(change) / graveTraffic)
    const text = `Traffic enters by ${service}, and it changed there: ${numberText(during.count)} requests, before ${numberText(expected)} in the same time.`
    return [
      { kind: 'traffic', service, metricKey: 'spans.rate', amount: Math.abs(during.count - expected), text },
    ]
  })
  return weighed(hints, Math.min(1, gravity))
}

/**
 * More calls for each request than before are retries. If there are no calls, the callee is gone, unless the
 * caller fails for another reason before it calls.
 */
function callClues(evidence: TraceEvidence, unanswered: readonly Unanswered[]): Clue[] {
  const hints: Hint[] = []
  let gravity = 0
  for (const { before, callee, caller, during, isStopped, missing } of callRates(evidence)) {
    const { service } = caller
    const change = Math.log2((during + 1e-9) / before)
    const text = `${service} made ${numberText(during)} calls to ${callee} for each of its requests, before ${numberText(before)}.`
    const isSilent = ratioOf(caller.during) - ratioOf(caller.before) < graveFailures
    const isUnanswered = unanswered.some((one) => one.caller === service && one.callee === callee)
    if (isStopped && (isSilent || isUnanswered)) {
      gravity = Math.max(gravity, 0.5)
      hints.push({ kind: 'calls', service: callee, metricKey: 'spans.rate', amount: 1, text })
    } else if (change > leastTraffic && -missing > 2 * sureErrors * Math.sqrt(before * caller.during.count)) {
      gravity = Math.max(gravity, Math.min(1, change))
      hints.push({ kind: 'calls', service, metricKey: 'spans.rate', amount: change, text })
    }
  }
  return weighed(hints, gravity)
}

/** How many times longer the time during the incident is than the time before it. */
function scaleOf({ before, during }: TraceEvidence['window']): number {
  const beforeNs = before.endNs - before.startNs
  return beforeNs <= 0n ? 0 : Number(during.endNs - during.startNs) / Number(beforeNs)
}

const ratioOf = ({ count, failed }: CallReading['before']): number => (count === 0 ? 0 : failed / count)
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
