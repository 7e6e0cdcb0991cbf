// A link to an erasure by its request id; only its name for a role that may not read requests.

import { Link } from '@tanstack/react-router'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { useMay, useMe } from '../api/session.ts'

interface ErasureLinkProps {
  readonly requestId: string
  readonly children: string
}

export function ErasureLink({ children, requestId }: ErasureLinkProps) {
  const { tenant_id: organisation } = useMe()
  const may = useMay(deletionOperations.get)
  if (!may) return <span title={requestId}>{children}</span>
  return (
    <Link to="/$organisation/erasures/$requestId" params={{ organisation, requestId }} title={requestId}>
      {children}
    </Link>
  )
}
