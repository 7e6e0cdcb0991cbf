// The step that selects a time range or everything, and the signals. The chart selects whole UTC days, and
// the fields beside it any instant; both show the same selection.

import { Checkbox, Radio } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { erasedQuery, storageQuery } from '../../api/storage.ts'
import { nowMs } from '../../clock.ts'
import { useAddress } from '../../ui/address.ts'
import { BoundField } from '../../ui/bound-field.tsx'
import { ChartPlaceholder, DayBars } from '../../ui/chart/day-bars.tsx'
import { erasedSpans } from '../../ui/chart/erased-spans.ts'
import type { Span } from '../../ui/chart/scale.ts'
import { dayAfter, dayStart, daysBetween, msPerDay, utcDayOf } from '../../ui/instants.ts'
import { Failure } from '../../ui/states.tsx'
import { bytesText, durationText } from '../../ui/units.ts'
import { seriesBySignal, usageBounds } from '../storage/usage-days.ts'
import { type Selection, signalNames } from './selection.ts'

interface WhatStepProps {
  readonly selection: Selection
  readonly problem: string | null
}

export function WhatStep({ problem, selection }: WhatStepProps) {
  const [, change] = useAddress()
  const { scope, signals } = selection
  const toggle = (signal: string) => {
    const next = signalNames.filter((one) => signals.includes(one) !== (one === signal))
    if (next.length > 0) change({ signals: next.length === signalNames.length ? undefined : next.join(',') })
  }
  return (
    <section aria-labelledby="what">
      <h2 id="what">1 What</h2>
      <div className="row">
        <Radio.Group
          aria-label="Time"
          value={scope}
          onChange={(value) => change({ scope: value === 'all' ? 'all' : undefined })}
        >
          <div className="row">
            <Radio value="range" label="a time range" />
            <Radio value="all" label="everything" />
          </div>
        </Radio.Group>
        <Checkbox.Group aria-label="Signals" value={[...signals]}>
          <div className="row">
            {signalNames.map((signal) => (
              <Checkbox key={signal} value={signal} label={signal} onChange={() => toggle(signal)} />
            ))}
          </div>
        </Checkbox.Group>
      </div>
      {scope === 'range' && <RangeFields selection={selection} problem={problem} />}
    </section>
  )
}

function RangeFields({ problem, selection }: WhatStepProps) {
  const [, change] = useAddress()
  const { end, start } = selection
  const length =
    start !== null && end !== null && problem === null
      ? `${durationText(Date.parse(end) - Date.parse(start))}, the end excluded`
      : start === null && end !== null
        ? 'everything before the end'
        : ''
  return (
    <>
      <RangeChart selection={selection} />
      <div className="fields">
        <BoundField
          label="From"
          hint="empty: from the beginning"
          value={start}
          onChange={(from) => change({ from: from ?? undefined })}
        />
        <BoundField
          label="To"
          hint="excluded"
          value={end}
          error={start !== null && end !== null ? problem : null}
          onChange={(to) => change({ to: to ?? undefined })}
        />
        <p className="muted beside-fields" aria-live="polite">
          {length}
        </p>
      </div>
    </>
  )
}

/** Days of the chart; older bounds are typed. */
const shownDays = 120

function RangeChart({ selection }: { readonly selection: Selection }) {
  const [, change] = useAddress()
  const storage = useQuery(storageQuery)
  const erased = useQuery(erasedQuery)
  if (storage.data === undefined || erased.isPending) {
    const { error } = storage
    return (
      <ChartPlaceholder
        label="Counting what is stored"
        {...(error !== null && {
          failure: <Failure error={error} what="The chart could not be loaded; type the range" />,
        })}
      />
    )
  }
  const days = daysBetween(...usageBounds(storage.data, nowMs() - shownDays * msPerDay, nowMs()))
  const series = seriesBySignal(storage.data, days, 'bytes').filter(({ key }) =>
    selection.signals.some((signal) => signal === key),
  )
  const select = (span: Span | null) => {
    const [first, last] = [days[span?.first ?? -1], days[span?.last ?? -1]]
    if (first === undefined || last === undefined) change({ from: undefined, to: undefined })
    else change({ from: dayStart(first), to: dayStart(dayAfter(last)) })
  }
  return (
    <DayBars
      title="Stored bytes"
      days={days}
      series={series}
      erased={erasedSpans(erased.data?.items ?? [], days)}
      short={bytesText}
      exact={bytesText}
      selection={spanIn(days, selection)}
      onSelect={select}
    />
  )
}

/** The days that the range touches. */
function spanIn(days: readonly string[], { end, start }: Selection): Span | null {
  const [firstDay, lastDay] = [days[0], days.at(-1)]
  if (end === null || firstDay === undefined || lastDay === undefined) return null
  const from = start === null ? firstDay : utcDayOf(start)
  const to = utcDayOf(new Date(Date.parse(end) - 1).toISOString())
  if (to < firstDay || from > lastDay || from > to) return null
  return { first: Math.max(0, days.indexOf(from)), last: to > lastDay ? days.length - 1 : days.indexOf(to) }
}
