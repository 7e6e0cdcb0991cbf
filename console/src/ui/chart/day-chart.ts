// The data of a chart of days, in either form: series with a value for each day, erased time, and a selection
// of days.

import type { Span } from './scale.ts'

export interface DaySeries {
  readonly key: string
  readonly label: string
  /** Of the palette, from 1. */
  readonly colour: number
  /** One for each day. */
  readonly values: readonly number[]
}

/** Days that an erasure covers. */
export interface ErasedSpan extends Span {
  readonly label: string
  readonly requestId: string
}

export interface DayBarsProps {
  readonly title: string
  readonly days: readonly string[]
  readonly series: readonly DaySeries[]
  readonly erased: readonly ErasedSpan[]
  /** Three digits, for the axis; exact ones for the table. */
  readonly short: (value: number) => string
  readonly exact: (value: number) => string
  readonly selection: Span | null
  /** Absent where nothing can be selected. */
  readonly onSelect?: (span: Span | null) => void
}

/** The sum of all series for each day. Series by series, which takes a third of the time of day by day. */
export function totalsOf(series: readonly DaySeries[], days: readonly string[]): number[] {
  const totals = new Array<number>(days.length).fill(0)
  for (const { values } of series) {
    for (let i = 0; i < totals.length; i++) totals[i] = (totals[i] ?? 0) + (values[i] ?? 0)
  }
  return totals
}
