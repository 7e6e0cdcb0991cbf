// The drawing of stacked daily bars: axis, bars, erased time, selection and the values under the pointer. It
// has its height before its width is known, so that nothing moves. Where several days share a pixel, the
// greatest of them is drawn; every day can still be reached by pointer, by keys and in the table.

import { memo, type PointerEvent, useId, useState } from 'react'
import { shortDayText } from '../instants.ts'
import { barsPath } from './bars-path.ts'
import type { DayBarsProps, DaySeries, ErasedSpan } from './day-chart.ts'
import { axisSteps, indexAt, labelEvery, peaksIn, spanOf } from './scale.ts'

const height = 220
const [left, right, top, bottom] = [64, 8, 10, 24]

/** Pixels from one label of a day to the next, and how many of them are between the texts at least. */
const [dayLabelWidth, yearLabelWidth, labelGap] = [64, 90, 20]

interface BarPlotProps extends DayBarsProps {
  readonly width: number
  readonly totals: readonly number[]
  readonly cursor: number | null
  readonly onCursor: (index: number | null) => void
}

export function BarPlot(props: BarPlotProps) {
  const { cursor, days, onCursor, onSelect, selection, totals, width } = props
  const [draggedFrom, setDraggedFrom] = useState<number | null>(null)
  const plotWidth = Math.max(1, width - left - right)
  const step = plotWidth / Math.max(1, days.length)
  const steps = axisSteps(totals.reduce((max, total) => Math.max(max, total), 0))
  const highest = steps.at(-1) ?? 1
  const at = (event: PointerEvent<SVGSVGElement>) =>
    indexAt(event.clientX - event.currentTarget.getBoundingClientRect().left - left, plotWidth, days.length)
  if (width === 0 || days.length === 0) return <div style={{ height }} />
  return (
    <>
      {/* The figure around it has the name, the keys and the table. */}
      <svg
        width={width}
        height={height}
        aria-hidden
        className={onSelect === undefined ? 'bars' : 'bars bars-selectable'}
        onPointerDown={(event) => {
          if (onSelect === undefined || event.button !== 0) return
          event.currentTarget.setPointerCapture(event.pointerId)
          // With Shift a click ends the selection that one without it began.
          const begin = event.shiftKey ? (selection?.first ?? at(event)) : at(event)
          setDraggedFrom(begin)
          onSelect(spanOf(begin, at(event)))
        }}
        onPointerMove={(event) => {
          onCursor(at(event))
          if (draggedFrom !== null) onSelect?.(spanOf(draggedFrom, at(event)))
        }}
        onPointerUp={() => setDraggedFrom(null)}
        onPointerLeave={() => onCursor(null)}
      >
        <Axis {...props} steps={steps} step={step} />
        {selection !== null && (
          <rect
            className="selection"
            x={left + selection.first * step}
            width={Math.max(1, (selection.last - selection.first + 1) * step)}
            y={top}
            height={height - top - bottom}
          />
        )}
        <Bars series={props.series} totals={totals} plotWidth={plotWidth} highest={highest} />
        <Erased erased={props.erased} step={step} />
        {cursor !== null && (
          <rect
            className="cursor"
            x={left + cursor * step}
            y={top}
            width={step}
            height={height - top - bottom}
          />
        )}
      </svg>
      {cursor !== null && <Values {...props} at={cursor} x={left + (cursor + 0.5) * step} />}
    </>
  )
}

/** Where a value is, on an axis that ends at `highest`. */
const yOf = (value: number, highest: number) => top + (height - top - bottom) * (1 - value / highest)

interface AxisProps extends BarPlotProps {
  readonly step: number
  readonly steps: readonly number[]
}

function Axis({ days, short, step, steps, width }: AxisProps) {
  // Days of more than a year ago have their year, which takes more room.
  const hasYears = days.length > 366
  const labelWidth = hasYears ? yearLabelWidth : dayLabelWidth
  const every = labelEvery(days.length, width - left - right, labelWidth)
  const labelled = Array.from({ length: Math.ceil(days.length / every) }, (_, label) => label * every)
  const y = (value: number) => yOf(value, steps.at(-1) ?? 1)
  return (
    <>
      {steps.map((value) => (
        <g key={value}>
          <line className="grid" x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
          <text className="tick" x={left - 8} y={y(value)} dy="0.32em" textAnchor="end">
            {short(value)}
          </text>
        </g>
      ))}
      {labelled.map((i) => {
        const x = left + (i + 0.5) * step
        // The last label ends where the chart does.
        const isCut = x + (labelWidth - labelGap) / 2 > width
        return (
          <text
            key={i}
            className="tick"
            x={isCut ? width : x}
            y={height - 6}
            textAnchor={isCut ? 'end' : 'middle'}
          >
            {hasYears ? days[i] : shortDayText(days[i] ?? '')}
          </text>
        )
      })}
    </>
  )
}

interface BarsProps {
  readonly series: readonly DaySeries[]
  readonly totals: readonly number[]
  readonly plotWidth: number
  readonly highest: number
}

/**
 * One path for each series, with one bar for each pixel at most: an element for each bar would take seconds
 * where there are many days. It is not drawn again when only the cursor has moved.
 */
const Bars = memo(({ highest, plotWidth, series, totals }: BarsProps) => {
  const peaks = peaksIn(totals, Math.floor(plotWidth))
  const step = plotWidth / peaks.length
  const below = peaks.map(() => 0)
  return series.map(({ colour, key, values }) => {
    const tops: number[] = []
    const bottoms: number[] = []
    for (const [i, day] of peaks.entries()) {
      const from = below[i] ?? 0
      const to = from + (values[day] ?? 0)
      below[i] = to
      const y = yOf(to, highest)
      tops.push(y)
      bottoms.push(to === from ? y : Math.max(y + 0.5, yOf(from, highest)))
    }
    return <path key={key} data-colour={colour} d={barsPath(tops, bottoms, left, step)} />
  })
})

/** Hatched days; a bar may stand in them, where telemetry came later or only a part was erased. */
function Erased({ erased, step }: { readonly erased: readonly ErasedSpan[]; readonly step: number }) {
  const id = useId()
  return (
    <>
      <defs>
        <pattern id={id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <line className="hatch-edge" x1="3" y1="0" x2="3" y2="6" />
          <line className="hatch-line" x1="3" y1="0" x2="3" y2="6" />
        </pattern>
      </defs>
      {erased.map(({ first, last, requestId }) => (
        <rect
          key={requestId}
          fill={`url(#${id})`}
          x={left + first * step}
          width={Math.max(1, (last - first + 1) * step)}
          y={top}
          height={height - top - bottom}
        />
      ))}
    </>
  )
}

function Values({
  at,
  days,
  erased,
  exact,
  series,
  totals,
  width,
  x,
}: BarPlotProps & { at: number; x: number }) {
  const isLeft = x > width / 2
  const covering = erased.filter(({ first, last }) => first <= at && at <= last)
  return (
    <div className="chart-values" aria-hidden style={isLeft ? { right: width - x + 12 } : { left: x + 12 }}>
      <strong>{days[at]} UTC</strong>
      {series.map(({ colour, key, label, values }) => (
        <div key={key} className="chart-value">
          <span className="swatch" data-colour={colour} /> {label}
          <span className="number">{exact(values[at] ?? 0)}</span>
        </div>
      ))}
      {series.length > 1 && (
        <div className="chart-value">
          total<span className="number">{exact(totals[at] ?? 0)}</span>
        </div>
      )}
      {covering.map(({ label, requestId }) => (
        <div key={requestId} className="muted">
          {label}
        </div>
      ))}
    </div>
  )
}
