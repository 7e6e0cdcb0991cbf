// Seeded series without incidents, of the kinds for which simple detectors fail, and the same with planted
// incidents. Deviations of planted incidents are in robust standard deviations of the series' own noise, so
// that they are comparable between families.

import { noises, seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { poisson } from './judging.ts'

const perDay = 288
const perWeek = 2016

export interface Family {
  readonly name: string
  /** One value per five minutes; NaN is missing. */
  readonly make: (length: number, seed: number) => Float64Array
  /** Buckets at which the level changes for good. */
  readonly shiftsAt: readonly number[]
  /** One robust standard deviation of the values without the rhythm. */
  readonly sigma: number
  readonly isCount?: boolean
}

const daily = (i: number) => Math.sin((2 * Math.PI * i) / perDay)
const flat = () => 1000
const rhythm = (i: number) => 1000 + 20 * daily(i)
/** Days and weekends, and ten percent more every week. */
const traffic = (i: number) =>
  200 * (1 + 0.5 * daily(i)) * (i % perWeek >= 5 * perDay ? 0.7 : 1) * (1 + (0.1 * i) / perWeek)
const shiftsAt = [1.5, 2.5, 3.5, 4.5].map((week) => week * perWeek)
const stairs = (i: number) => 1000 + 10 * (shiftsAt.filter((shift) => i >= shift).length % 2)

const noisy =
  (level: (i: number) => number, noise: keyof typeof noises) => (length: number, seed: number) => {
    const next = noises[noise](seed)
    return Float64Array.from({ length }, (_, i) => level(i) + next())
  }

const counted = (rate: (i: number) => number) => (length: number, seed: number) => {
  const uniform = seededUniform(seed)
  return Float64Array.from({ length }, (_, i) => poisson(rate(i), uniform))
}

/** One value in seven is missing, and one morning in three. */
function withGaps(length: number, seed: number): Float64Array {
  const values = noisy(rhythm, 'normal')(length, seed)
  const uniform = seededUniform(seed + 1)
  return values.map((value, i) => {
    const isMorning = i % (3 * perDay) >= 96 && i % (3 * perDay) < 144
    return uniform() < 1 / 7 || isMorning ? Number.NaN : value
  })
}

/** Latencies: skewed, with a long tail upwards. */
function skewed(length: number, seed: number): Float64Array {
  const normal = seededNormal(seed)
  return Float64Array.from({ length }, () => 50 * Math.exp(0.8 * normal()))
}

/** Hours of much and of little noise: the spread itself changes slowly. */
function restless(length: number, seed: number): Float64Array {
  const normal = seededNormal(seed)
  let mood = 0
  return Float64Array.from({ length }, () => {
    mood = 0.98 * mood + 0.1 * normal()
    return 1000 + Math.exp(mood) * normal()
  })
}

const family = (name: string, make: Family['make'], sigma: number, more: Partial<Family> = {}): Family => ({
  name,
  make,
  sigma,
  shiftsAt: [],
  ...more,
})

export const families: readonly Family[] = [
  family('flat, normal', noisy(flat, 'normal'), 1),
  family('flat, laplace', noisy(flat, 'laplace'), 1.03),
  family('flat, heavy', noisy(flat, 'heavy'), 1.13),
  family('flat, sluggish', noisy(flat, 'sluggish'), 2.29),
  family('daily, normal', noisy(rhythm, 'normal'), 1),
  family('daily, heavy', noisy(rhythm, 'heavy'), 1.13),
  family('traffic with drift', counted(traffic), 14, { isCount: true }),
  family(
    'low counts',
    counted(() => 0.4),
    0.63,
    { isCount: true },
  ),
  family('gaps', withGaps, 1),
  family('level shifts', noisy(stairs, 'normal'), 1, { shiftsAt }),
  family('skewed', skewed, 37),
  family('restless', restless, 1),
]

const everyHour = (buckets: number) => (i: number) => 1000 + (i % 12 < buckets ? 20 : 0)

/** Measured only where they are named: a rhythm that no method without a clock can learn. */
export const namedFamilies: readonly Family[] = [1, 2, 3, 4, 6].map((buckets) =>
  family(`${5 * buckets} minutes of every hour`, noisy(everyHour(buckets), 'normal'), 1),
)

/** `to` is exclusive. */
export interface Planted {
  readonly from: number
  readonly to: number
}

interface Planting {
  readonly from: number
  /** Buckets from one beginning to the next. */
  readonly every: number
  /**
   * With which of the sizes, sides and lengths to begin, so that several series with few incidents have all
   * of them.
   */
  readonly firstTurn: number
}

/** Half an hour or three hours, in buckets. */
const lasting = [6, 36]

/** Six, twelve and twenty-four deviations up and down in turn, away from real changes of level. */
export function plantedIn(values: Float64Array, of: Family, planting: Planting) {
  const changed = values.slice()
  const incidents: Planted[] = []
  for (let from = planting.from + perDay; from + perDay < values.length; from += planting.every) {
    const turn = incidents.length + planting.firstTurn
    const size = [6, 12, 24][turn % 3] ?? 6
    const to = from + (lasting[Math.floor(turn / 6) % lasting.length] ?? 1)
    const isUp = turn % 2 === 0 || of.isCount === true
    if (of.shiftsAt.some((shift) => from >= shift - perDay && from < shift + perDay)) continue
    for (let i = from; i < to; i++) {
      const moved = (changed[i] ?? 0) + (isUp ? size : -size) * of.sigma
      changed[i] = of.isCount === true ? Math.round(moved) : moved
    }
    incidents.push({ from, to })
  }
  return { values: changed, incidents }
}
