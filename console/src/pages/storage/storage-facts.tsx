// The facts over the chart: how much and how it grows; below, the oldest row beside the retention rule, and
// what the last nightly erasure did. They are measured, and not derived from a rule.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { deletionOperations } from '../../../../contract/operations/deletions.ts'
import { retentionOperations } from '../../../../contract/operations/governance.ts'
import { useMay, useMe } from '../../api/session.ts'
import { nowMs } from '../../clock.ts'
import { agoText, dayText } from '../../ui/instants.ts'
import { useZone } from '../../ui/preferences.ts'
import { bytesText, countText } from '../../ui/units.ts'
import { growthText, type Usage } from './usage-days.ts'

export function StorageFacts({ usage }: { readonly usage: Usage }) {
  const zone = useZone()
  const { bytes, last_7_days, newest, oldest, rows } = usage
  return (
    <div className="tile-rows">
      <dl className="tiles">
        <div className="tile-main">
          <dt>stored</dt>
          <dd>{bytesText(bytes)}</dd>
        </div>
        <Tile name="rows">{countText(rows)}</Tile>
        <Tile name="a day, of the last seven">
          {bytesText(last_7_days.bytes / 7)} <span className="muted">{growthOf(usage)}</span>
        </Tile>
        <Tile name="newest row">{newest === null ? '–' : agoText(newest, nowMs())}</Tile>
      </dl>
      <dl className="tiles">
        <Tile name="oldest row">{oldest === null ? '–' : dayText(oldest, zone)}</Tile>
        <Tile name="kept for">
          {keptText(usage)} <RetentionLink />
        </Tile>
        <Tile name="last erasure by retention">
          <LastRetention usage={usage} />
        </Tile>
      </dl>
    </div>
  )
}

/** Beside the amount of a day, where a single `new` would say nothing. */
function growthOf(usage: Usage): string {
  return usage.previous_7_days.bytes === 0 ? '' : `${growthText(usage)} in a week`
}

function Tile({ children, name }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function keptText({ signals }: Usage): string {
  const limited = signals.filter(({ retention }) => retention.days !== null)
  if (limited.length === 0) return 'no limit'
  return limited.map(({ retention, signal }) => `${signal} ${retention.days} d`).join(' · ')
}

/** To a reader who may only read the rule too. */
function RetentionLink() {
  const { tenant_id: organisation } = useMe()
  const may = useMay(retentionOperations.patch)
  return (
    <Link to="/$organisation/retention" params={{ organisation }} className="tile-link">
      {may ? 'change' : 'rules'}
    </Link>
  )
}

/** The newest one; it says so where it is not completed. */
function LastRetention({ usage: { signals } }: { readonly usage: Usage }) {
  const { tenant_id: organisation } = useMe()
  const may = useMay(deletionOperations.get)
  const [last] = signals
    .flatMap(({ retention }) => retention.last_erasure ?? [])
    .sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at))
  if (last === undefined) return 'none yet'
  const text = `${last.status}, ${agoText(last.created_at, nowMs())}`
  if (!may) return text
  return (
    <Link to="/$organisation/erasures/$requestId" params={{ organisation, requestId: last.request_id }}>
      {text}
    </Link>
  )
}
