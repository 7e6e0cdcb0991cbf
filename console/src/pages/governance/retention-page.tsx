// How long each signal is kept, with the effect so far. A shorter rule erases at once, so the page shows what
// it would erase before it is saved, and asks for the same word as an erasure.

import { useQuery } from '@tanstack/react-query'
import { retentionOperations } from '../../../../contract/operations/governance.ts'
import { retentionQuery } from '../../api/governance.ts'
import { useMay } from '../../api/session.ts'
import { storageQuery } from '../../api/storage.ts'
import { ErasureLink } from '../../ui/erasure-link.tsx'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Forbidden, Loading, Notice, OnlyFor } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import type { Usage } from '../storage/usage-days.ts'
import { PendingChanges } from './pending-changes.tsx'
import { RetentionForm } from './retention-form.tsx'

export function RetentionPage() {
  const may = useMay(retentionOperations.get)
  return (
    <>
      <h1>Retention</h1>
      {may ? <Rules /> : <Forbidden operation={retentionOperations.get} what="reading the retention" />}
    </>
  )
}

function Rules() {
  const retention = useQuery(retentionQuery)
  const storage = useQuery(storageQuery)
  const mayChange = useMay(retentionOperations.patch)
  const error = retention.error ?? storage.error
  if (error !== null && (retention.data === undefined || storage.data === undefined)) {
    const retry = () => void Promise.all([retention.refetch(), storage.refetch()])
    return <Failure error={error} what="The retention could not be read" onRetry={retry} />
  }
  if (retention.data === undefined || storage.data === undefined) {
    return <Loading height={240} label="Reading the retention" />
  }
  return (
    <>
      <RuleTable usage={storage.data} />
      <PendingChanges changes={retention.data.pending ?? []} />
      {mayChange ? (
        <RetentionForm retention={retention.data} />
      ) : (
        <Notice title="Your role may read the rules, and not change them">
          <OnlyFor act="Changing them" operation={retentionOperations.patch} />
        </Notice>
      )}
    </>
  )
}

/** The rule, the oldest stored row, and the last erasure that the rule has requested. */
function RuleTable({ usage: { signals } }: { readonly usage: Usage }) {
  return (
    <Table
      label="Retention by signal"
      columns={['signal', 'kept for', 'erases everything before', 'oldest row', 'last erasure']}
    >
      {signals.map(({ oldest, retention, signal }) => (
        <tr key={signal}>
          <th scope="row">{signal}</th>
          <td>{retention.days === null ? 'no limit' : `${retention.days} UTC days`}</td>
          <td>{retention.erases_before === null ? '–' : <Instant at={retention.erases_before} offset />}</td>
          <td>{oldest === null ? '–' : <Instant at={oldest} />}</td>
          <td>
            {retention.last_erasure === null ? (
              'none yet'
            ) : (
              <>
                <ErasureLink requestId={retention.last_erasure.request_id}>
                  {retention.last_erasure.status}
                </ErasureLink>
                , <Instant at={retention.last_erasure.created_at} />
              </>
            )}
          </td>
        </tr>
      ))}
    </Table>
  )
}
