// The irreversible acts: erasing all telemetry, which the page Erase does, and removing the organisation.

import { Link } from '@tanstack/react-router'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { tenancyOperations } from '../../../../contract/operations/tenancy.ts'
import { useConnection } from '../../api/connection.ts'
import { useMay, useMe } from '../../api/session.ts'
import { Forbidden } from '../../ui/states.tsx'
import { RemoveOrganisation } from './remove-organisation.tsx'

export function DangerPage() {
  const { isRemoved } = useConnection()
  const mayRemove = useMay(tenancyOperations.removeOrganisation)
  return (
    <>
      {!isRemoved && <EraseAll />}
      <section className="danger">
        <h2>Remove the organisation</h2>
        {mayRemove ? (
          <RemoveOrganisation />
        ) : (
          <Forbidden operation={tenancyOperations.removeOrganisation} what="removing the organisation" />
        )}
      </section>
    </>
  )
}

function EraseAll() {
  const { tenant_id: organisation } = useMe()
  const mayErase = useMay(deletionOperations.create)
  return (
    <section className="danger">
      <h2>Erase all telemetry</h2>
      {mayErase ? (
        <>
          <p>
            All metrics, logs and traces of {organisation}, and the anomalies found in them. Ledger, audit
            log, tokens and settings stay. The next page counts what would go, and asks you to type the id.
          </p>
          <Link
            to="/$organisation/erase"
            params={{ organisation }}
            search={{ scope: 'all' } as never}
            className="danger-link"
          >
            Choose everything on the page Erase
          </Link>
        </>
      ) : (
        <Forbidden operation={deletionOperations.create} what="erasing telemetry" />
      )}
    </section>
  )
}
