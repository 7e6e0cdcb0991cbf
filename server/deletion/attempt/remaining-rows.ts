// Reads from the engine what a deletion would leave of its signals: whether a row of each is selected, and
// the time of one that stays. Reads nothing for another organisation, and ends each search at its first row.

import type { Ns } from '../../../contract/values/instant.ts'
import type { TimeRange } from '../../core/time-range.ts'
import { type TelemetryEngine, type TenantPlace, usualLimits } from '../../telemetry/engine.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import { type Signal, type TableSpec, tablesOf } from '../../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, uint } from '../../telemetry/sql.ts'
import type { Remaining } from '../governance/remaining.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { selectedIn } from './planner.ts'

/**
 * Looks for a row of each signal that is selected and for one before `untilNs` that stays: neither selected
 * nor in one of the parts `apart`. Each search ends at its first row; where there is none it reads one column
 * of the organisation's rows, as a preview does.
 */
export async function readRemaining(
  engine: TelemetryEngine,
  place: TenantPlace,
  selection: Pick<DeletionSelection, 'range' | 'signals'>,
  { apart, untilNs }: { readonly apart: readonly HeldPart[]; readonly untilNs: Ns },
): Promise<Remaining> {
  const before: TimeRange = { startNs: null, endNs: untilNs }
  const searches = tablesOf(selection.signals).flatMap((table) => [
    firstIn(table, place, 'erased', selection.range, []),
    firstIn(table, place, 'left', before, [selection, ...apart]),
  ])
  const share = { tenantId: place.tenantId, kind: 'asked' } as const
  const found = await engine.select<{ signal: Signal; part: 'erased' | 'left'; ns: string }>(
    join(searches, ' UNION ALL '),
    usualLimits,
    share,
  )
  const of = (part: 'erased' | 'left') => found.filter((row) => row.part === part)
  return {
    erased: new Set(of('erased').map(({ signal }) => signal)),
    left: new Map(of('left').map(({ ns, signal }) => [signal, BigInt(ns)])),
  }
}

function firstIn(
  table: TableSpec,
  { placement, tenantId }: TenantPlace,
  part: 'erased' | 'left',
  range: TimeRange,
  held: readonly HeldPart[],
): Sql {
  const condition = selectedIn(table, tenantId, { scope: 'range', signals: [table.signal], range, held })
  return sql`(SELECT ${table.signal} AS signal, ${part} AS part, toString(toUnixTimestamp64Nano(${raw(table.timeColumn)})) AS ns
FROM ${raw(table.name)} WHERE Placement = ${uint(placement)} AND ${condition} LIMIT 1)`
}
