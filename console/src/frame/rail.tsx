// The rail of pages. A page that the role may not use is listed with a lock, because hiding it would leave
// the reader to search for it.

import { Link } from '@tanstack/react-router'
import { mayCall, useMe } from '../api/session.ts'
import { places } from './places.ts'

export function Rail({ onFollow }: { readonly onFollow?: () => void }) {
  const { role, tenant_id: organisation } = useMe()
  return (
    <ul className="rail-list">
      {places.map(({ label, operation, to }) => (
        <li key={to}>
          <Link to={to} params={{ organisation }} className="rail-link" onClick={() => onFollow?.()}>
            {label}
            {!mayCall(role, operation) && (
              <span className="muted" title={`Not for ${role}`}>
                <span aria-hidden="true">⊘</span>
                <span className="hidden-text"> (not for {role})</span>
              </span>
            )}
          </Link>
        </li>
      ))}
    </ul>
  )
}
