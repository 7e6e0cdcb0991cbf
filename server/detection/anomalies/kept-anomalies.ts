// How many anomalies of a detector are kept. They live as long as the telemetry that they are about, so
// without retention they would only ever become more. Beyond a number the oldest leave when a run records new
// ones: those that have ended, without a verdict, which still moves an edge, and without a legal hold. A
// finding that would leave at once is not recorded.

import type { ControlTransaction } from '../../control/database.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { reportedMax } from '../alarms/newest-episodes.ts'
import { isTouched, type RaisingDetector, sortableInstant } from './anomaly-rows.ts'
import type { Finding } from './findings.ts'
import { ofDetector } from './id-list.ts'

/**
 * As many as a run reports, and far more than anybody reads; a thousand detectors then have a million, some
 * 600 MB.
 */
export const keptMax = reportedMax

/**
 * Anomalies beyond the number that a run looks at, from either end: the newest of them are those that a run
 * has just replaced, and the oldest may have been kept by a hold that is released by now. Not more, because
 * each is compared with every hold on the event loop, and a hold can keep any number.
 */
const lookedAtMax = 500

/**
 * The findings that are to be recorded as new anomalies: of those that have ended the newest, latest start
 * first; then all that are open.
 */
export async function keepableOf(
  trx: ControlTransaction,
  detector: RaisingDetector,
  findings: readonly Finding[],
): Promise<readonly Finding[]> {
  if (findings.every(({ isOpen }) => isOpen)) return findings
  const oldest = (await nthNewest(trx, detector, keptMax))?.started_at_ns ?? ''
  const closed = findings.filter(({ isOpen, startedNs }) => !isOpen && sortableInstant(startedNs) > oldest)
  const newest = closed.toSorted((a, b) => (a.startedNs < b.startedNs ? 1 : -1)).slice(0, keptMax)
  return [...newest, ...findings.filter(({ isOpen }) => isOpen)]
}

/**
 * Removes anomalies beyond the number that may leave, at most {@link lookedAtMax} from either end. Returns
 * how many left.
 */
export async function forgetOldest(
  trx: ControlTransaction,
  detector: RaisingDetector,
  holds: readonly ActiveHold[],
): Promise<number> {
  const first = await nthNewest(trx, detector, keptMax + 1)
  if (first === undefined) return 0
  const leaving = new Set<string>()
  for (const end of ['desc', 'asc'] as const)
    for (const id of await leavingAt(trx, detector, { first, holds, end })) leaving.add(id)
  if (leaving.size === 0) return 0
  await trx
    .deleteFrom('anomalies')
    .where('tenant_id', '=', detector.tenantId)
    .where('id', 'in', [...leaving])
    .execute()
  return leaving.size
}

interface Position {
  readonly started_at_ns: string
  readonly id: string
}

/** Which of the newest (`desc`) or the oldest (`asc`) anomalies from `first` on may leave. */
async function leavingAt(
  trx: ControlTransaction,
  { id: detectorId, tenantId }: RaisingDetector,
  {
    end,
    first,
    holds,
  }: { readonly first: Position; readonly holds: readonly ActiveHold[]; readonly end: 'asc' | 'desc' },
): Promise<string[]> {
  const lookedAt = trx
    .selectFrom('anomalies')
    .selectAll()
    .where(ofDetector(trx, tenantId, detectorId))
    .where((where) =>
      where(where.refTuple('started_at_ns', 'id'), '<=', where.tuple(first.started_at_ns, first.id)),
    )
    .orderBy('started_at_ns', end)
    .orderBy('id', end)
    .limit(lookedAtMax)
  const leaving = await trx
    .selectFrom(lookedAt.as('anomalies'))
    .select('id')
    .where('ended_at_ns', 'is not', null)
    .where('verdict', 'is', null)
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('held_anomaly_versions')
            .select('version')
            .whereRef('held_anomaly_versions.anomaly_id', '=', 'anomalies.id'),
        ),
      ),
    )
    .where((where) =>
      where.not(where.or(holds.map(({ signals, range }) => isTouched(where, signals, range)))),
    )
    .execute()
  return leaving.map(({ id }) => id)
}

/** Counts from 1. */
function nthNewest(trx: ControlTransaction, { id, tenantId }: RaisingDetector, nth: number) {
  return trx
    .selectFrom('anomalies')
    .select(['started_at_ns', 'id'])
    .where(ofDetector(trx, tenantId, id))
    .orderBy('started_at_ns', 'desc')
    .orderBy('id', 'desc')
    .offset(nth - 1)
    .limit(1)
    .executeTakeFirst()
}
