// The model of the demo shop: the state of each of its eight services in any given minute. It is a pure
// function of (seed, anchor, minute): traffic follows the hour and the weekday, services are deployed every
// few days, and four incidents happen at fixed distances from the anchor, three in the two weeks before it
// and one a few minutes after it, so that a visitor always finds something recent. Metrics, logs and traces
// are derived from the same minutes, so they agree. The time zone of the shop is chosen so that the anchor is
// in the afternoon: a demo that is started at night still shows a busy shop.

import type { FlowName, ServiceName } from './call-graph.ts'
import { flows, serviceNames } from './call-graph.ts'
import { mix, openRandom, poisson, smoothNoise } from './random.ts'

const defaultHistoryDays = 14

const minutesPerDay = 1440
const localHourAtAnchor = 16

export const minuteNs = 60_000_000_000n

/** Random streams, so that draws for one kind of telemetry never change those for another. */
export const stream = { demand: 1, traces: 2, logs: 3, metrics: 4, noise: 5, deploys: 6 } as const

export type IncidentKey =
  | 'inventory_memory_leak'
  | 'storefront_traffic_drop'
  | 'payments_slow_and_failing'
  | 'search_error_burst'

export interface ShopIncident {
  readonly key: IncidentKey
  readonly service: ServiceName
  /** Whole minutes since 1970; the end is exclusive. */
  readonly startMinute: number
  readonly endMinute: number
  /** What can be seen, one sentence for people who read the demo. */
  readonly seen: string
}

export interface ServiceState {
  /** `service.version`. */
  readonly version: string
  /** The minute in which the running process started; its cumulative counters begin at zero there. */
  readonly startedMinute: number
  /** Multiplies every duration of the service; 1 outside incidents. */
  readonly latencyFactor: number
  /** Share of requests, 0 to 1, that fail because of this service itself. */
  readonly failureRatio: number
  /** 0 to 1. */
  readonly cpu: number
  /** 0 to 1. */
  readonly memory: number
  /** Messages waiting; 0 for a service without a queue. */
  readonly queueDepth: number
}

export interface ShopMinute {
  /** Whole minutes since 1970. */
  readonly minute: number
  /** Requests that arrived, by flow, in the order of `flows`. */
  readonly arrivals: readonly number[]
  /** Requests that failed because of this service, by service, then by flow. */
  readonly ownFailures: readonly (readonly number[])[]
  /** In the order of `serviceNames`. */
  readonly services: readonly ServiceState[]
}

export interface Shop {
  readonly seed: number
  /** First minute of the history; earlier minutes are refused. */
  readonly openMinute: number
  /** First minute after the history. */
  readonly anchorMinute: number
  readonly incidents: readonly ShopIncident[]
  /** Returns the shop in a minute. Throws RangeError before {@link Shop.openMinute}. */
  at(minute: number): ShopMinute
  /** Expected requests per minute of a flow, with incidents and without randomness. */
  expectedRate(flow: FlowName, minute: number): number
  /** Deploys and restarts of a service with `fromMinute <= minute < toMinute`, oldest first. */
  startsOf(service: ServiceName, fromMinute: number, toMinute: number): readonly number[]
}

interface Scenario {
  /** An integer; only its low 32 bits are used. */
  readonly seed: number
  /** End of the history, nanoseconds since 1970; rounded down to the minute. */
  readonly anchorNs: bigint
  /** Whole days before the anchor; 14 where absent. Incidents before the opening don't happen. */
  readonly historyDays?: number
}

interface Temper {
  readonly version: readonly [major: number, minor: number]
  readonly failureRatio: number
  readonly cpu: number
  /** Added to `cpu` at average traffic. */
  readonly cpuOfTraffic: number
  readonly memory: number
  readonly queue: number
}

const tempers: Readonly<Record<ServiceName, Temper>> = {
  storefront: {
    version: [4, 18],
    failureRatio: 0.0001,
    cpu: 0.08,
    cpuOfTraffic: 0.24,
    memory: 0.41,
    queue: 0,
  },
  gateway: { version: [1, 31], failureRatio: 0.0001, cpu: 0.05, cpuOfTraffic: 0.17, memory: 0.22, queue: 0 },
  catalogue: { version: [2, 7], failureRatio: 0.0002, cpu: 0.06, cpuOfTraffic: 0.19, memory: 0.35, queue: 0 },
  search: { version: [3, 2], failureRatio: 0.0008, cpu: 0.12, cpuOfTraffic: 0.27, memory: 0.58, queue: 0 },
  cart: { version: [2, 11], failureRatio: 0.0005, cpu: 0.04, cpuOfTraffic: 0.09, memory: 0.29, queue: 0 },
  checkout: { version: [5, 0], failureRatio: 0.002, cpu: 0.04, cpuOfTraffic: 0.08, memory: 0.33, queue: 0 },
  payments: { version: [1, 44], failureRatio: 0.004, cpu: 0.05, cpuOfTraffic: 0.07, memory: 0.3, queue: 5 },
  inventory: { version: [0, 9], failureRatio: 0.0005, cpu: 0.07, cpuOfTraffic: 0.13, memory: 0.36, queue: 9 },
}

/** Traffic by local hour; the evening is the peak. */
const hours = [
  0.45, 0.32, 0.25, 0.22, 0.22, 0.27, 0.4, 0.6, 0.85, 1.05, 1.2, 1.28, 1.32, 1.28, 1.2, 1.18, 1.22, 1.32,
  1.45, 1.6, 1.7, 1.6, 1.25, 0.8,
]
/** Traffic by local weekday, Sunday first. */
const weekdays = [1.12, 0.94, 0.92, 0.94, 0.97, 1.03, 1.14]

const average = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
const hourAverage = average(hours)
const weekdayAverage = average(weekdays)

/**
 * Returns the shop of a scenario. The same arguments always give the same shop; another anchor moves
 * incidents, deploys and time zone with it.
 */
export function openShop({ seed, anchorNs, historyDays = defaultHistoryDays }: Scenario): Shop {
  const anchorMinute = Number(anchorNs / minuteNs)
  const openMinute = anchorMinute - historyDays * minutesPerDay
  const offsetMinutes = (localHourAtAnchor - (Math.floor(anchorMinute / 60) % 24)) * 60
  const incidents = incidentsAround(anchorMinute).filter(({ startMinute }) => startMinute >= openMinute)
  const starts = serviceNames.map((_, service) => openStarts(seed, openMinute, service, incidents))

  const expectedOf = (flow: number, minute: number): number => {
    const base = flows[flow]?.requestsPerMinute ?? 0
    const drift = 1 + 0.06 * smoothNoise(minute, 47, seed, stream.noise, 100 + flow)
    return base * season(minute + offsetMinutes) * drift * trafficKept(incidents, minute)
  }

  const at = (minute: number): ShopMinute => {
    if (minute < openMinute) throw new RangeError(`The shop opens at minute ${openMinute}, not at ${minute}.`)
    const random = openRandom(seed, stream.demand, minute)
    const arrivals = flows.map((_, flow) => poisson(random, expectedOf(flow, minute)))
    const traffic = arrivals.reduce((sum, count) => sum + count, 0) / averageTraffic
    const services = serviceNames.map((name, service) => {
      const start = starts[service]?.(minute) ?? { index: 0, minute: openMinute }
      return stateOf({ seed, name, service, minute, traffic, start, incidents })
    })
    const ownFailures = services.map(({ failureRatio }, service) =>
      arrivals.map((count, flow) =>
        takesPart(service, flow) ? Math.min(count, poisson(random, count * failureRatio)) : 0,
      ),
    )
    return { minute, arrivals, ownFailures, services }
  }

  const startsOf = (service: ServiceName, fromMinute: number, toMinute: number): number[] => {
    const startOf = starts[serviceNames.indexOf(service)]
    const found: number[] = []
    for (let minute = fromMinute; minute < toMinute; minute++) {
      if (startOf?.(minute).minute === minute) found.push(minute)
    }
    return found
  }

  const expectedRate = (flow: FlowName, minute: number): number =>
    expectedOf(
      flows.findIndex(({ name }) => name === flow),
      minute,
    )

  return { seed, openMinute, anchorMinute, incidents, at, expectedRate, startsOf }
}

const averageTraffic = flows.reduce((sum, flow) => sum + flow.requestsPerMinute, 0)

/** The services in the tree of each flow. */
const participants: readonly ReadonlySet<string>[] = flows.map(({ root }) => {
  const names = new Set<string>()
  const visit = (step: typeof root): void => {
    names.add(step.service)
    step.calls.forEach(visit)
  }
  visit(root)
  return names
})

const takesPart = (service: number, flow: number): boolean =>
  participants[flow]?.has(serviceNames[service] ?? '') ?? false

/** Traffic relative to its average, by local hour and weekday, interpolated between them. */
function season(localMinute: number): number {
  const hour = joined(hours, localMinute / 60) / hourAverage
  // 1970-01-01 was a Thursday; a weekday has its full weight at noon.
  const weekday = joined(weekdays, localMinute / minutesPerDay + 4 - 0.5) / weekdayAverage
  return hour * weekday
}

/** Interpolates a cyclic table between its entries along a cosine. */
function joined(table: readonly number[], position: number): number {
  const index = Math.floor(position)
  const share = (1 - Math.cos(Math.PI * (position - index))) / 2
  const left = table[((index % table.length) + table.length) % table.length] ?? 0
  const right = table[(((index + 1) % table.length) + table.length) % table.length] ?? 0
  return left + (right - left) * share
}

function incidentsAround(anchor: number): readonly ShopIncident[] {
  const incident = (
    key: IncidentKey,
    service: ServiceName,
    startMinute: number,
    minutes: number,
    seen: string,
  ): ShopIncident => ({ key, service, startMinute, endMinute: startMinute + minutes, seen })
  return [
    incident(
      'inventory_memory_leak',
      'inventory',
      anchor - 6 * minutesPerDay - 10 * 60,
      leakMinutes + restartMinutes,
      'inventory leaks memory for half an hour, is killed, and fails while it restarts',
    ),
    incident(
      'storefront_traffic_drop',
      'storefront',
      anchor - 2 * minutesPerDay - 3 * 60,
      90,
      'because of a wrong DNS record, three of four visitors do not reach storefront',
    ),
    incident(
      'payments_slow_and_failing',
      'payments',
      anchor - 55,
      40,
      'the card provider is slow: payments takes eight times as long and half of its requests fail',
    ),
    incident(
      'search_error_burst',
      'search',
      anchor + 5,
      20,
      'an index lost its shards: three of five searches fail until it is rebuilt',
    ),
  ]
}

const leakMinutes = 30
const restartMinutes = 5

/** Progress of an incident, 0 to 1 (exclusive); undefined outside it. */
function progressOf(
  incidents: readonly ShopIncident[],
  key: IncidentKey,
  minute: number,
): number | undefined {
  const found = incidents.find((incident) => incident.key === key)
  if (found === undefined || minute < found.startMinute || minute >= found.endMinute) return undefined
  return (minute - found.startMinute) / (found.endMinute - found.startMinute)
}

const trafficKept = (incidents: readonly ShopIncident[], minute: number): number =>
  progressOf(incidents, 'storefront_traffic_drop', minute) === undefined ? 1 : 0.25

interface Start {
  /** Number of earlier deploys; it is part of the version. */
  readonly index: number
  readonly minute: number
}

/**
 * Finds the last process start at or before a minute. Each service is deployed at its own interval (three to
 * five days, up to eight hours late), and the leak of inventory ends with a restart of the same version.
 */
function openStarts(
  seed: number,
  openMinute: number,
  service: number,
  incidents: readonly ShopIncident[],
): (minute: number) => Start {
  const intervalMinutes = (72 + (mix(seed, stream.deploys, service) % 48)) * 60
  const deployMinute = (index: number): number =>
    index === 0
      ? openMinute
      : openMinute + index * intervalMinutes + (mix(seed, stream.deploys, service, index) % (8 * 60))
  const leak = incidents.find(({ key }) => key === 'inventory_memory_leak')
  const killedMinute =
    leak !== undefined && leak.service === serviceNames[service] ? leak.endMinute - restartMinutes : undefined

  return (minute) => {
    const guess = Math.max(0, Math.floor((minute - openMinute) / intervalMinutes))
    const index = guess > 0 && deployMinute(guess) > minute ? guess - 1 : guess
    const deployed = deployMinute(index)
    const isRestarted = killedMinute !== undefined && killedMinute <= minute && killedMinute > deployed
    return { index, minute: isRestarted ? killedMinute : deployed }
  }
}

interface StateInputs {
  readonly seed: number
  readonly name: ServiceName
  readonly service: number
  readonly minute: number
  /** Relative to the weekly average. */
  readonly traffic: number
  readonly start: Start
  readonly incidents: readonly ShopIncident[]
}

function stateOf({ seed, name, service, minute, traffic, start, incidents }: StateInputs): ServiceState {
  const temper = tempers[name]
  const noise = (spacing: number, salt: number): number =>
    smoothNoise(minute, spacing, seed, stream.noise, service, salt)
  const upMinutes = minute - start.minute
  const harm = harmOf(name, minute, incidents)
  const warmUp = start.index > 0 && upMinutes < 6 ? 0.8 * (1 - upMinutes / 6) : 0
  const latencyFactor = (1 + 0.12 * (traffic - 1) + 0.05 * noise(31, 1) + warmUp) * harm.latency
  const memory = temper.memory + 0.06 * (1 - Math.exp(-upMinutes / minutesPerDay)) + 0.01 * noise(9, 2)
  return {
    version: `${temper.version[0]}.${temper.version[1] + start.index}.0`,
    startedMinute: start.minute,
    latencyFactor: Math.max(0.3, latencyFactor),
    failureRatio: harm.failureRatio ?? temper.failureRatio,
    cpu: between(
      0.01,
      0.99,
      temper.cpu + temper.cpuOfTraffic * traffic + 0.03 * noise(7, 3) + warmUp / 4 + harm.cpu,
    ),
    memory: between(0.05, 0.985, memory + (0.97 - memory) * harm.memoryShare),
    queueDepth: Math.round(temper.queue * Math.max(0.2, traffic * harm.queue * (1 + 0.3 * noise(5, 4)))),
  }
}

interface Harm {
  readonly latency: number
  readonly cpu: number
  /** Replaces the usual ratio of the service. */
  readonly failureRatio?: number
  /** Share of the free memory that is taken, 0 to 1. */
  readonly memoryShare: number
  readonly queue: number
}

const noHarm: Harm = { latency: 1, cpu: 0, memoryShare: 0, queue: 1 }

function harmOf(name: ServiceName, minute: number, incidents: readonly ShopIncident[]): Harm {
  if (name === 'payments' && progressOf(incidents, 'payments_slow_and_failing', minute) !== undefined) {
    return { ...noHarm, latency: 8, failureRatio: 0.5, queue: 12 }
  }
  if (name === 'search' && progressOf(incidents, 'search_error_burst', minute) !== undefined) {
    return { ...noHarm, latency: 2.5, cpu: 0.3, failureRatio: 0.6 }
  }
  const leak = name === 'inventory' ? progressOf(incidents, 'inventory_memory_leak', minute) : undefined
  return leak === undefined ? noHarm : leakHarm(leak * (leakMinutes + restartMinutes))
}

/**
 * Memory fills linearly; near the end, garbage collection costs processor and time; then the process is gone
 * for a while.
 */
function leakHarm(minutes: number): Harm {
  if (minutes >= leakMinutes) return { ...noHarm, latency: 2, failureRatio: 0.7, queue: 25 }
  const share = minutes / leakMinutes
  const strain = share ** 4
  return { latency: 1 + 2 * strain, cpu: 0.35 * strain, memoryShare: share, queue: 1 + 3 * strain }
}

const between = (low: number, high: number, value: number): number => Math.min(high, Math.max(low, value))
