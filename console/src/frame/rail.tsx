// The rail of pages. A page that the role may not use is listed with a lock, because hiding it would leave
// the reader to search for it. A page on which something waits for a second person has its number.

import { Link } from '@tanstack/react-router'
import { mayCall, useMe } from '../api/session.ts'
import { useWaiting } from '../api/waiting.ts'
import { type Place, places } from './places.ts'

export function Rail({ onFollow }: { readonly onFollow?: () => void }) {
  const { role, tenant_id: organisation } = useMe()
  const waiting = useWaiting()
  const counts: Partial<Record<Place['to'], number>> = {
    '/$organisation/erasures': waiting.erasures,
    '/$organisation/retention': waiting.retention,
  }
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
            <Count waiting={counts[to] ?? 0} />
          </Link>
        </li>
      ))}
    </ul>
  )
}

function Count({ waiting }: { readonly waiting: number }) {
  if (waiting === 0) return null
  return (
    <span className="rail-count" title="Waiting for a second person">
      {waiting}
      <span className="hidden-text"> waiting for a second person</span>
    </span>
  )
}
