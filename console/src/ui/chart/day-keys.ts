// The keys of a chart of days: left and right step through the days, up and down through the series. With
// Shift a step selects the days between; Enter selects one. Each day is one step, also where many days share
// a pixel.

import { type KeyboardEvent, useState } from 'react'
import type { DayBarsProps } from './day-chart.ts'
import { type Span, spanOf } from './scale.ts'

interface DayKeys {
  /** The day at which the keys or the pointer are; null where they are at none. */
  readonly cursor: number | null
  /** The series to which the arrow keys have moved; null is all of them. */
  readonly at: number | null
  readonly setCursor: (cursor: number | null) => void
  readonly press: (event: KeyboardEvent) => void
  /** Forgets both. */
  readonly leave: () => void
}

export function useDayKeys({ days, onSelect, selection, series }: DayBarsProps): DayKeys {
  const [cursor, setCursor] = useState<number | null>(null)
  const [at, setAt] = useState<number | null>(null)
  const press = (event: KeyboardEvent) => {
    const row = seriesAfter(event, at, series.length)
    if (row !== undefined) {
      event.preventDefault()
      if (cursor === null) setCursor(days.length - 1)
      return setAt(row)
    }
    const next = cursorAfter(event, cursor, days.length)
    if (next === undefined) return
    event.preventDefault()
    setCursor(next)
    if (onSelect === undefined || next === null) return onSelect?.(null)
    if (event.shiftKey) onSelect(extended(selection, cursor ?? next, next))
    else if (event.key === 'Enter' || event.key === ' ') onSelect({ first: next, last: next })
  }
  const leave = () => {
    setCursor(null)
    setAt(null)
  }
  return { cursor, at, setCursor, press, leave }
}

/** Null removes the cursor; undefined where the key has no meaning here. */
function cursorAfter(
  { key }: KeyboardEvent,
  cursor: number | null,
  count: number,
): number | null | undefined {
  const from = cursor ?? count
  if (key === 'ArrowLeft') return Math.max(0, from - 1)
  if (key === 'ArrowRight') return Math.min(count - 1, cursor === null ? 0 : from + 1)
  if (key === 'Home') return 0
  if (key === 'End') return count - 1
  if (key === 'Escape') return null
  return key === 'Enter' || key === ' ' ? Math.min(count - 1, from) : undefined
}

/** Undefined where the key does not move through the series; null is all of them. */
function seriesAfter({ key }: KeyboardEvent, at: number | null, count: number): number | null | undefined {
  if (key === 'ArrowDown') return Math.min(count - 1, at === null ? 0 : at + 1)
  if (key === 'ArrowUp') return at === null || at === 0 ? null : at - 1
  return undefined
}

/** The selection with its moving end at `next`. */
function extended(selection: Span | null, before: number, next: number): Span {
  if (selection === null) return spanOf(before, next)
  return before === selection.first && before !== selection.last
    ? spanOf(selection.last, next)
    : spanOf(selection.first, next)
}
