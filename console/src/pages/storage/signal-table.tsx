// Stored amounts by signal, with the oldest row and the retention rule. A row that the rule should have
// erased is marked: retention runs at night, and a legal hold keeps rows longer.

import { nowMs } from '../../clock.ts'
import { Instant } from '../../ui/instant.tsx'
import { agoText } from '../../ui/instants.ts'
import { Table } from '../../ui/table.tsx'
import { bytesText, countText, shareText } from '../../ui/units.ts'
import type { Usage } from './usage-days.ts'

export function SignalTable({ usage }: { readonly usage: Usage }) {
  return (
    <section className="section">
      <h2>By signal</h2>
      <Table
        label="Stored telemetry by signal"
        columns={[
          'signal',
          ...['rows', 'bytes', 'share'].map((number) => ({ number })),
          'oldest row',
          'kept for',
          'newest row',
        ]}
      >
        {usage.signals.map(({ bytes, newest, oldest, retention, rows, signal }) => (
          <tr key={signal}>
            <th scope="row">{signal}</th>
            <td className="number">{countText(rows)}</td>
            <td className="number">{bytesText(bytes)}</td>
            <td className="number">{shareText(bytes, usage.bytes)}</td>
            <td>{oldest === null ? '–' : <Instant at={oldest} />}</td>
            <td>
              {retention.days === null ? 'no limit' : `${retention.days} UTC days`}
              {isOverdue(oldest, retention.erases_before) && (
                <span className="status beside" data-kind="warn">
                  older rows are left
                </span>
              )}
            </td>
            <td className="instant" title={newest ?? ''}>
              {newest === null ? '–' : agoText(newest, nowMs())}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  )
}

function isOverdue(oldest: string | null, erasesBefore: string | null): boolean {
  return oldest !== null && erasesBefore !== null && Date.parse(oldest) < Date.parse(erasesBefore)
}
