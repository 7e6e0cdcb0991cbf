// What is stored by UTC day, from the response of the service: days without telemetry are zero, and the range
// is the part of the chosen one in which there may be some.

import type { z } from 'zod'
import type { StorageUsage } from '../../../../contract/usage.ts'
import type { DaySeries } from '../../ui/chart/day-chart.ts'
import { daysBetween, msPerDay, utcDayOf } from '../../ui/instants.ts'

export type Usage = z.output<typeof StorageUsage>
export type Unit = 'bytes' | 'rows'

const isoOf = (ms: number) => new Date(ms).toISOString()

/** UTC days of the range, from the oldest stored or erased one on. */
export function usageDays(usage: Usage, startMs: number, endMs: number): string[] {
  const oldestMs = usage.oldest === null ? startMs : Date.parse(usage.oldest)
  // A week before the oldest row shows that nothing is there.
  const fromMs = Math.max(startMs, Math.min(oldestMs - 7 * msPerDay, endMs - 14 * msPerDay))
  return daysBetween(utcDayOf(isoOf(fromMs)), utcDayOf(isoOf(endMs)))
}

const colours = { metrics: 1, logs: 2, traces: 3 } as const

export function seriesBySignal({ signals }: Usage, days: readonly string[], unit: Unit): DaySeries[] {
  return signals.map(({ days: stored, signal }) => {
    const byDay = new Map(stored.map((day) => [day.day, day[unit]]))
    return {
      key: signal,
      label: signal,
      colour: colours[signal],
      values: days.map((day) => byDay.get(day) ?? 0),
    }
  })
}

/** Bytes of an average day of the last seven complete ones; null where there is none. */
export function growthPerDay({ signals }: Usage, today: string): number | null {
  const byDay = new Map<string, number>()
  for (const { day, bytes } of signals.flatMap(({ days }) => days)) {
    if (day < today) byDay.set(day, (byDay.get(day) ?? 0) + bytes)
  }
  const last = [...byDay].sort(([one], [other]) => (one < other ? 1 : -1)).slice(0, 7)
  if (last.length === 0) return null
  return last.reduce((sum, [, bytes]) => sum + bytes, 0) / last.length
}
