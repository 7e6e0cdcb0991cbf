// Four weeks of seeded telemetry as services send it, with incidents of the kinds that operators name: a
// corpus in addition to NAB, written before any method was measured on it. Beside jumps, as in label-free.ts,
// it has incidents without one: a leak, a constant reading, a ceiling, a day without its usual rise. Sizes
// are shares of the usual range of the series, so that some are obvious and some are small. Nightly jobs,
// single outliers, gaps and drift also occur without an incident.

import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { between, type Chance, type LabelledIncident, type LabelledSeries } from './labelled-series.ts'
import { isVisible } from './visible.ts'

const stepMinutes = 5
const perDay = 288
const perHour = 12
const days = 28
/** No incident is planted before, so that every method has seen a weekend. */
const firstDay = 7
const daysBetween = 4

type Signal = (length: number, chance: Chance) => Float64Array

const day = (i: number) => (i % perDay) / perDay
const isWeekend = (i: number) => Math.floor(i / perDay) % 7 >= 5
/** Low at four in the morning, high in the afternoon, flatter at weekends. */
const load = (i: number) => (1 - 0.6 * Math.cos(2 * Math.PI * (day(i) - 1 / 6))) * (isWeekend(i) ? 0.7 : 1)

/** First-order autoregressive noise of standard deviation 1. */
function drifting(keep: number, { normal }: Chance): () => number {
  let level = 0
  return () => {
    level = keep * level + Math.sqrt(1 - keep * keep) * normal()
    return level
  }
}

const each =
  (make: (chance: Chance) => (i: number) => number): Signal =>
  (length, chance) => {
    const at = make(chance)
    return Float64Array.from({ length }, (_, i) => at(i))
  }

/** Counts with a spread of their own: Poisson for many, approximately for few. */
const counted = (rate: number, { normal }: Chance) =>
  Math.max(0, Math.round(rate + Math.sqrt(Math.max(0, rate)) * normal()))

const signals: Record<string, Signal> = {
  requests: each((chance) => {
    const mood = drifting(0.95, chance)
    return (i) => counted(400 * load(i) * Math.exp(0.06 * mood()), chance)
  }),
  'requests with an hourly job': each((chance) => {
    const mood = drifting(0.95, chance)
    return (i) => counted((150 * load(i) + (i % perHour === 0 ? 120 : 0)) * Math.exp(0.05 * mood()), chance)
  }),
  'latency, median': each((chance) => {
    const mood = drifting(0.9, chance)
    return (i) => 60 * (1 + 0.15 * load(i)) * Math.exp(0.05 * mood() + 0.04 * chance.normal())
  }),
  'latency, p99': each((chance) => (i) => {
    const outlier = chance.uniform() < 0.004 ? 2.5 : 1
    return 300 * (1 + 0.3 * load(i)) * outlier * Math.exp(0.3 * chance.normal())
  }),
  errors: each((chance) => (i) => counted(3 * load(i), chance)),
  'cpu with a nightly job': each((chance) => {
    const mood = drifting(0.97, chance)
    return (i) => {
      const job = i % perDay >= 24 && i % perDay < 36 ? 35 : 0
      return Math.min(100, Math.max(0, 22 + 8 * load(i) + job + 3 * mood() + 1.5 * chance.normal()))
    }
  }),
  'memory with collections': each((chance) => {
    let used = 40
    return () => {
      used = used > 62 + 3 * chance.normal() ? 40 + chance.normal() : used + 0.35 + 0.2 * chance.normal()
      return used
    }
  }),
  'queue depth': each((chance) => {
    let depth = 0
    return (i) => {
      const burst = chance.uniform() < 0.01 ? 60 * -Math.log(1 - chance.uniform()) : 0
      depth = Math.max(0, 0.7 * depth + burst + load(i) * Math.abs(chance.normal()))
      return Math.round(depth)
    }
  }),
  temperature: each((chance) => {
    const slow = drifting(0.995, chance)
    return (i) => 45 + 3 * load(i) + 2 * slow() + 0.1 * chance.normal()
  }),
  'disk usage': each((chance) => {
    let used = 30
    return (i) => {
      used = i % (7 * perDay) === 0 ? 30 : used + 0.012 * load(i) + 0.004 * chance.normal()
      return used
    }
  }),
}

interface Span {
  readonly from: number
  readonly to: number
  /**
   * The usual range of the series: its median, and half of the distance from its 5 % to its 95 % quantile.
   */
  readonly centre: number
  readonly swing: number
  readonly chance: Chance
}

interface Incident {
  /** Buckets it lasts, from and to. */
  readonly lasts: readonly [number, number]
  readonly apply: (values: Float64Array, span: Span) => void
}

const over = (values: Float64Array, { from, to }: Span, at: (value: number, i: number) => number) => {
  for (let i = from; i < to; i++) values[i] = at(values[i] ?? 0, i)
}

const incidentKinds = {
  spike: {
    lasts: [2, 9],
    apply(values, span) {
      const height = between(1.2, 4, span.chance) * span.swing
      over(values, span, (value) => value + height)
    },
  },
  drop: {
    lasts: [6, 36],
    apply(values, span) {
      const left = between(0, 0.4, span.chance)
      over(values, span, (value) => value * left)
    },
  },
  'level shift': {
    lasts: [perDay / 2, perDay],
    apply(values, span) {
      const height = between(0.7, 1.6, span.chance) * span.swing
      over(values, span, (value) => value + height)
    },
  },
  leak: {
    lasts: [perDay / 2, perDay],
    apply(values, span) {
      const height = between(2, 4, span.chance) * span.swing
      over(values, span, (value, i) => value + (height * (i - span.from)) / (span.to - span.from))
    },
  },
  stuck: {
    lasts: [36, 144],
    apply(values, span) {
      const reading = values[span.from] ?? 0
      over(values, span, () => reading)
    },
  },
  ceiling: {
    lasts: [72, 216],
    apply(values, span) {
      const limit = span.centre + between(-0.3, 0.1, span.chance) * span.swing
      over(values, span, (value) => Math.min(value, limit))
    },
  },
  'missing rise': {
    lasts: [perDay, perDay],
    apply(values, span) {
      const night = values.slice(span.from, span.to)
      // Repeats the readings of the night.
      over(values, span, (_, i) => night[(i - span.from) % 48] ?? 0)
    },
  },
  restless: {
    lasts: [36, 144],
    apply(values, span) {
      const width = between(0.5, 1.2, span.chance) * span.swing
      over(values, span, (value) => value + width * span.chance.normal())
    },
  },
  flapping: {
    lasts: [24, 72],
    apply(values, span) {
      const height = between(0.8, 1.6, span.chance) * span.swing
      over(values, span, (value, i) => value + (Math.floor(i / 3) % 2 === 0 ? height : -height))
    },
  },
} as const satisfies Record<string, Incident>
type IncidentKind = keyof typeof incidentKinds

const kinds = Object.keys(incidentKinds) as IncidentKind[]
/** For values that cannot be negative, or must be whole. */
const isCount = (name: string) => /requests|errors|queue/.test(name)

function plant(name: string, values: Float64Array, turn: number, chance: Chance): LabelledIncident[] {
  const sorted = values.slice().sort()
  const quantile = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0
  const usual = { centre: quantile(0.5), swing: (quantile(0.95) - quantile(0.05)) / 2 }
  const clean = values.slice()
  const incidents: Omit<LabelledIncident, 'isVisible'>[] = []
  for (let start = firstDay; start + 2 < days; start += daysBetween) {
    const kind = kinds[(turn + incidents.length) % kinds.length] ?? 'spike'
    const { lasts, apply } = incidentKinds[kind]
    const offset = kind === 'missing rise' ? 0 : Math.floor(between(0, perDay, chance))
    const from = start * perDay + offset
    const to = from + Math.round(between(lasts[0], lasts[1], chance))
    apply(values, { from, to, ...usual, chance })
    if (isCount(name)) {
      for (let i = from; i < to; i++) values[i] = Math.max(0, Math.round(values[i] ?? 0))
    }
    incidents.push({ kind, from, to })
  }
  // They are days apart and have no after-effects.
  const withoutOne = (from: number, to: number) =>
    values.map((value, i) => (i >= from && i < to ? (clean[i] ?? 0) : value))
  return incidents.map((each) => {
    const planted = { clean, values, perDay, without: withoutOne(each.from, each.to) }
    return { ...each, isVisible: isVisible(planted, each.from, each.to) }
  })
}

/**
 * One series per kind of signal for each seed; every kind of incident occurs in every kind of signal in nine
 * seeds.
 */
export function lifelikeSeries(seeds: readonly number[]): LabelledSeries[] {
  return seeds.flatMap((seed) =>
    Object.entries(signals).map(([name, make], ordinal) => {
      const chance = {
        uniform: seededUniform(7919 * seed + ordinal),
        normal: seededNormal(104_729 * seed + ordinal),
      }
      const values = make(days * perDay, chance)
      const incidents = plant(name, values, seed * 5 + ordinal, chance)
      for (let i = 0; i < values.length; i++) if (chance.uniform() < 0.003) values[i] = Number.NaN
      return { name, stepMinutes, values, incidents, judgedFrom: firstDay * perDay }
    }),
  )
}
