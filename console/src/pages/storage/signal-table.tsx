// What is stored by signal, exactly.

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
        columns={['signal', { number: 'rows' }, { number: 'bytes' }, { number: 'share' }, 'oldest', 'newest']}
      >
        {usage.signals.map(({ bytes, newest, oldest, rows, signal }) => (
          <tr key={signal}>
            <th scope="row">{signal}</th>
            <td className="number">{countText(rows)}</td>
            <td className="number">{bytesText(bytes)}</td>
            <td className="number">{shareText(bytes, usage.bytes)}</td>
            <td>{oldest === null ? '–' : <Instant at={oldest} />}</td>
            <td title={newest ?? ''}>{newest === null ? '–' : agoText(newest, nowMs())}</td>
          </tr>
        ))}
      </Table>
    </section>
  )
}
