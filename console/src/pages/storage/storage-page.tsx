// The page of what the organisation stores: how much, how it grows, how far back it reaches beside the
// retention rule, and what was erased. Days are selected here and erased on the page Erase.

import { SegmentedControl } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { usageOperations } from '../../../../contract/operations/usage.ts'
import { useMay, useMe } from '../../api/session.ts'
import { erasuresQuery, storageQuery } from '../../api/storage.ts'
import { useAddress } from '../../ui/address.ts'
import { Failure, Forbidden, Loading, Notice } from '../../ui/states.tsx'
import { SignalTable } from './signal-table.tsx'
import { StorageChart } from './storage-chart.tsx'
import { StorageFacts } from './storage-facts.tsx'

export function StoragePage() {
  const mayRead = useMay(usageOperations.storage)
  return (
    <>
      <h1>Storage</h1>
      {mayRead ? <Stored /> : <Forbidden operation={usageOperations.storage} what="reading what is stored" />}
    </>
  )
}

function Stored() {
  const mayList = useMay(deletionOperations.list)
  const storage = useQuery(storageQuery)
  const erasures = useQuery({ ...erasuresQuery(), enabled: mayList })
  if (storage.data === undefined) {
    return storage.error === null ? (
      <Loading height={480} label="Counting what is stored" />
    ) : (
      <Failure
        error={storage.error}
        what="What is stored could not be counted"
        onRetry={() => void storage.refetch()}
      />
    )
  }
  const requests = erasures.data?.items ?? []
  if (storage.data.rows === 0) return <NothingStored requestId={requests[0]?.request_id} />
  return (
    <div className={storage.isFetching && storage.isStale ? 'dimmed' : ''}>
      <StorageFacts usage={storage.data} requests={mayList ? requests : null} />
      <UnitSwitch />
      <StorageChart usage={storage.data} requests={requests} />
      <SignalTable usage={storage.data} />
      {erasures.error !== null && (
        <Failure error={erasures.error} what="Erased time is not shown: the requests could not be read" />
      )}
    </div>
  )
}

/** Nothing at all is stored: it was erased, or never came. */
function NothingStored({ requestId }: { readonly requestId: string | undefined }) {
  const { tenant_id: organisation } = useMe()
  if (requestId === undefined) {
    return (
      <Notice title="No telemetry has arrived yet">
        Point an OpenTelemetry SDK or a Collector at <code>{window.location.origin}</code> with an ingest
        token of this organisation; the reference has the details.
      </Notice>
    )
  }
  return (
    <Notice
      title="Nothing is stored"
      action={
        <Link to="/$organisation/erasures/$requestId" params={{ organisation, requestId }}>
          See the last erasure
        </Link>
      }
    >
      Telemetry was erased, and none has arrived since.
    </Notice>
  )
}

function UnitSwitch() {
  const [{ unit }, change] = useAddress()
  return (
    <div className="row">
      <SegmentedControl
        aria-label="What the chart counts"
        value={unit === 'rows' ? 'rows' : 'bytes'}
        data={['bytes', 'rows']}
        onChange={(value) => change({ unit: value === 'rows' ? 'rows' : undefined })}
      />
      <span className="muted">Compressed bytes on disk, per UTC day</span>
    </div>
  )
}
