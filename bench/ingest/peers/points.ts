// The points that every store of this bench gets: gauges and counters as processes export them, one sample a
// minute, the default of OpenTelemetry's SDKs. A sender is what a Collector or Prometheus forwards: some
// processes of services, whose samples of a minute have the same instant, all in one body. The same seed
// gives the same series, values and instants in every encoding; only the end of the time comes from the
// clock, because stores expect recent points.

import { seededUniform } from '../../../server/detection/scoring/seeded-random.ts'
import { type IntegerAttribute, requestAttributes, resource, type TextAttribute } from '../payloads.ts'

export interface Shape {
  readonly senders: number
  readonly seriesPerSender: number
  /** Samples of each series. */
  readonly rounds: number
  readonly seed: number
  /** Milliseconds; the last samples are within the minute before it. */
  readonly endMs: number
}

const roundMs = 60_000
const processesPerSender = 8
const attributeSetsPerMetric = 5

interface PointSeries {
  readonly id: number
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  readonly attributes: readonly (TextAttribute | IntegerAttribute)[]
}

/** One process and its series, in the order in which they are sent. */
export interface Process {
  readonly attributes: readonly TextAttribute[]
  readonly startMs: number
  readonly series: readonly PointSeries[]
}

/** The processes of one sender. */
export function processesOf(shape: Shape, sender: number): Process[] {
  const random = seededUniform(shape.seed * 1000 + sender)
  const each = Math.ceil(shape.seriesPerSender / processesPerSender)
  return Array.from({ length: processesPerSender }, (_, at) => {
    const first = at * each
    const count = Math.min(each, shape.seriesPerSender - first)
    return {
      attributes: resource(random, sender * processesPerSender + at).attributes,
      startMs: shape.endMs - (shape.rounds + 60) * roundMs,
      series: seriesOf(random, sender * shape.seriesPerSender + first, count),
    }
  })
}

function seriesOf(random: () => number, firstId: number, count: number): PointSeries[] {
  const seen = new Set<string>()
  const found: PointSeries[] = []
  while (found.length < count) {
    const metric = Math.floor(found.length / attributeSetsPerMetric)
    const kind = metric % 5 < 3 ? 'counter' : 'gauge'
    const name = `shop_metric_${metric}${kind === 'counter' ? '_total' : ''}`
    const attributes = requestAttributes(random)
    const key = `${name} ${JSON.stringify(attributes)}`
    if (seen.has(key)) continue
    seen.add(key)
    found.push({ id: firstId + found.length, name, kind, attributes })
  }
  return found
}

/** The samples of one sender in one round. */
export interface Round {
  /** Milliseconds, one per process. */
  readonly timesMs: readonly number[]
  /** One per series; those of counters are integers. */
  readonly values: Float64Array
}

/**
 * The rounds of a sender, oldest first. A third of the counters hardly ever increase, the others by up to
 * some hundred a minute; half of the gauges are small integers, half are ratios with all digits. The rounds
 * share one array.
 */
export function* roundsOf(shape: Shape, sender: number, processes: readonly Process[]): Generator<Round> {
  const random = seededUniform(shape.seed * 2000 + sender)
  const series = processes.flatMap((process) => process.series)
  const values = Float64Array.from(series, () => Math.floor(random() * 1e6))
  const rates = series.map(() => (random() < 1 / 3 ? 0 : random() * 400))
  const phases = processes.map(() => Math.floor(random() * (roundMs - 1000)))
  for (let round = 0; round < shape.rounds; round++) {
    for (const [at, { kind }] of series.entries()) {
      const rate = rates[at] ?? 0
      values[at] =
        kind === 'counter'
          ? (values[at] ?? 0) + (rate === 0 ? Number(random() < 0.02) : Math.floor(random() * rate))
          : at % 2 === 0
            ? Math.floor(random() * random() * 40)
            : random()
    }
    const startMs = shape.endMs - (shape.rounds - round) * roundMs
    yield { timesMs: phases.map((phase) => startMs + phase + Math.floor(random() * 20)), values }
  }
}
