// What retention keeps of each signal, beside the last deletion that it has requested: the rule alone does
// not say whether it was carried out.

import { sql } from 'kysely'
import type { DeletionStatus } from '../../../contract/deletion/requests.ts'
import { formatInstant } from '../../../contract/values/instant.ts'
import type { Control } from '../../control/database.ts'
import { instantText } from '../../core/clock.ts'
import { type Signal, signals } from '../../telemetry/schema/tables.ts'
import { type StoredDeletion, toStored } from '../requests/request.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { cutOffMs } from './retention.ts'
import { readRule } from './store.ts'

interface Kept {
  /** Whole UTC days; null without a limit. */
  readonly days: number | null
  readonly erases_before: string | null
  readonly last_erasure: {
    readonly request_id: string
    readonly status: DeletionStatus
    readonly range_end: string | null
    readonly created_at: string
    readonly finished_at: string | null
  } | null
}

/** A day has a few requests: one for each range between holds. */
const requestsRead = 50

/** Returns this for every signal, as of `nowMs`. */
export async function readKept(
  control: Control,
  tenantId: string,
  nowMs: number,
): Promise<Readonly<Record<Signal, Kept>>> {
  const rule = await readRule(control, tenantId)
  const rows = await control
    .selectFrom('deletion_requests')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    // Not bound, so that the index of these requests serves: an organisation may have many others.
    .where('requested_by_kind', '=', sql.lit(retentionRequester.kind))
    .where('requested_by_id', '=', retentionRequester.id)
    .orderBy('seq', 'desc')
    .limit(requestsRead)
    .execute()
  const requests = rows.map(toStored)
  const keptOf = (signal: Signal): Kept => {
    const days = rule.get(signal) ?? null
    const last = requests.find((request) => request.signals.includes(signal))
    return {
      days,
      erases_before: days === null ? null : instantText(cutOffMs(nowMs, days)),
      last_erasure: last === undefined ? null : erasureOf(last),
    }
  }
  return Object.fromEntries(signals.map((signal) => [signal, keptOf(signal)])) as Record<Signal, Kept>
}

function erasureOf({ createdAtMs, finishedAtMs, range, requestId, status }: StoredDeletion) {
  return {
    request_id: requestId,
    status,
    range_end: range.endNs === null ? null : formatInstant(range.endNs),
    created_at: instantText(createdAtMs),
    finished_at: finishedAtMs === null ? null : instantText(finishedAtMs),
  }
}
