// Shows the rows that arrived since the page was opened, and after how long, and links to the next page when
// there are some. It updates itself.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { arrivedQuery } from '../../api/sending.ts'
import { useMe } from '../../api/session.ts'
import { after } from '../../clock.ts'
import { Failure } from '../../ui/states.tsx'
import { countOf } from '../../ui/units.ts'
import { type Arrivals, arrivalsAfter } from './arrivals.ts'

export function Waiting() {
  const { tenant_id: organisation } = useMe()
  const { data, error, refetch } = useQuery(arrivedQuery)
  const arrivals = useRef<Arrivals | null>(null)
  if (data !== undefined) arrivals.current = arrivalsAfter(arrivals.current, data.today)
  const arrived = arrivals.current?.arrived ?? 0
  const elapsed = useElapsed(arrived === 0)
  if (error !== null && data === undefined) {
    return <Failure error={error} what="Arrivals could not be read" onRetry={() => void refetch()} />
  }
  if (arrived === 0) {
    return (
      <p role="status">
        <span className="status" data-kind="work">
          waiting for data
        </span>{' '}
        Nothing has arrived since this page was opened. {/* Not read aloud every second. */}
        <span className="muted" aria-hidden="true">
          {elapsed}
        </span>
      </p>
    )
  }
  return (
    <p role="status">
      <span className="status" data-kind="ok">
        arrived
      </span>{' '}
      {countOf(arrived, 'row')} since this page was opened, the first after {elapsed}.{' '}
      <Link to="/$organisation/storage" params={{ organisation }}>
        See what is stored
      </Link>
    </p>
  )
}

/** Time since the page was opened, such as `0:42`; it stops when something has arrived. */
function useElapsed(isCounting: boolean): string {
  const [seconds, setSeconds] = useState(0)
  useEffect(
    () => (isCounting ? after(1_000, () => setSeconds(seconds + 1)) : undefined),
    [isCounting, seconds],
  )
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
