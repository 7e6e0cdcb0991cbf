// The preview of an erasure, counted by the service: rows, bytes and services, what is erased with them, what
// stays, and who else must approve. Its size does not change while it is counted again.

import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import type { DeletionPreview } from '../../../../contract/deletion/requests.ts'
import { HoldLink } from '../../ui/hold-link.tsx'
import { Instant } from '../../ui/instant.tsx'
import { dayText } from '../../ui/instants.ts'
import { useZone } from '../../ui/preferences.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { bytesText, countOf, countText } from '../../ui/units.ts'
import type { Preview } from './use-preview.ts'

interface PreviewSummaryProps {
  readonly preview: Preview
  readonly problem: string | null
}

export function PreviewSummary({ preview, problem }: PreviewSummaryProps) {
  const { countAgain, data, error, isOld } = preview
  return (
    <section aria-labelledby="preview-summary" aria-live="polite" aria-busy={isOld}>
      <h2 id="preview-summary">4 What would go</h2>
      <div className="preview-summary">
        {problem !== null ? (
          <p className="muted">{problem}</p>
        ) : error !== null ? (
          <Failure error={error} what="It could not be counted" onRetry={countAgain} />
        ) : data === undefined ? (
          <Loading height={160} label="Counting what would go" />
        ) : (
          <div className={isOld ? 'dimmed' : ''}>
            <Counted preview={data} />
            <p className="muted">
              Counted <Instant at={data.created_at} />, valid until <Instant at={data.expires_at} />{' '}
              <Button variant="subtle" size="compact-sm" onClick={countAgain}>
                Count again
              </Button>
            </p>
          </div>
        )}
      </div>
    </section>
  )
}

function Counted({ preview }: { readonly preview: DeletionPreview }) {
  const { bytes, rows, warnings } = preview
  if (rows === 0) {
    return (
      <p className="big-number">
        Nothing that can be read is stored in this selection. It may be erased already, or was never sent.
      </p>
    )
  }
  return (
    <>
      <p className="big-number">
        {countOf(rows, 'row')}, {bytesText(bytes)}
      </p>
      <SignalLines preview={preview} />
      <ul>
        {consequences(preview)}
        <BackupLine preview={preview} />
        {warnings.map(({ code, message }) => (
          <li key={code}>
            <strong>Warning:</strong> {message}
          </li>
        ))}
        <li>
          {preview.needs_approval
            ? 'A second owner or admin must approve it; until then nothing is hidden.'
            : 'Nobody else has to approve it.'}
        </li>
      </ul>
    </>
  )
}

function SignalLines({ preview: { signals } }: { readonly preview: DeletionPreview }) {
  return (
    <Table
      label="What would go, by signal"
      columns={['signal', { number: 'rows' }, { number: 'bytes' }, 'first', 'last', 'services']}
    >
      {signals.map(({ bytes, first, last, rows, services, services_total, signal }) => (
        <tr key={signal}>
          <th scope="row">{signal}</th>
          <td className="number">{countText(rows)}</td>
          <td className="number">{bytesText(bytes)}</td>
          <td>{first === null ? '–' : <Instant at={first} />}</td>
          <td>{last === null ? '–' : <Instant at={last} />}</td>
          <td className="nowrap" title={services.join(', ')}>
            {servicesText(services, services_total)}
          </td>
        </tr>
      ))}
    </Table>
  )
}

const servicesShown = 3

function servicesText(services: readonly string[], total: number): string {
  const more = total - Math.min(servicesShown, services.length)
  const named = services.slice(0, servicesShown).join(', ')
  return more > 0 ? `${named} and ${more} more` : named || '–'
}

/** Says what is erased with the rows, and what stays. */
function consequences({ derived, held }: DeletionPreview): ReactNode[] {
  const { anomalies, anomalies_learned_from } = derived
  const lines: ReactNode[] = []
  if (anomalies > 0)
    lines.push(
      <li key="anomalies">
        {countOf(anomalies, 'anomaly of this time goes', 'anomalies of this time go')} too.
      </li>,
    )
  if (anomalies_learned_from > 0) {
    lines.push(
      <li key="bands">
        {countOf(anomalies_learned_from, 'later anomaly loses its', 'later anomalies lose their')} expected
        band, which was learnt from it.
      </li>,
    )
  }
  for (const hold of held) {
    lines.push(
      <li key={hold.hold_id}>
        The legal hold <HoldLink holdId={hold.hold_id} /> keeps what it covers ({hold.signals.join(', ')})
        until it is released.
      </li>,
    )
  }
  lines.push(<li key="stays">The ledger, the audit log and copies that you made yourselves stay.</li>)
  return lines
}

/** Names each backup: the operator knows them by their ids. */
function BackupLine({ preview: { backups, backups_clear_by } }: { readonly preview: DeletionPreview }) {
  const zone = useZone()
  if (backups_clear_by === null) return <li>No known backup has a copy.</li>
  return (
    <li>
      {countOf(backups.length, 'backup has', 'backups have')} a copy until {dayText(backups_clear_by, zone)}.
      <details>
        <summary>Which backups</summary>
        <Table label="Backups with a copy" columns={['backup', 'taken', 'is gone']}>
          {backups.map(({ backup_id, expires_at, taken_at }) => (
            <tr key={backup_id}>
              <th scope="row" className="mono">
                {backup_id}
              </th>
              <td>
                <Instant at={taken_at} />
              </td>
              <td>
                <Instant at={expires_at} />
              </td>
            </tr>
          ))}
        </Table>
      </details>
    </li>
  )
}
