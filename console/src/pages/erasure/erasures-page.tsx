// All deletion requests of the organisation, newest first; those that wait for a second person can be listed
// alone.

import { NativeSelect } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type DeletionRequest, deletionStatuses } from '../../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { useMay, useMe } from '../../api/session.ts'
import { erasuresQuery } from '../../api/storage.ts'
import { useAddress } from '../../ui/address.ts'
import { Instant } from '../../ui/instant.tsx'
import { More } from '../../ui/more.tsx'
import { shortActor, shortId } from '../../ui/short-ids.ts'
import { Failure, Forbidden, Loading, Notice } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { bytesText, countText } from '../../ui/units.ts'
import { SelectionText } from './selection-text.tsx'
import { StatusBadge } from './status-badge.tsx'
import { numberIn, statusTexts } from './status-text.ts'

export function ErasuresPage() {
  const may = useMay(deletionOperations.list)
  return (
    <>
      <h1>Erasures</h1>
      {may ? (
        <Requests />
      ) : (
        <Forbidden operation={deletionOperations.list} what="reading deletion requests" />
      )}
    </>
  )
}

function Requests() {
  const [state, change] = useAddress()
  const { tenant_id: organisation } = useMe()
  const status = deletionStatuses.find((one) => one === state.status)
  const pages = useInfiniteQuery(erasuresQuery(status))
  const { data, error, refetch } = pages
  const requests = data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <>
      <div className="row">
        <NativeSelect
          aria-label="Status"
          value={status ?? ''}
          data={[
            { value: '', label: 'every status' },
            ...deletionStatuses.map((one) => ({ value: one, label: statusTexts[one].label })),
          ]}
          onChange={(event) => change({ status: event.currentTarget.value || undefined }, { isStep: true })}
        />
        <Link to="/$organisation/erase" params={{ organisation }} className="push">
          Erase …
        </Link>
      </div>
      {error !== null && data === undefined ? (
        <Failure error={error} what="The requests could not be read" onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading height={320} label="Reading the requests" />
      ) : requests.length === 0 ? (
        <Notice
          title={status === undefined ? 'Nothing was ever erased' : `No request ${statusTexts[status].label}`}
        >
          A request appears here when somebody erases, or when retention does.
        </Notice>
      ) : (
        <>
          <RequestTable requests={requests} />
          <More pages={pages} what="requests" />
        </>
      )}
    </>
  )
}

function RequestTable({ requests }: { readonly requests: readonly DeletionRequest[] }) {
  const { tenant_id: organisation } = useMe()
  return (
    <Table
      className="requests"
      label="Deletion requests"
      columns={['request', 'asked for', 'status', 'what', { number: 'rows' }, { number: 'bytes' }, 'by']}
    >
      {requests.map((request) => (
        <tr key={request.request_id}>
          <th scope="row" className="mono nowrap">
            <Link
              to="/$organisation/erasures/$requestId"
              params={{ organisation, requestId: request.request_id }}
              title={request.request_id}
              data-opens
            >
              {shortId(request.request_id)}
            </Link>
          </th>
          <td>
            <Instant at={request.created_at} />
          </td>
          <td>
            <StatusBadge status={request.status} />
          </td>
          <td>
            <SelectionText {...request} />
          </td>
          <td className="number">{countText(numberIn(request, 'rows_erased'))}</td>
          <td className="number">{bytesText(numberIn(request, 'bytes_erased'))}</td>
          <td className="nowrap" title={request.requested_by}>
            {shortActor(request.requested_by)}
          </td>
        </tr>
      ))}
    </Table>
  )
}
