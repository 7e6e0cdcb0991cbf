// The demo's shop with one fault in one of its services: requests by its call graph, minute by minute, with
// the logs and the memory of each service. Twelve kinds of fault, each possible at any service. A fault
// spreads as in real services: a caller fails or waits when its callee does, and an unanswered call leaves
// only the span of the caller.

import {
  failingStep,
  flows,
  type ServiceName,
  type Step,
  serviceNames,
  spanKind,
} from '../../server/demo/call-graph.ts'
import { logNormal, openRandom, poisson, type Random } from '../../server/demo/random.ts'

export const faultKinds = [
  'errors',
  'latency',
  'saturation',
  'crash',
  'slow dependency',
  'bad deploy',
  'memory leak',
  'traffic surge',
  'one route failing',
  'database lock',
  'retry storm',
  'configuration error',
] as const
type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  readonly kind: FaultKind
  readonly service: ServiceName
}

interface SimulatedSpan {
  readonly trace: string
  readonly id: string
  readonly parent: string
  /** Trace and span of the message that caused it. */
  readonly link: readonly [trace: string, span: string] | null
  readonly step: Step
  /** Milliseconds after the start of the minute. */
  readonly startMs: number
  ms: number
  isFailed: boolean
  readonly version: string
  /** The callee; empty for a step that is no call. */
  readonly peer: string
}

export interface SimulatedMinute {
  readonly spans: readonly SimulatedSpan[]
  /** By service. */
  readonly errorLogs: ReadonlyMap<string, number>
  readonly memory: ReadonlyMap<string, number>
}

/** Requests a minute on an average day; enough that each service has a percentile in five minutes. */
const requestsPerMinute = 75
const weights: Readonly<Record<string, number>> = { browse: 4, search: 3, add_to_cart: 2, checkout: 2 }
const weightSum = Object.values(weights).reduce((sum, one) => sum + one, 0)
const durationSigma = 0.38
/** A refused connection answers at once, a lost one after this. */
const timeoutMs = 1000

/** The state of a service in a minute. */
interface State {
  readonly slow: number
  readonly leafSlow: number
  /** Added to each request, ms. */
  readonly addedMs: number
  readonly failing: number
  readonly isGone: boolean
  readonly attempts: number
  readonly isMisconfigured: boolean
  readonly version: string
}

const calm: State = {
  slow: 1,
  leafSlow: 1,
  addedMs: 0,
  failing: 0.001,
  isGone: false,
  attempts: 1,
  isMisconfigured: false,
  version: '1.4.0',
}

interface Scenario {
  readonly seed: number
  readonly fault: Fault | null
  /** Minutes; there is no fault before them. */
  readonly faultFrom: number
  /** The severity of the fault, 0 (hardly noticeable) to 1. */
  readonly gravity: number
}

/** Traffic by the hour of the day, 1 on average. */
export function seasonAt(minute: number): number {
  return 1 + 0.45 * Math.sin(2 * Math.PI * ((minute % 1440) / 1440 - 0.35))
}

/** Expected requests a minute of a flow without a fault. */
const flowRate = (name: string): number => (requestsPerMinute * (weights[name] ?? 0)) / weightSum

/** The shop in a minute. The same arguments give the same minute. */
export function simulateMinute(scenario: Scenario, minute: number): SimulatedMinute {
  const random = openRandom(scenario.seed, minute)
  const run: Run = { random, scenario, minute, spans: [], prefix: `${minute.toString(36)}.`, ids: 0 }
  for (const { name, root } of flows) {
    const count = poisson(random, flowRate(name) * seasonAt(minute))
    for (let i = 0; i < count; i++) request(run, root)
  }
  surge(run)
  return { spans: run.spans, errorLogs: logsOf(run), memory: memoryOf(run) }
}

interface Run {
  readonly random: Random
  readonly scenario: Scenario
  readonly minute: number
  readonly spans: SimulatedSpan[]
  readonly prefix: string
  ids: number
}

function request(run: Run, root: Step): void {
  const trace = `${run.prefix}${run.ids++}`
  const arrivedMs = run.random() * 60_000
  const before = run.spans.length
  walk(run, root, { trace, parent: '', startMs: arrivedMs, link: null })
  for (const sent of run.spans.slice(before)) {
    const { causes } = sent.step
    if (causes === undefined || sent.isFailed) continue
    const caused = `${run.prefix}${run.ids++}`
    const startMs = sent.startMs + sent.ms + 40 * run.random()
    walk(run, causes, { trace: caused, parent: '', startMs, link: [trace, sent.id] })
  }
}

/** Additional requests, which come to the service of the fault from outside. */
function surge(run: Run): void {
  const { fault, faultFrom, gravity } = run.scenario
  if (fault?.kind !== 'traffic surge' || run.minute < faultFrom) return
  const step = entriesOf(fault.service)[0]
  if (step === undefined) return
  const count = poisson(run.random, (1.5 + 3 * gravity) * usualRate(fault.service) * seasonAt(run.minute))
  for (let i = 0; i < count; i++) request(run, step)
}

interface CallPosition {
  readonly trace: string
  readonly parent: string
  readonly startMs: number
  readonly link: SimulatedSpan['link']
}

interface StepEnd {
  readonly endMs: number
  readonly isFailed: boolean
}

function walk(run: Run, step: Step, position: CallPosition): StepEnd {
  const { random } = run
  const state = stateOf(run, step)
  const isEntry = step.kind === spanKind.server || step.kind === spanKind.consumer
  if (isEntry && state.isGone) {
    return { endMs: position.startMs + (random() < 0.5 ? 2 : timeoutMs) * (0.5 + random()), isFailed: true }
  }
  const isLeafCall = step.kind === spanKind.client && step.calls.length === 0
  const factor = state.slow * (isLeafCall ? state.leafSlow : 1)
  const addedMs = isEntry ? state.addedMs : 0
  const ownMs = logNormal(random, step.medianMs * factor + addedMs, durationSigma)
  const span: SimulatedSpan = {
    ...{ trace: position.trace, id: `${run.ids++}`, parent: position.parent, link: position.link, step },
    ...{
      startMs: position.startMs,
      ms: 0,
      isFailed: false,
      version: state.version,
      peer: peerOf(step, state),
    },
  }
  run.spans.push(span)
  const failsItself = isEntry && random() < state.failing
  const origin = failsItself ? failingStep(step) : undefined
  let endMs = position.startMs + 0.4 * ownMs
  if (failsItself && origin === undefined) span.isFailed = true
  else if (state.isMisconfigured && step.kind === spanKind.client) {
    span.isFailed = true
    endMs += 1
  } else endMs = walkCalls(run, span, state, { ...position, parent: span.id, startMs: endMs }, origin)
  span.ms = endMs - position.startMs + 0.6 * ownMs
  return { endMs: position.startMs + span.ms, isFailed: span.isFailed }
}

/** One call after the other, up to the first that fails; returns when the last has ended. */
function walkCalls(
  run: Run,
  span: SimulatedSpan,
  state: State,
  position: CallPosition,
  origin: Step | undefined,
): number {
  let endMs = position.startMs
  for (const next of span.step.calls) {
    const isCall = next.kind === spanKind.client
    for (let attempt = 0; attempt < (isCall ? state.attempts : 1); attempt++) {
      const made = walk(run, next, { ...position, startMs: endMs })
      endMs = made.endMs
      const failed = made.isFailed || next === origin
      if (next === origin) markLast(run.spans, next)
      if (!failed) continue
      span.isFailed = true
      return endMs
    }
  }
  return endMs
}

function markLast(spans: readonly SimulatedSpan[], step: Step): void {
  const last = spans.findLast((span) => span.step === step)
  if (last !== undefined) last.isFailed = true
}

function peerOf(step: Step, { isMisconfigured }: State): string {
  const address = String(step.attributes['server.address'] ?? '')
  return isMisconfigured && address !== '' ? 'old.shop.internal' : address
}

/** The state of the service of a step in the minute. */
function stateOf({ minute, scenario }: Run, step: Step): State {
  const { fault, faultFrom, gravity, seed } = scenario
  if (minute < faultFrom) return calm
  // Another service is always slightly worse than usual, which is no incident.
  const distractor = serviceNames[(seed * 7 + 3) % serviceNames.length]
  if (step.service !== fault?.service) {
    return step.service === distractor ? { ...calm, slow: 1.12, failing: 0.004 } : calm
  }
  return { ...calm, ...faultStates[fault.kind](minute - faultFrom, gravity, step) }
}

type FaultState = (minutes: number, gravity: number, step: Step) => Partial<State>

const hasLeafCall = (step: Step) => step.kind === spanKind.client && step.calls.length === 0

const faultStates: Readonly<Record<FaultKind, FaultState>> = {
  errors: (_, gravity) => ({ failing: 0.15 + 0.5 * gravity }),
  latency: (_, gravity) => ({ addedMs: 120 + 600 * gravity }),
  saturation: (minutes, gravity) => {
    const load = Math.min(1, (minutes + 5) / 20)
    return { slow: 1 + 4 * load, addedMs: load * (100 + 500 * gravity), failing: load * 0.15 * gravity }
  },
  crash: () => ({ isGone: true }),
  'slow dependency': (_, gravity, step) =>
    hasLeafOf(step.service) ? { leafSlow: 20 + 40 * gravity } : { addedMs: 150 + 500 * gravity },
  'bad deploy': (_, gravity) => ({ version: '1.5.0', failing: 0.1 + 0.3 * gravity, slow: 1.5 + gravity }),
  'memory leak': (minutes, gravity) => {
    const strain = Math.min(1, minutes / 50)
    return {
      slow: 1 + 4 * strain,
      addedMs: 200 * strain ** 2 * (1 + gravity),
      failing: minutes > 40 ? 0.3 : 0,
    }
  },
  'traffic surge': (_, gravity) => ({ slow: 1 + gravity }),
  'one route failing': (_, gravity, step) => {
    const routes = entriesOf(step.service)
    return step === routes[0] || routes.length < 2 ? { failing: 0.3 + 0.6 * gravity } : {}
  },
  'database lock': (minutes, gravity, step) => {
    const isLocked = minutes % 5 !== 4
    if (!hasLeafOf(step.service)) return isLocked ? { addedMs: 400 + 900 * gravity, failing: 0.05 } : {}
    return isLocked ? { leafSlow: hasLeafCall(step) ? 40 + 120 * gravity : 1, failing: 0.05 } : {}
  },
  'retry storm': (_, gravity) => ({ attempts: 3 + Math.round(3 * gravity), slow: 1.5 }),
  'configuration error': (_, __, step) =>
    callsOut(step.service) ? { isMisconfigured: true } : { failing: 0.95 },
}

const allSteps: readonly Step[] = flows.flatMap(({ root }) => stepsBelow(root))

function stepsBelow(step: Step): Step[] {
  const below = step.causes === undefined ? step.calls : [...step.calls, step.causes]
  return [step, ...below.flatMap(stepsBelow)]
}

const isEntryStep = ({ kind }: Step) => kind === spanKind.server || kind === spanKind.consumer

function entriesOf(service: string): readonly Step[] {
  return allSteps.filter((step) => step.service === service && isEntryStep(step))
}

const hasLeafOf = (service: string) => allSteps.some((step) => step.service === service && hasLeafCall(step))
const callsOut = (service: string) =>
  allSteps.some((step) => step.service === service && step.kind === spanKind.client)

/** Expected requests a minute of a service without a fault. */
export function usualRate(service: string): number {
  return flows.reduce((sum, { name, root }) => {
    const count = stepsBelow(root).filter((step) => step.service === service && isEntryStep(step)).length
    return sum + count * flowRate(name)
  }, 0)
}

/** Each failed request leaves a record in the log of every service that it failed in. */
function logsOf({ spans }: Run): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { isFailed, step } of spans) {
    if (isFailed && isEntryStep(step)) counts.set(step.service, (counts.get(step.service) ?? 0) + 1)
  }
  return counts
}

/** 0 to 1. A stopped service reports none. */
function memoryOf({ minute, random, scenario: { fault, faultFrom } }: Run): Map<string, number> {
  const minutes = minute - faultFrom
  const found = new Map<string, number>()
  for (const service of serviceNames) {
    const isFaulty = service === fault?.service && minutes >= 0
    if (isFaulty && fault.kind === 'crash') continue
    const leaked = isFaulty && fault.kind === 'memory leak' ? Math.min(0.5, minutes / 80) : 0
    found.set(service, 0.4 + leaked + 0.02 * (random() - 0.5))
  }
  return found
}
