// Reads from the engine what a deletion would leave of its signals: whether a row of each is selected, and
// the time of one that stays. Reads nothing for another organisation, and ends each search at its first row.
// It is a read of the service itself: no reader of an organisation may delay the hiding that waits for it.

import { elapsedMs } from '../../core/clock.ts'
import type { TimeRange } from '../../core/time-range.ts'
import { FairPool } from '../../core/turns/fair-pool.ts'
import {
  type StatementLimits,
  type TelemetryEngine,
  type TenantPlace,
  usualLimits,
} from '../../telemetry/engine.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import { type Signal, type TableSpec, tablesOf } from '../../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, uint } from '../../telemetry/sql.ts'
import type { ReadRemaining, Remaining } from '../governance/remaining.ts'
import { selectedIn } from './planner.ts'

/** Looks that may wait for one organisation: more than its people may have open deletions. */
export const waitingLooksMax = 64

/** One at a time of all organisations, so that the other session of the service is free for erasures. */
const one = { weight: 1, atOnceByOwner: 1, atOnce: 1, waitingByOwner: waitingLooksMax }

/**
 * So an organisation waits no longer for the look of another one. A look that finds rows takes milliseconds;
 * this much is needed only where it finds none among a billion.
 */
const lookLimits: StatementLimits = { ...usualLimits, maxSeconds: 10 }

/**
 * Returns a function that looks as {@link readRemaining} does while clients wait: organisations take turns.
 * It throws `too_many_requests` where {@link waitingLooksMax} looks of the organisation wait, and
 * `query_too_expensive` after 10 s.
 */
export function remainingInTurns(engine: TelemetryEngine): ReadRemaining {
  const pool = new FairPool<null>([null], {
    kinds: { asked: one, background: one },
    waiting: Number.POSITIVE_INFINITY,
    nowMs: elapsedMs,
  })
  return (place, selection, beside) =>
    pool.lend({ owner: place.tenantId, kind: 'asked', signal: beside.signal }, () =>
      readRemaining(engine, place, selection, beside, lookLimits),
    )
}

/**
 * Looks for a row of each signal that is selected and for one before `untilNs` that stays: neither selected
 * nor in one of the parts `apart`. Each search ends at its first row; where there is none it reads one column
 * of the organisation's rows, as a preview does.
 */
export async function readRemaining(
  engine: TelemetryEngine,
  place: TenantPlace,
  selection: Parameters<ReadRemaining>[1],
  { apart, untilNs }: Parameters<ReadRemaining>[2],
  limits?: StatementLimits,
): Promise<Remaining> {
  const before: TimeRange = { startNs: null, endNs: untilNs }
  const searches = tablesOf(selection.signals).flatMap((table) => [
    firstIn(table, place, 'erased', selection.range, []),
    firstIn(table, place, 'left', before, [selection, ...apart]),
  ])
  const found = await engine.select<{ signal: Signal; part: 'erased' | 'left'; ns: string }>(
    join(searches, ' UNION ALL '),
    limits,
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
