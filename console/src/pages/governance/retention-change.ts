// A change of the retention as a person types it: days by signal, empty for no limit. A shorter rule erases
// rows, which are counted before.

import type { Retention } from '../../../../contract/deletion/governance.ts'
import { nowMs } from '../../clock.ts'
import { dayAfter, dayStart, utcDayOf } from '../../ui/instants.ts'

export const retained = ['metrics', 'logs', 'traces'] as const
export type Retained = (typeof retained)[number]

/** Texts of the three fields. */
type TypedDays = Readonly<Record<Retained, string>>

export function typedDays(retention: Retention): TypedDays {
  const textOf = (days: number | null) => (days === null ? '' : String(days))
  return {
    metrics: textOf(retention.metrics_days),
    logs: textOf(retention.logs_days),
    traces: textOf(retention.traces_days),
  }
}

const daysMax = 3650

/** Null is no limit; undefined where the text is no number of days. */
export function daysIn(text: string): number | null | undefined {
  if (text.trim() === '') return null
  const days = Number(text)
  return Number.isInteger(days) && days >= 1 && days <= daysMax ? days : undefined
}

export interface Change {
  readonly signal: Retained
  readonly days: number | null
  readonly isShorter: boolean
}

/** What differs from the rule; a field that can't be read is left out. */
export function changesOf(typed: TypedDays, retention: Retention): Change[] {
  return retained.flatMap((signal) => {
    const days = daysIn(typed[signal])
    const before = retention[`${signal}_days`]
    if (days === undefined || days === before) return []
    return [{ signal, days, isShorter: days !== null && (before === null || days < before) }]
  })
}

/** The end of the range that a rule of this many days erases now. */
export function erasesBefore(days: number): string {
  return dayStart(dayAfter(utcDayOf(new Date(nowMs()).toISOString()), -days))
}
