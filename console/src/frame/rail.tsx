// The rail of pages. A page that the role may not use is listed with a lock, because hiding it would leave
// the reader to search for it. A page on which something waits for a second person has its number.

import { Link } from '@tanstack/react-router'
import { mayCall, rolesText, useMe } from '../api/session.ts'
import { useWaiting } from '../api/waiting.ts'
import type { RangeFor } from './carried-range.ts'
import { type Place, places } from './places.ts'

interface RailProps {
  readonly rangeFor: RangeFor
  readonly onFollow?: () => void
}

export function Rail({ onFollow, rangeFor }: RailProps) {
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
          <Link
            to={to}
            params={{ organisation }}
            search={rangeFor(to) as never}
            activeOptions={{ includeSearch: false }}
            className="rail-link"
            onClick={() => onFollow?.()}
          >
            {label}
            {!mayCall(role, operation) && (
              <span className="muted" title={`For ${rolesText(operation)}`}>
                <span aria-hidden="true">⊘</span>
                <span className="hidden-text"> (for {rolesText(operation)})</span>
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
