// The numbers of a chart of days as a table, newest day first, with the same selection.

import { Scrolling } from '../scrolling.tsx'
import type { DayBarsProps } from './day-chart.ts'

export function DayTable({
  days,
  erased,
  exact,
  series,
  title,
  totals,
}: DayBarsProps & { readonly totals: readonly number[] }) {
  const rows = days.map((day, i) => ({ day, i })).toReversed()
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
                  .map(({ href, label }) => (
                    <a key={href} href={href}>
                      {label}
                    </a>
                  ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  )
}
