// The decisions that a person may make about a request now: cancel, retry, count again, approve, reject. An
// act that the service would refuse is hidden, or disabled with its reason.

import { TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { call } from '../../api/client.ts'
import { useMe } from '../../api/session.ts'
import { dropCachedAmounts } from '../../api/storage.ts'
import { ActButton } from '../../ui/act-button.tsx'
import { HoldLink } from '../../ui/hold-link.tsx'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Notice } from '../../ui/states.tsx'
import { bytesText, countOf } from '../../ui/units.ts'
import { numberIn } from './status-text.ts'

interface RequestProps {
  readonly request: DeletionRequest
}

export function Decisions({ request }: RequestProps) {
  const { status } = request
  const canCancel =
    status === 'awaiting_approval' ||
    ((status === 'scheduled' || status === 'held') && numberIn(request, 'attempts') === 0)
  return (
    <>
      {status === 'awaiting_approval' && <Approval request={request} />}
      <div className="row acts-row">
        {canCancel && (
          <Act request={request} operation={deletionOperations.cancel} label="Cancel this erasure" />
        )}
        {(status === 'failed' || status === 'incomplete') && (
          <Act request={request} operation={deletionOperations.retry} label="Retry now" />
        )}
        {status === 'completed' && <CountAgain request={request} />}
      </div>
    </>
  )
}

type Deciding = typeof deletionOperations.cancel

interface ActProps extends RequestProps {
  readonly operation: Deciding
  readonly label: string
}

function Act({ label, operation, request }: ActProps) {
  const client = useQueryClient()
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => call(operation, { params: { request_id: request.request_id } }),
    onSettled: () => dropCachedAmounts(client),
  })
  return (
    <>
      <ActButton variant="default" loading={isPending} onAct={() => mutate()}>
        {label}
      </ActButton>
      {error !== null && <Failure error={error} what={`${label}: refused`} />}
    </>
  )
}

function Approval({ request }: RequestProps) {
  const { requester } = useMe()
  const { approve_by, requested_by } = request
  const isOwn = requester === requested_by
  return (
    <Notice title="A second person must approve it" kind="warn">
      {approve_by !== null && (
        <p>
          It expires <Instant at={approve_by} offset /> unless another owner or admin approves it.
        </p>
      )}
      <WouldErase request={request} />
      {isOwn ? (
        <p>You asked for it, so somebody else has to decide. Send them the address of this page.</p>
      ) : (
        <>
          <div className="row">
            <Act request={request} operation={deletionOperations.approve} label="Approve" />
          </div>
          <RejectForm request={request} />
        </>
      )}
    </Notice>
  )
}

/** Counting everything is expensive for the service, so it is repeated seldom. */
const recountMs = 60_000

/** What it would erase if it was approved now, for the person who decides. */
function WouldErase({ request }: RequestProps) {
  const { range_end, range_start, request_id, scope, signals } = request
  const { data, error, refetch } = useQuery({
    queryKey: ['preview', 'request', request_id],
    // It must be current for the decision: a hold may have been placed since it was counted.
    refetchInterval: recountMs,
    queryFn: ({ signal }) =>
      call(deletionOperations.preview, {
        body: {
          scope,
          signals,
          ...(range_start !== null && { range_start }),
          ...(range_end !== null && { range_end }),
        },
        signal,
      }),
  })
  if (error !== null) {
    return (
      <Failure error={error} what="What it would erase could not be counted" onRetry={() => void refetch()} />
    )
  }
  return (
    <div role="status" className="lines">
      {data === undefined
        ? 'Counting what it would erase …'
        : `It would erase ${countOf(data.rows, 'row')}, ${bytesText(data.bytes)}, as stored now.`}
      {data?.held.map(({ hold_id: holdId }) => (
        <div key={holdId}>
          The legal hold <HoldLink holdId={holdId} /> keeps what it covers: that part is erased after its
          release.
        </div>
      ))}
    </div>
  )
}

function RejectForm({ request }: RequestProps) {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const [isMissing, setMissing] = useState(false)
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      call(deletionOperations.reject, { params: { request_id: request.request_id }, body: { reason } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['erasures'] }),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setMissing(reason.trim() === '')
    if (reason.trim() !== '') mutate()
  }
  return (
    <form onSubmit={submit} className="fields">
      <TextInput
        label="Reason to reject it"
        description="It is recorded; no personal data"
        w={360}
        maxLength={500}
        value={reason}
        error={isMissing ? 'Say why.' : null}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <ActButton variant="default" loading={isPending} className="under-label">
        Reject
      </ActButton>
      {error !== null && <Failure error={error} what="It was not rejected" />}
    </form>
  )
}

function CountAgain({ request }: RequestProps) {
  const client = useQueryClient()
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: () => call(deletionOperations.verify, { params: { request_id: request.request_id } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['erasures'] }),
  })
  const left = Object.values(data?.remaining ?? {}).reduce((sum, rows) => sum + rows, 0)
  return (
    <>
      <ActButton variant="default" loading={isPending} onAct={() => mutate()}>
        Count again
      </ActButton>
      {data !== undefined && (
        <span role="status">
          Counted <Instant at={data.checked_at} />: {countOf(left, 'row')} left in{' '}
          {countOf(Object.keys(data.remaining).length, 'store')}.
        </span>
      )}
      {error !== null && <Failure error={error} what="It could not be counted" />}
    </>
  )
}
