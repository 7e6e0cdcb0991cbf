// The rail of pages. A page that the role may not use is listed with a lock, because a reader would search
// for a hidden one. A page with decisions for a second person shows their number.

import { Link } from '@tanstack/react-router'
import { mayCall, rolesText, useMe } from '../api/session.ts'
import { useWaiting } from '../api/waiting.ts'
import type { RangeFor } from './carried-range.ts'
import { type PageLink, pageLinks } from './page-links.ts'

interface RailProps {
  readonly rangeFor: RangeFor
  readonly onFollow?: () => void
}

export function Rail({ onFollow, rangeFor }: RailProps) {
  const { role, tenant_id: organisation } = useMe()
  const waiting = useWaiting()
  const counts: Partial<Record<PageLink['to'], number>> = {
    '/$organisation/erasures': waiting.erasures,
    '/$organisation/retention': waiting.retention,
  }
  return (
    <ul className="rail-list">
      {pageLinks.map(({ label, operation, to }) => (
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
