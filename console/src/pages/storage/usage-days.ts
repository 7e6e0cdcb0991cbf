// Stored amounts by UTC day, from the responses of the service: days without telemetry are zero, and the
// range is the part of the chosen one that may have telemetry.

import type { z } from 'zod'
import type { ServiceStorage, StorageUsage } from '../../../../contract/organisation/usage.ts'
import type { DaySeries } from '../../ui/chart/day-chart.ts'
import { msPerDay, utcDayOf } from '../../ui/instants.ts'

export type Usage = z.output<typeof StorageUsage>
export type ServiceUsage = z.output<typeof ServiceStorage>
export type Unit = 'bytes' | 'rows'

const isoOf = (ms: number) => new Date(ms).toISOString()

/**
 * Returns the first and the last UTC day of the range, from a week before the oldest row on, so that a reader
 * sees that nothing is older.
 */
export function usageBounds(usage: Usage, startMs: number, endMs: number): [first: string, last: string] {
  const oldestMs = usage.oldest === null ? startMs : Date.parse(usage.oldest)
  const fromMs = Math.max(startMs, Math.min(oldestMs - 7 * msPerDay, endMs - 14 * msPerDay))
  return [utcDayOf(isoOf(fromMs)), utcDayOf(isoOf(endMs))]
}

const colours = { metrics: 1, logs: 2, traces: 3 } as const

interface StoredDay {
  readonly day: string
  readonly bytes: number
  readonly rows: number
}

/**
 * Adds what is stored to its day. The lists are read beside each other, because a map of the days of decades
 * takes longer than the drawing. Most days follow the one before, and need one comparison. An earlier day, as
 * where the next signal begins, starts again.
 */
function valuesOf(stored: readonly StoredDay[], days: readonly string[], unit: Unit): number[] {
  const values = new Array<number>(days.length).fill(0)
  let at = 0
  for (const one of stored) {
    if (days[at] !== one.day) {
      if (one.day <= (days[at - 1] ?? '')) at = 0
      while (at < days.length && (days[at] ?? '') < one.day) at += 1
      if (days[at] !== one.day) continue
    }
    values[at] = (values[at] ?? 0) + one[unit]
    at += 1
  }
  return values
}

export function seriesBySignal({ signals }: Usage, days: readonly string[], unit: Unit): DaySeries[] {
  return signals.map(({ days: stored, signal }) => ({
    key: signal,
    label: signal,
    colour: colours[signal],
    values: valuesOf(stored, days, unit),
  }))
}

/** More series than this can't be told apart; the others are one series. */
const servicesShown = 5
const colourOfOthers = 6

/** The services with the most bytes, and all others as one. A service keeps its colour where possible. */
export function seriesByService(
  usage: ServiceUsage,
  bySignal: readonly DaySeries[],
  days: readonly string[],
  unit: Unit,
): DaySeries[] {
  const taken = new Set<number>()
  const shown = usage.services.slice(0, servicesShown).map(({ service, signals }) => ({
    key: service,
    label: service === '' ? '(no service)' : service,
    colour: freeColour(service, taken),
    values: valuesOf(
      signals.flatMap(({ days: stored }) => stored),
      days,
      unit,
    ),
  }))
  if (usage.services.length + usage.others.services <= servicesShown) return shown
  const sumOf = (series: readonly DaySeries[], i: number) =>
    series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)
  const values = days.map((_, i) => Math.max(0, sumOf(bySignal, i) - sumOf(shown, i)))
  return [...shown, { key: ' others', label: 'others', colour: colourOfOthers, values }]
}

/** The colour of a name by its hash, or the next one that no other service has. */
function freeColour(name: string, taken: Set<number>): number {
  let hash = 0
  for (const character of name) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 65_521
  let colour = (hash % servicesShown) + 1
  while (taken.has(colour)) colour = (colour % servicesShown) + 1
  taken.add(colour)
  return colour
}

/** `+4 %`: the bytes of the last seven whole days beside the seven before; `new` where those have none. */
export function growthText({ last_7_days, previous_7_days }: Growing): string {
  const [last, previous] = [last_7_days.bytes, previous_7_days.bytes]
  if (previous === 0) return last === 0 ? '–' : 'new'
  const percent = Math.round(((last - previous) / previous) * 100)
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent)} %`
}

type Growing = Pick<Usage, 'last_7_days' | 'previous_7_days'>
