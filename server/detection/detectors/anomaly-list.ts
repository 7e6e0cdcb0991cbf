// Lists of anomalies in pages, latest start first, without those that are hidden. An index has this order, by
// organisation and by detector. That of the organisation has everything that filters compare, so a row that a
// filter leaves out is not read. Still an organisation may have a million of them, and the database answers
// on the event loop: what may pass over many is read stretch by stretch, with turns in between.

import type { ExpressionBuilder, Selectable, SelectQueryBuilder } from 'kysely'
import type { Anomaly, AnomalyListQuery } from '../../../contract/detection/detectors.ts'
import type { Ns } from '../../../contract/values/instant.ts'
import type { AnomaliesTable, Control, Database } from '../../control/database.ts'
import { mapInTurns, Pace } from '../../core/turns/pace.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import { isTouched, sortableInstant, toAnomaly } from '../anomalies/anomaly-rows.ts'
import { ofDetector } from '../anomalies/id-list.ts'

export interface AnomalyPage {
  readonly limit: number
  readonly filter: Pick<AnomalyListQuery, 'detector_id' | 'open' | 'muted'> & {
    readonly range_start?: Ns | undefined
    readonly range_end?: Ns | undefined
  }
  /** The last anomaly of the page before. */
  readonly before: { readonly startedNs: Ns; readonly id: string } | null
  /** Waits for turns of the caller's organisation; absent: for rounds of the loop. */
  readonly pace?: Pace
}

/** A place in the order of lists. */
interface Position {
  readonly started_at_ns: string
  readonly id: string
}

/**
 * Anomalies that are looked at at once: up to two milliseconds where twenty selections are hidden, which are
 * compared with each row; a quarter of a millisecond otherwise.
 */
const stretchAnomalies = 2_500

/** The caller repeats it where something was hidden before it resolves. */
export async function readAnomalyPage(
  control: Control,
  gate: TelemetryGate,
  tenantId: string,
  { before, filter, limit, pace = new Pace() }: AnomalyPage,
): Promise<Anomaly[]> {
  const rows: Selectable<AnomaliesTable>[] = []
  let from: Position | null =
    before === null ? null : { started_at_ns: sortableInstant(before.startedNs), id: before.id }
  for (;;) {
    const ordered = orderedAfter(control, tenantId, filter, from)
    const isSearch = isNarrowed(filter) || gate.hidden(tenantId).length > 0
    const last: Position | undefined = isSearch ? await lastOfStretch(ordered) : undefined
    let part = visibleOf(matching(ordered.selectAll(), filter), gate, tenantId)
    if (last !== undefined) part = part.where((where) => where(place(where), '>=', placeOf(where, last)))
    rows.push(...(await part.limit(limit - rows.length).execute()))
    if (last === undefined || rows.length === limit) break
    from = last
    await pace.turn()
  }
  return mapInTurns(rows, pace, (row) => toAnomaly(row, gate.hidden(tenantId)))
}

type AnomalyQuery<Row> = SelectQueryBuilder<Database, 'anomalies', Row>

/** Anomalies are derived from telemetry, so hiding the telemetry hides them too. */
export function visibleOf<Row>(
  query: AnomalyQuery<Row>,
  gate: TelemetryGate,
  tenantId: string,
): AnomalyQuery<Row> {
  let visible = query
  for (const { signals, range } of gate.hidden(tenantId)) {
    visible = visible.where((where) => where.not(isTouched(where, signals, range)))
  }
  return visible
}

/** All that a list could have, from a place in its order on. */
function orderedAfter(
  control: Control,
  tenantId: string,
  { detector_id: detectorId, range_end: endNs }: AnomalyPage['filter'],
  from: Position | null,
) {
  const all = control.selectFrom('anomalies')
  let query =
    detectorId === undefined
      ? all.where('tenant_id', '=', tenantId)
      : all.where(ofDetector(control, tenantId, detectorId))
  // One condition, because the index is entered by one: of two it may be the one that ends a page far above.
  const end = endNs === undefined ? null : { started_at_ns: sortableInstant(endNs), id: '' }
  const first = from !== null && (end === null || from.started_at_ns < end.started_at_ns) ? from : end
  if (first !== null) query = query.where((where) => where(place(where), '<', placeOf(where, first)))
  return query.orderBy('started_at_ns', 'desc').orderBy('id', 'desc')
}

/** The place of the last anomaly of the next stretch; undefined where fewer are left. */
function lastOfStretch(ordered: ReturnType<typeof orderedAfter>): Promise<Position | undefined> {
  return ordered
    .select(['started_at_ns', 'id'])
    .offset(stretchAnomalies - 1)
    .limit(1)
    .executeTakeFirst()
}

/** Whether anomalies may have to be passed over that do not match. */
function isNarrowed({ muted, open, range_start }: AnomalyPage['filter']): boolean {
  return [muted, open, range_start].some((condition) => condition !== undefined)
}

function matching<Row>(
  query: AnomalyQuery<Row>,
  { muted, open, range_start: startNs }: AnomalyPage['filter'],
): AnomalyQuery<Row> {
  let matched = query
  if (open !== undefined) matched = matched.where('ended_at_ns', open === 'true' ? 'is' : 'is not', null)
  if (muted !== undefined) matched = matched.where('muted', '=', muted === 'true' ? 1 : 0)
  if (startNs !== undefined) matched = matched.where('seen_until_ns', '>', sortableInstant(startNs))
  return matched
}

type Columns = ExpressionBuilder<Database, 'anomalies'>

const place = (where: Columns) => where.refTuple('started_at_ns', 'id')
const placeOf = (where: Columns, at: Position) => where.tuple(at.started_at_ns, at.id)
