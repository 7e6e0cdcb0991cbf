// The page of stored telemetry: amounts, growth, the oldest row and the retention rule, and erased ranges.
// Days are selected here and erased on the page Erase.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { usageOperations } from '../../../../contract/operations/usage.ts'
import type { ErasedTime } from '../../../../contract/organisation/usage.ts'
import { useMay, useMe } from '../../api/session.ts'
import { erasedQuery, servicesQuery, storageQuery } from '../../api/storage.ts'
import { nowMs } from '../../clock.ts'
import { useAddress } from '../../ui/address.ts'
import { Choice } from '../../ui/choice.tsx'
import { daysBetween } from '../../ui/instants.ts'
import { Failure, Forbidden, Loading, Notice } from '../../ui/states.tsx'
import { boundMs, rangeOf } from '../../ui/time-range.ts'
import { ServiceTable } from './service-table.tsx'
import { SignalTable } from './signal-table.tsx'
import { StorageChart } from './storage-chart.tsx'
import { StorageFacts } from './storage-facts.tsx'
import { type Usage, usageBounds } from './usage-days.ts'

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
  const { data, error, refetch } = useQuery(storageQuery)
  // Both are waited for, so that nothing below the chart moves when it appears.
  const erased = useQuery(erasedQuery)
  if (data === undefined || erased.isPending) {
    return error === null ? (
      <Loading height={480} label="Counting what is stored" />
    ) : (
      <Failure error={error} what="What is stored could not be counted" onRetry={() => void refetch()} />
    )
  }
  if (data.rows === 0) return <NothingStored />
  return (
    <>
      <StorageFacts usage={data} />
      <Views usage={data} />
    </>
  )
}

/** The same list each time, so that what depends on it is not computed again. */
const nothingErased: readonly ErasedTime[] = []

/** The chart and the tables, by signal or by service. */
function Views({ usage }: { readonly usage: Usage }) {
  const [state] = useAddress()
  const range = rangeOf(state)
  const [firstDay, lastDay] = usageBounds(usage, boundMs(range.from), Math.min(boundMs(range.to), nowMs()))
  // A list of the days of decades takes as long as drawing them, so it is kept until it changes.
  const days = useMemo(() => daysBetween(firstDay, lastDay), [firstDay, lastDay])
  const erased = useQuery(erasedQuery)
  const services = useQuery(servicesQuery(days[0] ?? '', days.at(-1) ?? ''))
  const isByService = state.by === 'service'
  if (isByService && services.isLoading) {
    return (
      <>
        <ViewSwitches />
        <Loading height={480} label="Counting the services" />
      </>
    )
  }
  return (
    <>
      <ViewSwitches />
      <StorageChart
        usage={usage}
        services={isByService ? services.data : undefined}
        days={days}
        erased={erased.data?.items ?? nothingErased}
      />
      {erased.error !== null && (
        <Failure
          error={erased.error}
          what="Erased time is not shown: it could not be read"
          onRetry={() => void erased.refetch()}
        />
      )}
      <SignalTable usage={usage} />
      {services.data !== undefined ? (
        <ServiceTable usage={services.data} totalBytes={usage.bytes} isOld={services.isPlaceholderData} />
      ) : services.error !== null ? (
        <Failure
          error={services.error}
          what="The services could not be counted"
          onRetry={() => void services.refetch()}
        />
      ) : (
        services.isLoading && (
          <div className="section">
            <Loading height={300} label="Counting the services" />
          </div>
        )
      )}
    </>
  )
}

/** Nothing at all is stored: it was erased, or never came. */
function NothingStored() {
  const { tenant_id: organisation } = useMe()
  const { data } = useQuery(erasedQuery)
  const mayRead = useMay(deletionOperations.get)
  const requestId = data?.items[0]?.request_id
  if (requestId === undefined) {
    return (
      <Notice
        title="No telemetry has arrived yet"
        action={
          <Link to="/$organisation/send" params={{ organisation }}>
            Send the first telemetry
          </Link>
        }
      >
        Point an OpenTelemetry SDK, a Collector or Prometheus at <code>{window.location.origin}</code>. The
        next page has what to paste, shows what arrives, and says why something is refused.
      </Notice>
    )
  }
  return (
    <Notice
      title="Nothing is stored"
      {...(mayRead && {
        action: (
          <Link to="/$organisation/erasures/$requestId" params={{ organisation, requestId }}>
            See the erasure
          </Link>
        ),
      })}
    >
      Telemetry was erased, and none has arrived since.
    </Notice>
  )
}

function ViewSwitches() {
  const [{ by, unit }, change] = useAddress()
  return (
    <div className="row">
      <Choice
        label="What the chart counts"
        value={unit === 'rows' ? 'rows' : 'bytes'}
        options={[
          { value: 'bytes', text: 'bytes' },
          { value: 'rows', text: 'rows' },
        ]}
        onChange={(value) => change({ unit: value === 'rows' ? 'rows' : undefined })}
      />
      <Choice
        label="How the chart is divided"
        value={by === 'service' ? 'service' : 'signal'}
        options={[
          { value: 'signal', text: 'by signal' },
          { value: 'service', text: 'by service' },
        ]}
        onChange={(value) => change({ by: value === 'service' ? 'service' : undefined })}
      />
      <span className="muted">
        {unit === 'rows' ? 'Rows per UTC day' : 'Compressed bytes on disk, per UTC day'}
      </span>
    </div>
  )
}
