// The facts over the chart: how much, how it grows, the oldest row beside the retention rule, and what the
// last nightly erasure did. They say what is stored, and not what a rule was asked to do.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { DeletionRequest } from '../../../../contract/deletion.ts'
import { retentionOperations } from '../../../../contract/operations/governance.ts'
import { useMay, useMe } from '../../api/session.ts'
import { retentionQuery } from '../../api/storage.ts'
import { nowMs } from '../../clock.ts'
import { agoText, dayText, utcDayOf } from '../../ui/instants.ts'
import { useZone } from '../../ui/preferences.ts'
import { bytesText, countText } from '../../ui/units.ts'
import { growthPerDay, type Usage } from './usage-days.ts'

interface StorageFactsProps {
  readonly usage: Usage
  /** Null where the role may not read them. */
  readonly requests: readonly DeletionRequest[] | null
}

export function StorageFacts({ requests, usage }: StorageFactsProps) {
  const zone = useZone()
  const growth = growthPerDay(usage, utcDayOf(new Date(nowMs()).toISOString()))
  return (
    <dl className="tiles">
      <div className="tile-main">
        <dt>stored</dt>
        <dd>{bytesText(usage.bytes)}</dd>
      </div>
      <Tile name="rows">{countText(usage.rows)}</Tile>
      <Tile name="an average day of the last seven">{growth === null ? '–' : bytesText(growth)}</Tile>
      <Tile name="oldest row">{usage.oldest === null ? '–' : dayText(usage.oldest, zone)}</Tile>
      <Tile name="newest row">{usage.newest === null ? '–' : agoText(usage.newest, nowMs())}</Tile>
      <Tile name="kept for">
        <RetentionText />
      </Tile>
      {requests !== null && (
        <Tile name="last nightly erasure">
          <LastRetention requests={requests} />
        </Tile>
      )}
    </dl>
  )
}

function Tile({ children, name }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function RetentionText() {
  const { data, error } = useQuery({ ...retentionQuery, enabled: useMay(retentionOperations.get) })
  if (error !== null) return 'could not be read'
  if (data === undefined) return '…'
  const rules = { metrics: data.metrics_days, logs: data.logs_days, traces: data.traces_days }
  const limited = Object.entries(rules).filter(([, days]) => days !== null)
  if (limited.length === 0) return 'no limit'
  return limited.map(([signal, days]) => `${signal} ${days} d`).join(' · ')
}

function LastRetention({ requests }: { readonly requests: readonly DeletionRequest[] }) {
  const { tenant_id: organisation } = useMe()
  const last = requests.find(({ requested_by }) => requested_by === 'system:retention')
  if (last === undefined) return 'none yet'
  return (
    <Link to="/$organisation/erasures/$requestId" params={{ organisation, requestId: last.request_id }}>
      {last.status}, {agoText(last.created_at, nowMs())}
    </Link>
  )
}
