// A bar per UTC day, stacked by series, from which days are selected: by dragging, by two clicks, by keys,
// and by fields beside it. Erased time is hatched and links to its request. The same numbers are available as
// a table; the address says which of both is shown. Before its numbers are known it has the same height.

import { Button, Skeleton } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useId, useMemo } from 'react'
import { useAddress } from '../address.ts'
import { ErasureLink } from '../erasure-link.tsx'
import { shortDayText } from '../instants.ts'
import { useIsSlow } from '../states.tsx'
import { BarPlot } from './bar-plot.tsx'
import { type DayBarsProps, type DaySeries, totalsOf } from './day-chart.ts'
import { useDayKeys } from './day-keys.ts'
import { DayTable } from './day-table.tsx'
import { useWidth } from './use-width.ts'

export function DayBars(props: DayBarsProps) {
  const { days, exact, series, title } = props
  const { ref, width } = useWidth()
  const { at, cursor, leave, press, setCursor } = useDayKeys(props)
  const [{ view }, change] = useAddress()
  const isTable = view === 'table'
  const [id, hintId] = [useId(), useId()]
  const totals = useMemo(() => totalsOf(series, days), [series, days])
  const caption = useMemo(() => captionOf(days, totals, exact), [days, totals, exact])
  return (
    <figure className="chart" aria-labelledby={id}>
      <div className="chart-head">
        <figcaption id={id}>
          {title}. <span className="muted">{caption}</span>
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
          onKeyDown={press}
          onBlur={leave}
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

interface ChartPlaceholderProps {
  readonly label: string
  /** Why there is no chart; absent while its numbers are being read. */
  readonly failure?: ReactNode
}

/** A placeholder with the size of the chart, so that nothing below it moves when it is drawn, or can't be. */
export function ChartPlaceholder({ failure, label }: ChartPlaceholderProps) {
  const isSlow = useIsSlow()
  if (failure !== undefined) {
    return (
      <div className="chart">
        <div className="chart-head" />
        <div className="chart-plot">{failure}</div>
        <ErasedLine />
      </div>
    )
  }
  return (
    <div className="chart" role="status" aria-label={label}>
      <div className="chart-head" />
      <div className="chart-plot">{isSlow && <Skeleton height="100%" radius="sm" />}</div>
      <ErasedLine />
    </div>
  )
}

/** It also has its height without a text. */
function ErasedLine({ children }: { readonly children?: ReactNode }) {
  return <p className="erased-links">{children}</p>
}

/** Where the strip of erased time has one line, and where it has two. */
const narrow = '(max-width: 767px)'

/** Erased time in words, each linked to its request; more than these are in the table. */
function ErasedLinks({ days, erased }: DayBarsProps) {
  const isNarrow = useMediaQuery(narrow, undefined, { getInitialValueInEffect: false })
  const shown = isNarrow ? 1 : 2
  const more = erased.length - shown
  return (
    <ErasedLine>
      {erased.slice(0, shown).map(({ first, label, last, requestId }) => (
        <span key={requestId}>
          {shortDayText(days[first] ?? '')}
          {last > first && ` to ${shortDayText(days[last] ?? '')}`}{' '}
          <ErasureLink requestId={requestId}>{label}</ErasureLink>
        </span>
      ))}
      {more > 0 && <span className="muted">and {more} more in the table</span>}
    </ErasedLine>
  )
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
