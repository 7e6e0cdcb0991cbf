// The urgent items in the bar of every page, each linked to the page where it is decided: failed erasures,
// telemetry that the quota refused, and decisions of a second person. On narrow screens they are at the lower
// edge of the window, so that the page does not move when they appear.

import { Link } from '@tanstack/react-router'
import { useMe } from '../api/session.ts'
import { useWaiting } from '../api/waiting.ts'
import { countOf } from '../ui/units.ts'

export function Attention() {
  const { tenant_id: organisation } = useMe()
  const { erasures, failed, isQuotaRefused, retention } = useWaiting()
  const params = { organisation }
  return (
    <div className="attention-list">
      {failed > 0 && (
        <Link
          to="/$organisation/erasures"
          params={params}
          search={{ status: 'failed' } as never}
          className="attention"
          data-kind="danger"
        >
          {countOf(failed, 'erasure')} failed
        </Link>
      )}
      {isQuotaRefused && (
        <Link to="/$organisation/send" params={params} className="attention" data-kind="danger">
          refused by the quota today
        </Link>
      )}
      {erasures + retention > 0 && (
        <Link
          to={erasures > 0 ? '/$organisation/erasures' : '/$organisation/retention'}
          params={params}
          search={(erasures > 0 ? { status: 'awaiting_approval' } : {}) as never}
          className="attention"
        >
          {erasures + retention} to approve
        </Link>
      )}
    </div>
  )
}
