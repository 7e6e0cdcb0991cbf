// The organisation: its name, its id, and the reader's token and role. Nothing here can be changed, and the
// page says why.

import { useQuery } from '@tanstack/react-query'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import { organisationQuery } from '../../api/organisation.ts'
import { useMay, useMe } from '../../api/session.ts'
import { Instant } from '../../ui/instant.tsx'
import { Failure, Forbidden, Loading } from '../../ui/states.tsx'
import { roleTexts } from './role-texts.ts'

export function OrganisationPage() {
  const may = useMay(tenancyOperations.organisation)
  if (!may) return <Forbidden operation={tenancyOperations.organisation} what="reading the organisation" />
  return <Facts />
}

function Facts() {
  const { requester, role } = useMe()
  const { data, error, refetch } = useQuery(organisationQuery)
  if (data === undefined) {
    return error === null ? (
      <Loading height={200} label="Reading the organisation" />
    ) : (
      <Failure error={error} what="The organisation could not be read" onRetry={() => void refetch()} />
    )
  }
  return (
    <>
      <h2>Organisation</h2>
      <dl className="facts">
        <dt>Name</dt>
        <dd className="break">{data.name}</dd>
        <dt>Id</dt>
        <dd>
          <code>{data.tenant_id}</code>
          <div className="muted">You type it to confirm an erasure.</div>
        </dd>
        <dt>Created</dt>
        <dd>
          <Instant at={data.created_at} offset />
        </dd>
      </dl>
      <p className="muted">
        The operator sets both names, and neither changes: the ledger, the audit log and every certificate
        name the organisation by them.
      </p>
      <section className="section">
        <h2>You</h2>
        <dl className="facts">
          <dt>Role</dt>
          <dd>
            {role}: {roleTexts[role]}
          </dd>
          <dt>Recorded as</dt>
          <dd className="break">{requester}</dd>
        </dl>
      </section>
    </>
  )
}
