// Measures whether the service names the origin of an incident: the demo's shop with one fault, of twelve
// kinds, in each of its services in turn. Each case has the series that the system detectors and a detector
// of memory read, with weeks of calm before the fault; their findings become anomalies in a control plane,
// the spans around the fault are in an engine, and incidents are read as `GET /incidents/{id}` does. A third
// of the requests is traced. Top-1 and top-3 are shares of all faults: one that no detector noticed counts
// against both. Each incident is read again with all spans hidden.
//
//   npm run bench -- detection/origin [seeds, 1] [--services 8]

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { IncidentWithMembers } from '../../contract/detection/incidents.ts'
import { systemActor } from '../../server/core/actor.ts'
import { ManualClock } from '../../server/core/manual-clock.ts'
import { readActiveHolds } from '../../server/deletion/governance/active-holds.ts'
import { type ServiceName, serviceNames, spanKind } from '../../server/demo/call-graph.ts'
import { demoDetectors } from '../../server/demo/detectors.ts'
import { mix, normal, openRandom, poisson } from '../../server/demo/random.ts'
import { definitionOf, openControl } from '../../server/detection/detection-fixture.ts'
import { type DetectorDefinition, methodChoiceOf } from '../../server/detection/detectors/detector.ts'
import { DetectionStore } from '../../server/detection/detectors/store.ts'
import { systemDetectors } from '../../server/detection/detectors/system-detectors.ts'
import { Incidents } from '../../server/detection/incidents/incidents.ts'
import { SurroundingsReader } from '../../server/detection/incidents/surroundings.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { narrowestStep, planRun, type RunPlan } from '../../server/detection/runs/run-plan.ts'
import type { Series } from '../../server/detection/scoring/series.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../../server/telemetry/row-fixture.ts'
import { TenantReader } from '../../server/telemetry/tenant-reader.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'
import {
  type Counted,
  countRequest,
  nothing,
  percentile95,
  type Reading,
  readingOf,
  seriesOfRun,
} from './counted.ts'
import {
  type Fault,
  faultKinds,
  type SimulatedMinute,
  seasonAt,
  simulateMinute,
  usualRate,
} from './fault-shop.ts'

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: { services: { type: 'string', default: '8' } },
})
const seeds = Array.from({ length: Number(positionals[0] ?? 1) }, (_, i) => i + 1)
const servicesEach = Number(options.services)

const minuteMs = 60_000
/** Wednesday 2026-11-18, 13:00 UTC, in minutes since 1970. */
const noonMinute = Date.UTC(2026, 10, 18, 13) / minuteMs
/** Simulated before the fault, and until detectors run. */
const calmMinutes = 60
const faultMinutes = 66
const tracedOneIn = 3

const detectors: readonly DetectorDefinition[] = [
  ...systemDetectors,
  ...demoDetectors
    .filter(({ metric_key }) => metric_key === 'system.memory.utilization')
    .map((draft) => definitionOf({ ...draft })),
]

class Case {
  readonly fault: Fault
  readonly faultMinute: number
  readonly endMinute: number
  readonly #seed: number
  readonly #minutes = new Map<number, SimulatedMinute>()
  readonly #counted = new Map<string, Counted>()
  /** Percentiles of five calm minutes by service: mean and standard deviation. */
  readonly #calmMs = new Map<string, readonly [number, number]>()

  constructor(seed: number, fault: Fault) {
    const random = openRandom(seed, faultKinds.indexOf(fault.kind), serviceNames.indexOf(fault.service))
    this.#seed = random.bits()
    this.fault = fault
    this.faultMinute = noonMinute + Math.floor(random() * 15)
    this.endMinute = this.faultMinute + faultMinutes
    const scenario = { seed: this.#seed, fault, faultFrom: this.faultMinute, gravity: random() }
    for (let minute = this.#firstMinute; minute < this.endMinute; minute++) {
      const simulated = simulateMinute(scenario, minute)
      this.#minutes.set(minute, simulated)
      this.#count(minute, simulated)
    }
    for (const service of serviceNames) this.#calmMs.set(service, this.#calmPercentiles(service))
  }

  get #firstMinute(): number {
    return this.faultMinute - calmMinutes
  }

  #of(minute: number, service: string): Counted {
    const key = `${minute} ${service}`
    const found = this.#counted.get(key) ?? nothing()
    this.#counted.set(key, found)
    return found
  }

  #count(minute: number, { errorLogs, memory, spans }: SimulatedMinute): void {
    for (const { isFailed, ms, startMs, step } of spans) {
      if (step.kind !== spanKind.server && step.kind !== spanKind.consumer) continue
      countRequest(this.#of(minute + Math.floor(startMs / minuteMs), step.service), isFailed, ms)
    }
    for (const [service, count] of errorLogs) this.#of(minute, service).errorLogs += count
    for (const [service, value] of memory) this.#of(minute, service).memory.push(value)
  }

  #calmPercentiles(service: string): readonly [number, number] {
    const values: number[] = []
    for (let minute = this.#firstMinute; minute + 5 <= this.faultMinute; minute += 5) {
      values.push(percentile95(this.#over(service, minute, 5).flatMap(({ durationsMs }) => durationsMs)))
    }
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    return [mean, Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)]
  }

  #over(service: string, from: number, count: number): Counted[] {
    return Array.from({ length: count }, (_, i) => this.#of(from + i, service))
  }

  /** The series of a run: simulated minutes, and before them draws of the same distributions. */
  series(metricKey: string, service: ServiceName, plan: RunPlan): Series {
    const step = plan.stepMinutes
    return seriesOfRun(plan, (from) =>
      from >= this.#firstMinute
        ? readingOf(metricKey, this.#over(service, from, step))
        : this.#drawn(metricKey, service, from, step),
    )
  }

  #drawn(metricKey: string, service: ServiceName, from: number, step: number): Reading {
    const random = openRandom(this.#seed, from, serviceNames.indexOf(service), step)
    const requests = poisson(random, usualRate(service) * seasonAt(from + step / 2) * step)
    if (metricKey === 'spans.rate') return { value: requests / (60 * step), volume: requests }
    const failed = poisson(random, 0.002 * requests)
    if (metricKey === 'spans.error_ratio') return { value: failed / requests, volume: requests }
    if (metricKey === 'logs.error_count') return { value: failed, volume: 1 }
    if (metricKey !== 'spans.latency_p95') return { value: 0.4 + 0.006 * (random() - 0.5), volume: step }
    const [mean, deviation] = this.#calmMs.get(service) ?? [0, 0]
    return { value: Math.max(1, mean + normal(random) * deviation), volume: requests }
  }

  /** The traced spans from half an hour and more before the fault to an hour after its start. */
  *rows(): Generator<FixtureRow[]> {
    for (const [minute, { spans }] of this.#minutes) {
      const traced = spans.filter(({ link, trace }) => isTraced(link?.[0] ?? trace))
      yield traced.map((span) => rowOf(span, minute))
    }
  }
}

function isTraced(trace: string): boolean {
  return (
    mix(Number(trace.slice(trace.indexOf('.') + 1)), trace.charCodeAt(trace.indexOf('.') - 1)) %
      tracedOneIn ===
    0
  )
}

/** By the numbers of OTLP. */
const kindNames = ['', 'Internal', 'Server', 'Client', 'Producer', 'Consumer']

function rowOf(
  { id, isFailed, link, ms, parent, peer, startMs, step, trace, version }: SimulatedMinute['spans'][number],
  minute: number,
): FixtureRow {
  return {
    Timestamp: BigInt(Math.round((minute * minuteMs + startMs) * 1000)) * 1000n,
    TraceId: trace,
    SpanId: `${trace}-${id}`,
    ParentSpanId: parent === '' ? '' : `${trace}-${parent}`,
    SpanName: step.name,
    SpanKind: kindNames[step.kind] ?? '',
    ServiceName: step.service,
    ResourceAttributes: { 'service.name': step.service, 'service.version': version },
    SpanAttributes: peer === '' ? {} : { 'server.address': peer },
    Duration: String(Math.round(ms * 1e6)),
    StatusCode: isFailed ? 'Error' : 'Unset',
    ...(link !== null && { 'Links.TraceId': [link[0]], 'Links.SpanId': [`${link[0]}-${link[1]}`] }),
    ...(link !== null && { 'Links.TraceState': [''], 'Links.Attributes': [{}] }),
  }
}

const { control, close, folder } = await openControl()
const engine = await openChdb({ folder: join(folder, 'telemetry'), maxMemoryBytes: 2 ** 30 })
const gate = new TelemetryGate()
const store = new DetectionStore(control, new ManualClock(0), gate, readActiveHolds)
const incidents = new Incidents(store, new SurroundingsReader(gate))
const actor = systemActor('bench')

interface RankedCase {
  readonly fault: Fault
  readonly anomalies: number
  /** From 1; null where the service is no candidate, or nothing was found. */
  readonly rank: number | null
  /** The same without spans. */
  readonly rankAlone: number | null
  readonly incidents: number
}

async function rankCase(one: Case, ordinal: number): Promise<RankedCase> {
  const place: TenantPlace = { tenantId: `case-${ordinal}`, placement: ordinal % 64 }
  await control
    .insertInto('organisations')
    .values({ tenant_id: place.tenantId, name: place.tenantId, placement: place.placement, created_at_ms: 0 })
    .execute()
  await insertFixture(engine, place, 'otel_traces', [...one.rows()].flat())
  const nowMs = one.endMinute * minuteMs
  let anomalies = 0
  for (const definition of detectors) anomalies += await detect(one, place, definition, nowMs)
  const reader = new TenantReader(engine, place, gate)
  const nowNs = BigInt(nowMs) * 1_000_000n
  const { incidents: listed } = await incidents.list(reader, { limit: 10, before: null }, nowNs)
  const ask = async () => {
    const { incidents: found } = await incidents.list(reader, { limit: 10, before: null }, nowNs)
    const [largest] = found.toSorted((a, b) => b.incident.anomaly_count - a.incident.anomaly_count)
    return largest === undefined ? null : incidents.find(reader, largest.incident.id, nowNs)
  }
  const rank = rankIn(await ask(), one.fault)
  gate.hide(place.tenantId, { id: 'all spans', signals: ['traces'], range: { startNs: null, endNs: null } })
  const rankAlone = rankIn(await ask(), one.fault)
  return { fault: one.fault, anomalies, rank, rankAlone, incidents: listed.length }
}

function rankIn(found: IncidentWithMembers | null, { service }: Fault): number | null {
  const index = found?.candidates.findIndex((candidate) => candidate.service === service) ?? -1
  return index < 0 ? null : index + 1
}

/** Records the anomalies that a detector finds, and returns their number. */
async function detect(one: Case, { tenantId }: TenantPlace, definition: DetectorDefinition, nowMs: number) {
  const choice = methodChoiceOf(definition)
  if (choice === null) throw new Error('invalid params')
  const { id } = await store.createDetector(tenantId, definition, actor)
  const plan = planRun(definition, narrowestStep(definition.window_minutes), nowMs + 30_000)
  let found = 0
  for (const service of serviceNames) {
    const series = one.series(definition.metric_key, service, plan)
    const minuteAt = (bucket: number) => Number(plan.startNs / 60_000_000_000n) + bucket * plan.stepMinutes
    for (const episode of evaluateSeries(series, choice).episodes) {
      const [from, until] = [minuteAt(episode.startIndex), minuteAt(episode.lastIndex + 1)]
      if (until <= one.faultMinute) continue
      const ns = (minute: number) => (BigInt(minute) * 60_000_000_000n).toString()
      const { expected, lower, peakValue, score, upper } = episode
      const raisedMs = minuteAt(episode.openedIndex + 1) * minuteMs
      await control
        .insertInto('anomalies')
        .values({
          id: `ano_${raisedMs}${tenantId}${id}${service}`,
          ...{ tenant_id: tenantId, detector_id: id, group_key: JSON.stringify({ service }) },
          ...{ metric_key: definition.metric_key, signal: 'metrics', started_at_ns: ns(from) },
          ...{ ended_at_ns: episode.endIndex === null ? null : ns(until), seen_until_ns: ns(until) },
          ...{ peak_at_ns: ns(minuteAt(episode.peakIndex)), value: peakValue, expected, lower, upper, score },
          ...{ reason: 'found by the bench', read_from_ns: ns(from), unread_ns: '[]', muted: 0 },
          ...{ created_at_ms: raisedMs, updated_at_ms: nowMs },
        })
        .execute()
      found++
    }
  }
  return found
}

const cases: RankedCase[] = []
let ordinal = 0
for (const seed of seeds) {
  for (const [k, kind] of faultKinds.entries()) {
    for (let i = 0; i < servicesEach; i++) {
      const turn = (seed + k + i * Math.ceil(serviceNames.length / servicesEach)) % serviceNames.length
      const service = serviceNames[turn] ?? 'storefront'
      cases.push(await rankCase(new Case(seed, { kind, service }), ordinal++))
    }
  }
}

function row(name: string, some: readonly RankedCase[]) {
  const share = (count: number) => rounded(count / some.length)
  const within = (max: number, rankOf: (one: RankedCase) => number | null) =>
    share(some.filter((one) => (rankOf(one) ?? max + 1) <= max).length)
  const [withSpans, alone] = [(one: RankedCase) => one.rank, (one: RankedCase) => one.rankAlone]
  return {
    fault: name,
    faults: some.length,
    noticed: share(some.filter(({ anomalies }) => anomalies > 0).length),
    'top-1': within(1, withSpans),
    'top-3': within(3, withSpans),
    'top-1 without spans': within(1, alone),
    'top-3 without spans': within(3, alone),
    'anomalies each': rounded(some.reduce((sum, { anomalies }) => sum + anomalies, 0) / some.length),
    'incidents each': rounded(some.reduce((sum, one) => sum + one.incidents, 0) / some.length),
  }
}

for (const [kind, some] of Map.groupBy(cases, ({ fault }) => fault.kind))
  report('Origin by fault', row(kind, some))
report('Origin of all', row('all', cases))
await engine.close()
await close()
