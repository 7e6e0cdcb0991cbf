// One erasure: its three clocks and the backups, its steps, the possible decisions, and its certificate. The
// page updates itself until the request has ended.

import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { DeletionRequest } from '../../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { Refusal } from '../../api/client.ts'
import { useMay, useMe } from '../../api/session.ts'
import { erasureQuery } from '../../api/storage.ts'
import { HoldLink } from '../../ui/hold-link.tsx'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Forbidden, Loading, Notice } from '../../ui/states.tsx'
import { Certificate } from './certificate.tsx'
import { Clocks } from './clocks.tsx'
import { Decisions } from './decisions.tsx'
import { SelectionText } from './selection-text.tsx'
import { StatusBadge } from './status-badge.tsx'
import { holdsIn, statusTexts, textIn } from './status-text.ts'
import { Steps } from './steps.tsx'

export function ErasurePage() {
  const may = useMay(deletionOperations.get)
  const { requestId } = useParams({ strict: false })
  if (!may) return <Forbidden operation={deletionOperations.get} what="reading deletion requests" />
  return <Followed requestId={requestId ?? ''} />
}

function Followed({ requestId }: { readonly requestId: string }) {
  const { data, error, refetch } = useQuery(erasureQuery(requestId))
  if (data !== undefined) return <Erasure request={data} />
  if (error === null) return <Loading height={480} label="Reading the erasure" />
  if (error instanceof Refusal && error.code === 'not_found') {
    return <Notice title="Your organisation has no such request">Check the id in the address.</Notice>
  }
  return <Failure error={error} what="The erasure could not be read" onRetry={() => void refetch()} />
}

function Erasure({ request }: { readonly request: DeletionRequest }) {
  return (
    <>
      <h1 className="row">
        <span className="mono">{request.request_id}</span> <StatusBadge status={request.status} />
      </h1>
      <p role="status" className="line">
        {statusTexts[request.status].says}
      </p>
      <Clocks request={request} />
      <Decisions request={request} />
      <Facts request={request} />
      {/* What appears while somebody looks is at the end, so that nothing moves. */}
      <Steps request={request} />
      {request.status === 'completed' && <Certificate request={request} />}
    </>
  )
}

function Facts({ request }: { readonly request: DeletionRequest }) {
  const { approved_by, created_at, note, reason, refuse_late, requested_by } = request
  const [blocked, nextAttempt, erasedBy] = ['blocked_reason', 'next_attempt_at', 'erased_by'].map((name) =>
    textIn(request, name),
  )
  const holds = holdsIn(request)
  const { tenant_id: organisation } = useMe()
  return (
    <section className="section">
      <h2>Request</h2>
      <dl className="facts">
        <dt>What</dt>
        <dd>
          <SelectionText {...request} />
        </dd>
        <dt>Asked for</dt>
        <dd>
          <Instant at={created_at} offset /> by <span className="break">{requested_by}</span>
        </dd>
        <Fact name="Recorded">
          <Link
            to="/$organisation/ledger"
            params={{ organisation }}
            search={{ request_id: request.request_id } as never}
          >
            every step in the ledger
          </Link>
        </Fact>
        {approved_by !== null && <Fact name="Approved by">{approved_by}</Fact>}
        <Fact name="Reason">{reason === null ? 'none given' : reason.replaceAll('_', ' ')}</Fact>
        {note !== null && <Fact name="Note">{note}</Fact>}
        <Fact name="Late telemetry">{lateText(refuse_late, request.late_rows)}</Fact>
        {holds.length > 0 && (
          <Fact name="Kept by holds">
            {holds.map((hold) => (
              <div key={hold}>
                <HoldLink holdId={hold} />
              </div>
            ))}
          </Fact>
        )}
        {blocked !== null && <Fact name="Blocked">{blocked}</Fact>}
        {nextAttempt != null && (
          <Fact name="Tried again">
            <Instant at={nextAttempt} />
          </Fact>
        )}
        {erasedBy != null && <Fact name="Erased with">{erasedBy}, a wider erasure</Fact>}
      </dl>
    </section>
  )
}

function Fact({ children, name }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd className="break">{children}</dd>
    </>
  )
}

function lateText(refuses: boolean, rows: number): string {
  return refuses ? `refused for the erased time: ${rows} rows so far` : 'accepted as new telemetry'
}
