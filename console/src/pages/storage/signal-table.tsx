// What is stored by signal, exactly.

import { nowMs } from '../../clock.ts'
import { Instant } from '../../ui/instant.tsx'
import { agoText } from '../../ui/instants.ts'
import { Scrolling } from '../../ui/scrolling.tsx'
import { bytesText, countText, shareText } from '../../ui/units.ts'
import type { Usage } from './usage-days.ts'

export function SignalTable({ usage }: { readonly usage: Usage }) {
  return (
    <section className="section">
      <h2>By signal</h2>
      <Scrolling label="Stored telemetry by signal">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">signal</th>
              <th scope="col" className="number">
                rows
              </th>
              <th scope="col" className="number">
                bytes
              </th>
              <th scope="col" className="number">
                share
              </th>
              <th scope="col">oldest</th>
              <th scope="col">newest</th>
            </tr>
          </thead>
          <tbody>
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
          </tbody>
        </table>
      </Scrolling>
    </section>
  )
}
