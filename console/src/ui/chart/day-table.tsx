// The numbers of a chart of days as a table, newest day first. A table of every day of many years would take
// seconds, so older days are added when they are asked for.

import { Button } from '@mantine/core'
import { useState } from 'react'
import { ErasureLink } from '../erasure-link.tsx'
import { Scrolling } from '../scrolling.tsx'
import type { DayBarsProps } from './day-chart.ts'

/** Days that are shown at first, and that are added: a year. */
const daysShown = 366

export function DayTable({
  days,
  erased,
  exact,
  series,
  title,
  totals,
}: DayBarsProps & { readonly totals: readonly number[] }) {
  const [shown, setShown] = useState(daysShown)
  const rows = days
    .slice(-shown)
    .map((day, i) => ({ day, i: i + Math.max(0, days.length - shown) }))
    .toReversed()
  return (
    <Scrolling className="chart-table" label={`${title}, as a table`}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">UTC day</th>
            {series.map(({ key, label }) => (
              <th key={key} scope="col" className="number">
                {label}
              </th>
            ))}
            <th scope="col" className="number">
              total
            </th>
            <th scope="col">erased by</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ day, i }) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {series.map(({ key, values }) => (
                <td key={key} className="number">
                  {exact(values[i] ?? 0)}
                </td>
              ))}
              <td className="number">{exact(totals[i] ?? 0)}</td>
              <td>
                {erased
                  .filter(({ first, last }) => first <= i && i <= last)
                  .map(({ label, requestId }) => (
                    <ErasureLink key={requestId} requestId={requestId}>
                      {label}
                    </ErasureLink>
                  ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown < days.length && (
        <Button variant="subtle" onClick={() => setShown(shown + daysShown)}>
          Show older days
        </Button>
      )}
    </Scrolling>
  )
}
