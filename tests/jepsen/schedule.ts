// The acts against the service and their times, drawn from the seed before the run begins, so that the same
// seed gives the same schedule. Times are the earliest: an act begins when the previous one has ended.

import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import type { ControlPlane } from './history.ts'

export const groups = ['kills', 'pauses', 'backups', 'restores', 'clocks', 'years', 'disk'] as const
export type Group = (typeof groups)[number]

export type Act = { readonly atS: number } & (
  | { readonly act: 'kill'; readonly downMs: number; readonly again: boolean }
  | { readonly act: 'stop' }
  | { readonly act: 'pause'; readonly ms: number }
  | { readonly act: 'backup' }
  /** `back` counts from the newest; `kill` kills the service first. */
  | {
      readonly act: 'restore'
      readonly back: number
      readonly controlPlane: ControlPlane
      readonly kill: boolean
    }
  | { readonly act: 'clock'; readonly seconds: number }
  /** Far ahead, and back after a while. */
  | { readonly act: 'year'; readonly seconds: number; readonly ms: number }
  | { readonly act: 'disk'; readonly ms: number; readonly kill: boolean }
)

export type Random = () => number

/** An independent random stream for each name. */
export function randomOf(seed: number, name: string): Random {
  let mixed = seed | 0
  for (const letter of name) mixed = (Math.imul(mixed, 31) + letter.charCodeAt(0)) | 0
  return seededUniform(mixed)
}

export function pick<T>(random: Random, from: readonly T[]): T {
  const picked = from[Math.floor(random() * from.length)]
  if (picked === undefined) throw new Error('Nothing to pick from.')
  return picked
}

/** Relative frequency of each group. */
const weights: Readonly<Record<Group, number>> = {
  kills: 35,
  pauses: 15,
  backups: 18,
  restores: 9,
  clocks: 15,
  years: 1,
  disk: 5,
}

const meanPauseS = 9

/** Draws acts of the chosen groups by their weights; a rare one may not occur at all. */
export function drawSchedule(seed: number, minutes: number, chosen: readonly Group[]): Act[] {
  const random = randomOf(seed, 'schedule')
  const acts: Act[] = []
  const total = chosen.reduce((sum, group) => sum + weights[group], 0)
  let atS = 5
  while (total > 0 && atS < minutes * 60) {
    let left = random() * total
    const group = chosen.find((one) => {
      left -= weights[one]
      return left < 0
    })
    if (group !== undefined) acts.push({ atS: Math.round(atS * 10) / 10, ...drawAct(random, group) })
    atS += meanPauseS * (0.3 + 1.4 * random())
  }
  return acts
}

type Drawn = Act extends infer A ? (A extends Act ? Omit<A, 'atS'> : never) : never

function drawAct(random: Random, group: Group): Drawn {
  if (group === 'kills') {
    if (random() < 0.15) return { act: 'stop' }
    return { act: 'kill', downMs: Math.floor(random() * 1500), again: random() < 0.2 }
  }
  if (group === 'pauses') return { act: 'pause', ms: 500 + Math.floor(random() * 11_500) }
  if (group === 'backups') return { act: 'backup' }
  if (group === 'restores') {
    const controlPlane = random() < 0.5 ? 'keep' : 'from-backup'
    return { act: 'restore', back: Math.floor(random() * 3), controlPlane, kill: random() < 0.5 }
  }
  if (group === 'clocks') {
    const seconds = pick(random, [-2, -5, -30, -600, 60, 3600, 6 * 3600, 20 * 3600, 86_400, 3 * 86_400])
    return { act: 'clock', seconds }
  }
  if (group === 'years') return { act: 'year', seconds: 400 * 86_400, ms: 3000 + Math.floor(random() * 5000) }
  return { act: 'disk', ms: 4000 + Math.floor(random() * 8000), kill: random() < 0.4 }
}
