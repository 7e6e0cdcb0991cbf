// The address of the console without an organisation redirects to the organisation of the session. An unknown
// address shows a notice.

import { useQuery } from '@tanstack/react-query'
import { Link, Navigate } from '@tanstack/react-router'
import { meQuery } from '../api/session.ts'
import { Notice } from '../ui/states.tsx'
import { Gate } from './gate.tsx'

export function Home() {
  return (
    <Gate>
      <ToOrganisation />
    </Gate>
  )
}

function ToOrganisation() {
  const { data } = useQuery(meQuery)
  if (data === undefined) return null
  return <Navigate to="/$organisation/storage" params={{ organisation: data.tenant_id }} replace />
}

export function NotFound() {
  return (
    <main className="alone">
      <Notice title="The console has no page at this address" action={<Link to="/">To the start</Link>} />
    </main>
  )
}
