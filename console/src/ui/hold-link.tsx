// A link to a legal hold by its id: the page of holds opens with it in view.

import { Link } from '@tanstack/react-router'
import { useMe } from '../api/session.ts'

export function HoldLink({ holdId }: { readonly holdId: string }) {
  const { tenant_id: organisation } = useMe()
  return (
    <Link
      to="/$organisation/holds"
      params={{ organisation }}
      search={{ hold: holdId } as never}
      className="mono"
    >
      {holdId}
    </Link>
  )
}
