// How stored mutes are read. The database answers on the event loop, and so does the parsing of their rules:
// no read parses more than a few rows before other work runs.

import { type Selectable, sql } from 'kysely'
import { Weekly } from '../../../contract/detection/feedback.ts'
import { type Ns, nsPerMs } from '../../../contract/values/instant.ts'
import type { Control, DetectorMutesTable } from '../../control/database.ts'
import type { Pace } from '../../core/turns/pace.ts'
import { bound } from './anomaly-rows.ts'
import type { MuteRule } from './mute.ts'

/** Mutes that are read at once. Some of before groups had a limit have 60 kB. */
const mutesAtOnce = 25

interface MuteSearch {
  readonly limit: number
  readonly beforeId: string | null
  /** Only mutes of this detector and of all; any where undefined. */
  readonly detectorId: string | undefined
  /** Only mutes that end later or never. */
  readonly endsAfterNs: Ns
}

/** All mutes that end late enough. */
export const everyMute = { limit: Number.POSITIVE_INFINITY, beforeId: null, detectorId: undefined }

/** Yields mutes of an organisation, newest first. Other work of the event loop runs in between. */
export async function* muteRows(
  control: Control,
  tenantId: string,
  { beforeId, detectorId, endsAfterNs, limit }: MuteSearch,
  pace: Pace,
): AsyncGenerator<Selectable<DetectorMutesTable>> {
  const endNs = sql<bigint>`cast(${sql.ref('until_ns')} as bigint)`
  let [left, lastId] = [limit, beforeId]
  while (left > 0) {
    const wanted = Math.min(left, mutesAtOnce)
    let query = control
      .selectFrom('detector_mutes')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where((where) => where.or([where('until_ns', 'is', null), where(endNs, '>', bound(endsAfterNs))]))
      .orderBy('id', 'desc')
      .limit(wanted)
    if (lastId !== null) query = query.where('id', '<', lastId)
    if (detectorId !== undefined) {
      query = query.where((where) =>
        where.or([where('detector_id', 'is', null), where('detector_id', '=', detectorId)]),
      )
    }
    const rows = await query.execute()
    for (const row of rows) {
      if (pace.isOver()) await pace.turn()
      lastId = row.id
      yield row
    }
    if (rows.length < wanted) return
    left -= rows.length
  }
}

/** The rule of a stored mute. */
export function ruleOf(row: Selectable<DetectorMutesTable>): MuteRule {
  return {
    id: row.id,
    group: row.group_key === null ? null : JSON.parse(row.group_key),
    fromNs: row.from_ns === null ? BigInt(row.created_at_ms) * nsPerMs : BigInt(row.from_ns),
    untilNs: row.until_ns === null ? null : BigInt(row.until_ns),
    weekly: row.weekly === null ? null : Weekly.parse(JSON.parse(row.weekly)),
  }
}
