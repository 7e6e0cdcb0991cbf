// How many anomalies of a detector are kept. They live as long as the telemetry that they are about, so
// without retention they would only ever become more. Beyond a number the oldest leave when a run records new
// ones: those that have ended, without a verdict, which still moves an edge, and without a legal hold. A
// finding that would leave at once is not recorded.

import type { ControlTransaction } from '../../control/database.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { isTouched, type RaisingDetector, sortableInstant } from './anomaly-rows.ts'
import type { Finding } from './findings.ts'
import { ofDetector } from './id-list.ts'

/** Far more than anybody reads; a thousand detectors then have a million, some 600 MB. */
export const keptMax = 1000

/** Anomalies that leave at one run, so that a run takes no longer where an earlier version kept more. */
const leavingMax = 500

/** The findings that are to be recorded as new anomalies: all that are open, and of the others the newest. */
export async function keepableOf(
  trx: ControlTransaction,
  detector: RaisingDetector,
  findings: readonly Finding[],
): Promise<readonly Finding[]> {
  if (findings.every(({ isOpen }) => isOpen)) return findings
  const oldest = (await nthNewest(trx, detector, keptMax))?.started_at_ns ?? ''
  const closed = findings.filter(({ isOpen, startedNs }) => !isOpen && sortableInstant(startedNs) > oldest)
  const newest = closed.toSorted((a, b) => (a.startedNs < b.startedNs ? 1 : -1)).slice(0, keptMax)
  const kept = new Set(newest)
  return findings.filter((finding) => finding.isOpen || kept.has(finding))
}

/** Removes the oldest anomalies of a detector that may leave, at most {@link leavingMax}. */
export async function forgetOldest(
  trx: ControlTransaction,
  detector: RaisingDetector,
  holds: readonly ActiveHold[],
): Promise<void> {
  const first = await nthNewest(trx, detector, keptMax + 1)
  if (first === undefined) return
  const leaving = await trx
    .selectFrom('anomalies')
    .select('id')
    .where(ofDetector(trx, detector.tenantId, detector.id))
    .where((where) =>
      where(where.refTuple('started_at_ns', 'id'), '<=', where.tuple(first.started_at_ns, first.id)),
    )
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
    .orderBy('started_at_ns')
    .orderBy('id')
    .limit(leavingMax)
    .execute()
  if (leaving.length === 0) return
  await trx
    .deleteFrom('anomalies')
    .where('tenant_id', '=', detector.tenantId)
    .where(
      'id',
      'in',
      leaving.map(({ id }) => id),
    )
    .execute()
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
