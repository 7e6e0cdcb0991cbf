// The chart of stored telemetry by day, and the act on the days that are selected.

import { Button } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import type { ErasedTime } from '../../../../contract/organisation/usage.ts'
import { mayCall, rolesText, useMe } from '../../api/session.ts'
import { useAddress } from '../../ui/address.ts'
import { DayBars } from '../../ui/chart/day-bars.tsx'
import { erasedSpans } from '../../ui/chart/erased-spans.ts'
import type { Span } from '../../ui/chart/scale.ts'
import { dayAfter, dayStart, shortDayText } from '../../ui/instants.ts'
import { bytesText, countText, shortCountText } from '../../ui/units.ts'
import { SelectedDays } from './selected-days.tsx'
import { type ServiceUsage, seriesByService, seriesBySignal, type Unit, type Usage } from './usage-days.ts'

interface StorageChartProps {
  readonly usage: Usage
  /** Divides the chart by service; undefined by signal. */
  readonly services: ServiceUsage | undefined
  readonly days: readonly string[]
  readonly erased: readonly ErasedTime[]
}

export function StorageChart({ days, erased, services, usage }: StorageChartProps) {
  const [state, change] = useAddress()
  const unit: Unit = state.unit === 'rows' ? 'rows' : 'bytes'
  const series = useMemo(() => {
    const bySignal = seriesBySignal(usage, days, unit)
    return services === undefined ? bySignal : seriesByService(services, bySignal, days, unit)
  }, [usage, services, days, unit])
  const spans = useMemo(() => erasedSpans(erased, days), [erased, days])
  const selection = selectionIn(days, state.first, state.last)
  const isEmpty = series.every(({ values }) => values.every((value) => value === 0))
  return (
    <>
      <DayBars
        title={unit === 'bytes' ? 'Stored bytes' : 'Stored rows'}
        days={days}
        series={series}
        erased={spans}
        short={unit === 'bytes' ? bytesText : shortCountText}
        exact={unit === 'bytes' ? bytesText : countText}
        selection={selection}
        onSelect={(span) =>
          change({
            first: span === null ? undefined : days[span.first],
            last: span === null ? undefined : days[span.last],
          })
        }
      />
      {isEmpty && <p className="muted">Nothing is stored in this time range; choose a longer one above.</p>}
      <SelectionBar days={days} selection={selection} />
    </>
  )
}

function selectionIn(
  days: readonly string[],
  first: string | undefined,
  last: string | undefined,
): Span | null {
  if (first === undefined || last === undefined) return null
  const [from, to] = [days.indexOf(first), days.indexOf(last)]
  return from < 0 || to < from ? null : { first: from, last: to }
}

interface SelectionBarProps {
  readonly days: readonly string[]
  readonly selection: Span | null
}

function SelectionBar({ days, selection }: SelectionBarProps) {
  const { role, tenant_id: organisation } = useMe()
  const navigate = useNavigate()
  const may = mayCall(role, deletionOperations.create)
  if (!may) {
    return (
      <p className="muted">
        Erasing is for {rolesText(deletionOperations.create)}; you are signed in as {role}.
      </p>
    )
  }
  const [first, last] = [days[selection?.first ?? -1], days[selection?.last ?? -1]]
  if (first === undefined || last === undefined) {
    return (
      <div className="fields">
        <SelectedDays days={days} selection={null} />
        <p className="muted beside-fields">
          Drag over days, click the first and, with Shift, the last one, or use the arrow keys with Shift.
        </p>
      </div>
    )
  }
  const search = { from: dayStart(first), to: dayStart(dayAfter(last)) }
  return (
    <div className="fields">
      <SelectedDays days={days} selection={selection} />
      <p className="beside-fields">
        Selected: {shortDayText(first)} to {shortDayText(last)}, whole UTC days
      </p>
      <Button
        color="red"
        variant="outline"
        className="under-label"
        onClick={() =>
          void navigate({ to: '/$organisation/erase', params: { organisation }, search: search as never })
        }
      >
        Erase selection …
      </Button>
    </div>
  )
}
