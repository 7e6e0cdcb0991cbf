// A second generated corpus, unlike that of lifelike.ts: steps of one minute to one hour, and random rhythms,
// noise and trends. Incidents change how a series is generated instead of adding to its values: a rhythm that
// is late, lost, or without its peak, a night with the values of an afternoon, noise that grows or stops,
// twice the traffic, a slow climb, a new level. Sizes are in deviations of the noise, many of them small
// compared with the rhythm, so values may stay in the usual range. A series has none to five incidents at
// random times. The corpus was written before any choice was measured on it.

import { noises, seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { between, type Chance, type LabelledIncident, type LabelledSeries } from './labelled-series.ts'
import { isVisible } from './visible.ts'

/** The properties of a series of one step; its length is about what people look at. */
const cadences = [
  { stepMinutes: 1, days: 6 },
  { stepMinutes: 5, days: 21 },
  { stepMinutes: 15, days: 49 },
  { stepMinutes: 60, days: 112 },
] as const

/** Nothing is planted before this share of a series. */
const calmShare = 0.3
const mostIncidents = 5

/** The parts of which the values of a series are computed; incidents change a stretch of them. */
interface Making {
  readonly perDay: number
  /** The rhythm, in deviations of the noise. */
  readonly rhythm: Float64Array
  readonly noise: Float64Array
  /** The level, in deviations as well. */
  readonly level: Float64Array
  /** The factor of the sum. */
  readonly factor: Float64Array
  /** Height of the rhythm from its middle to its top. */
  readonly height: number
}

interface Stretch {
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly chance: Chance
}

interface Kind {
  /** Days it lasts, from and to; in values, where it is the same at any step. */
  readonly days?: readonly [number, number]
  readonly values?: readonly [number, number]
  /** It has no effect in a series without a rhythm. */
  readonly ofRhythm?: true
  readonly apply: (making: Making, stretch: Stretch) => void
}

const sign = ({ uniform }: Chance) => (uniform() < 0.5 ? -1 : 1)

function lift({ level }: Making, { from, to }: Stretch, by: (share: number) => number): void {
  for (let i = from; i < to; i++) level[i] = (level[i] ?? 0) + by((i - from + 1) / (to - from))
}

const kinds = {
  'small spike': {
    values: [1, 5],
    apply(making, stretch) {
      const height = between(6, 16, stretch.chance) * sign(stretch.chance)
      lift(making, stretch, () => height)
    },
  },
  'night as day': {
    ofRhythm: true,
    days: [0.08, 0.2],
    apply({ perDay, rhythm }, { from, to }) {
      const half = Math.round(perDay / 2)
      const other = rhythm.slice(from - half, to - half)
      for (let i = from; i < to; i++) rhythm[i] = other[i - from] ?? 0
    },
  },
  'late rhythm': {
    ofRhythm: true,
    days: [0.8, 1.6],
    apply({ perDay, rhythm }, { chance, from, to }) {
      const late = Math.round(between(0.15, 0.35, chance) * perDay)
      const other = rhythm.slice(from - late, to - late)
      for (let i = from; i < to; i++) rhythm[i] = other[i - from] ?? 0
    },
  },
  'lost rhythm': {
    ofRhythm: true,
    days: [0.6, 1.5],
    apply({ rhythm }, { from, to }) {
      for (let i = from; i < to; i++) rhythm[i] = (rhythm[i] ?? 0) * 0.15
    },
  },
  'missing peak': {
    ofRhythm: true,
    days: [0.5, 1],
    apply({ height, rhythm }, { from, to }) {
      for (let i = from; i < to; i++) rhythm[i] = Math.min(rhythm[i] ?? 0, -0.1 * height)
    },
  },
  'more noise': {
    days: [0.15, 0.5],
    apply({ noise }, { chance, from, to }) {
      const times = between(2.5, 5, chance)
      for (let i = from; i < to; i++) noise[i] = (noise[i] ?? 0) * times
    },
  },
  'no noise': {
    days: [0.3, 0.8],
    apply({ noise }, { from, to }) {
      for (let i = from; i < to; i++) noise[i] = (noise[i] ?? 0) * 0.03
    },
  },
  flatline: {
    days: [0.2, 0.6],
    apply({ level, noise, rhythm }, { from, to }) {
      const still = (level[from] ?? 0) + (noise[from] ?? 0) + (rhythm[from] ?? 0)
      for (let i = from; i < to; i++) {
        level[i] = still
        noise[i] = 0
        rhythm[i] = 0
      }
    },
  },
  outage: {
    days: [0.02, 0.1],
    apply({ factor }, { chance, from, to }) {
      const left = between(0, 0.3, chance)
      for (let i = from; i < to; i++) factor[i] = left
    },
  },
  'twice as much': {
    days: [0.1, 0.4],
    apply({ factor }, { chance, from, to }) {
      const times = between(1.5, 2.2, chance)
      for (let i = from; i < to; i++) factor[i] = times
    },
  },
  'new level': {
    days: [1.5, 1.5],
    apply(making, stretch) {
      const height = between(5, 12, stretch.chance) * sign(stretch.chance)
      lift(making, { ...stretch, to: making.level.length }, () => height)
    },
  },
  climb: {
    days: [0.7, 2],
    apply(making, stretch) {
      const height = between(8, 20, stretch.chance) * sign(stretch.chance)
      lift(making, stretch, (share) => height * share)
    },
  },
  beating: {
    days: [0.1, 0.4],
    apply({ level, perDay }, { chance, from, to }) {
      const period = Math.max(4, Math.round(between(0.01, 0.04, chance) * perDay))
      const height = between(4, 9, chance)
      for (let i = from; i < to; i++)
        level[i] = (level[i] ?? 0) + height * Math.sin((2 * Math.PI * (i - from)) / period)
    },
  },
} as const satisfies Record<string, Kind>
const allKinds = Object.entries<Kind>(kinds)
const noiseNames = Object.keys(noises) as (keyof typeof noises)[]

/**
 * One to three waves a day, flatter at weekends in half of the series; in a quarter
 * there is no rhythm at all.
 */
function drawRhythm(length: number, perDay: number, chance: Chance) {
  const height = chance.uniform() < 0.25 ? 0 : between(4, 25, chance)
  const waves = [1, 2, 3].map((times) => ({
    times,
    size: times === 1 ? 1 : between(0, 0.5, chance),
    phase: between(0, 2 * Math.PI, chance),
  }))
  const weekend = chance.uniform() < 0.5 ? 1 : between(0.3, 0.8, chance)
  const rhythm = Float64Array.from({ length }, (_, i) => {
    const isWeekend = Math.floor(i / perDay) % 7 >= 5
    const sum = waves.reduce(
      (total, { phase, size, times }) => total + size * Math.sin((2 * Math.PI * times * i) / perDay + phase),
      0,
    )
    return height * sum * (isWeekend ? weekend : 1)
  })
  return { height, rhythm }
}

/** Heavy noise is used unchanged; multiplied noise is skewed, as latencies are. */
function drawMaking(length: number, perDay: number, chance: Chance, seed: number): Making {
  const name = noiseNames[Math.floor(chance.uniform() * noiseNames.length)] ?? 'normal'
  const next = noises[name](seed)
  const { height, rhythm } = drawRhythm(length, perDay, chance)
  const base = 1.8 * height + between(10, 60, chance)
  const trend = chance.uniform() < 0.3 ? between(-6, 12, chance) : 0
  return {
    perDay,
    rhythm,
    height,
    noise: Float64Array.from({ length }, next),
    level: Float64Array.from({ length }, (_, i) => base + (trend * i) / length),
    factor: new Float64Array(length).fill(1),
  }
}

interface Planted extends Omit<LabelledIncident, 'isVisible'> {
  /** Also applies it, with the same size, to another set of parts. */
  readonly repeat: (making: Making) => void
}

function plant(making: Making, turn: number, chance: Chance): Planted[] {
  const { length } = making.level
  const count = Math.floor(chance.uniform() * (mostIncidents + 1))
  const visible = allKinds.filter(([, { ofRhythm }]) => ofRhythm !== true || making.height > 0)
  const room = (length * (1 - calmShare)) / Math.max(1, count)
  return Array.from({ length: count }, (_, i) => {
    const [kind, { apply, days, values }] = visible[(turn + 5 * i) % visible.length] ?? [
      'outage',
      kinds.outage as Kind,
    ]
    const [least, most] = values ?? (days ?? [0, 0]).map((each) => each * making.perDay)
    const lasts = Math.max(1, Math.round(between(least ?? 1, most ?? 1, chance)))
    const earliest = calmShare * length + i * room
    const from = Math.floor(earliest + chance.uniform() * Math.max(0, 0.8 * room - lasts))
    const to = Math.min(length, from + lasts)
    const drawn: number[] = []
    const uniform = () => {
      const next = chance.uniform()
      drawn.push(next)
      return next
    }
    apply(making, { from, to, chance: { ...chance, uniform } })
    const repeat = (other: Making) => {
      let next = 0
      apply(other, { from, to, chance: { ...chance, uniform: () => drawn[next++] ?? 0 } })
    }
    return { kind, from, to, repeat }
  })
}

/** This many series for each seed, all steps and kinds of incident in turn. */
export function variedSeries(seeds: readonly number[], perSeed = 26): LabelledSeries[] {
  return seeds.flatMap((seed) =>
    Array.from({ length: perSeed }, (_, ordinal) => {
      const own = 1_000_003 * seed + ordinal
      const chance = { uniform: seededUniform(own), normal: seededNormal(own + 500_000_000) }
      const { days, stepMinutes } = cadences[ordinal % cadences.length] ?? cadences[0]
      const perDay = 1440 / stepMinutes
      const making = drawMaking(days * perDay, perDay, chance, own)
      const calm = structuredClone(making)
      const incidents = plant(making, seed * 3 + ordinal, chance)
      const isCount = chance.uniform() < 0.3
      const unit = isCount ? between(0.3, 3, chance) : 1
      const valuesOf = ({ factor, level, noise, rhythm }: Making) =>
        level.map((each, i) => {
          const sum = each + (rhythm[i] ?? 0) + (noise[i] ?? 0)
          const value = Math.max(0, sum * (factor[i] ?? 1)) * unit
          return isCount ? Math.round(value) : value
        })
      const values = valuesOf(making)
      const planted = { clean: valuesOf(calm), values: values.slice(), perDay }
      const withoutOne = (incident: Planted) => {
        const others = structuredClone(calm)
        for (const each of incidents) if (each !== incident) each.repeat(others)
        return valuesOf(others)
      }
      for (let i = 0; i < values.length; i++) if (chance.uniform() < 0.002) values[i] = Number.NaN
      return {
        name: `every ${stepMinutes} min`,
        stepMinutes,
        values,
        incidents: incidents.map((each) => {
          const { from, kind, to } = each
          return { kind, from, to, isVisible: isVisible({ ...planted, without: withoutOne(each) }, from, to) }
        }),
        judgedFrom: Math.floor(0.25 * values.length),
      }
    }),
  )
}
