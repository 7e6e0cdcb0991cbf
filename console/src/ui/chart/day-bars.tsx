// A bar per UTC day, stacked by series, from which days are selected: by dragging, by two clicks, by keys,
// and by whatever fields stand beside it. Erased time is hatched and links to its request. The same numbers
// are a table; the address has which of both is shown.

import { Button } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { type KeyboardEvent, useId, useState } from 'react'
import { useAddress } from '../address.ts'
import { ErasureLink } from '../erasure-link.tsx'
import { shortDayText } from '../instants.ts'
import { BarPlot } from './bar-plot.tsx'
import { type DayBarsProps, type DaySeries, totalsOf } from './day-chart.ts'
import { DayTable } from './day-table.tsx'
import { type Span, spanOf } from './scale.ts'

export function DayBars(props: DayBarsProps) {
  const { days, exact, onSelect, selection, series, title } = props
  const { ref, width } = useElementSize()
  const [cursor, setCursor] = useState<number | null>(null)
  /** The series that the arrow keys have come to; null is all of them. */
  const [at, setAt] = useState<number | null>(null)
  const [{ view }, change] = useAddress()
  const isTable = view === 'table'
  const [id, hintId] = [useId(), useId()]
  const totals = totalsOf(series, days)
  const move = (event: KeyboardEvent) => {
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
  return (
    <figure className="chart" aria-labelledby={id}>
      <div className="chart-head">
        <figcaption id={id}>
          {title}. <span className="muted">{captionOf(days, totals, exact)}</span>
        </figcaption>
        <Legend series={series} hasErased={props.erased.length > 0} />
        <ViewButton isTable={isTable} onChange={(next) => change({ view: next ? 'table' : undefined })} />
      </div>
      {isTable ? (
        <DayTable {...props} totals={totals} />
      ) : (
        <div
          ref={ref}
          className="chart-plot"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys step through the days of the chart.
          tabIndex={0}
          role="application"
          aria-roledescription="bar chart"
          aria-label={title}
          aria-describedby={hintId}
          onKeyDown={move}
          onBlur={() => {
            setCursor(null)
            setAt(null)
          }}
        >
          <BarPlot {...props} width={width} totals={totals} cursor={cursor} onCursor={setCursor} />
        </div>
      )}
      <ErasedLinks {...props} />
      <p id={hintId} className="hidden-text">
        Left and right step through the days, up and down through the series; with Shift, left and right
        select days. Escape removes the selection.
      </p>
      <p className="hidden-text" aria-live="polite">
        {cursor === null ? '' : readingOf(props, cursor, totals, at)}
      </p>
    </figure>
  )
}

function ViewButton({ isTable, onChange }: { isTable: boolean; onChange: (isTable: boolean) => void }) {
  return (
    <Button variant="subtle" size="compact-sm" onClick={() => onChange(!isTable)}>
      {isTable ? 'As chart' : 'As table'}
    </Button>
  )
}

/** Erased time in words, each linked to its request; more than these are in the table. */
const linksShown = 4

function ErasedLinks({ days, erased }: DayBarsProps) {
  if (erased.length === 0) return null
  const more = erased.length - linksShown
  return (
    <p className="erased-links">
      {erased.slice(0, linksShown).map(({ first, label, last, requestId }) => (
        <span key={requestId}>
          {shortDayText(days[first] ?? '')}
          {last > first && ` to ${shortDayText(days[last] ?? '')}`}{' '}
          <ErasureLink requestId={requestId}>{label}</ErasureLink>
        </span>
      ))}
      {more > 0 && <span className="muted">and {more} more in the table</span>}
    </p>
  )
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

function captionOf(days: readonly string[], totals: readonly number[], exact: (n: number) => string): string {
  const [last, lastDay] = [totals.at(-1), days.at(-1)]
  if (last === undefined || lastDay === undefined) return 'No day in this range.'
  const min = totals.reduce((least, total) => Math.min(least, total), Number.POSITIVE_INFINITY)
  const max = totals.reduce((most, total) => Math.max(most, total), 0)
  return `${days.length} UTC days: least ${exact(min)}, most ${exact(max)}, last ${exact(last)}`
}

/** What a screen reader says of a day, or of one series on it. */
function readingOf(
  { days, erased, exact, series }: DayBarsProps,
  at: number,
  totals: readonly number[],
  one: number | null,
): string {
  const day = shortDayText(days[at] ?? '')
  const shown = series[one ?? -1]
  if (shown !== undefined) return `${shown.label}, ${day}: ${exact(shown.values[at] ?? 0)}`
  const parts = series.map(({ label, values }) => `${label} ${exact(values[at] ?? 0)}`)
  const isErased = erased.some(({ first, last }) => first <= at && at <= last)
  return `${day}: ${exact(totals[at] ?? 0)}; ${parts.join(', ')}${isErased ? '; erased time' : ''}`
}

function Legend({
  hasErased,
  series,
}: {
  readonly series: readonly DaySeries[]
  readonly hasErased: boolean
}) {
  return (
    <ul className="legend">
      {series.map(({ colour, key, label }) => (
        <li key={key}>
          <span className="swatch" data-colour={colour} aria-hidden /> {label}
        </li>
      ))}
      {hasErased && (
        <li>
          <span className="swatch hatch" aria-hidden /> erased
        </li>
      )}
    </ul>
  )
}
