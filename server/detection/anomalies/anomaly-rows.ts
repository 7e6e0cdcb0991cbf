// How anomalies are stored: as rows of the control plane, compared by exact instants. Instants are stored as
// decimal text, because JavaScript numbers cannot represent SQL integers of 64 bits. The text has 19 digits,
// so lists use indexes of it. Erasures compare 64-bit integers in the database, whatever the text.

import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import { type Feedback, Verdict } from '../../../contract/detection/feedback.ts'
import { formatInstant, type Ns } from '../../../contract/values/instant.ts'
import { laterActorTextIn } from '../../control/actor-columns.ts'
import type { AnomaliesTable, ControlTransaction, Database } from '../../control/database.ts'
import { instantText } from '../../core/clock.ts'
import { type BoundedRange, type TimeRange, without } from '../../core/time-range.ts'
import type { Selection } from '../../telemetry/gate.ts'
import { signals as allSignals, type Signal } from '../../telemetry/schema/tables.ts'
import { type AnomalySource, fateOf } from './anomaly-fate.ts'
import { effectOf, type Tuning } from './feedback.ts'
import type { Finding } from './findings.ts'
import { ofDetectors } from './id-list.ts'
import type { RecordedAnomaly, RunWindow } from './reconcile.ts'
import type { RunSummary } from './run-summary.ts'

/** What storing an anomaly needs to know of the detector that raised it. */
export interface RaisingDetector {
  readonly id: string
  readonly tenantId: string
  readonly definition: { readonly metric_key: string }
  /** A run that read an older revision is not recorded. */
  readonly revision: number
  /** Incremented by each verdict and mute that concerns the detector. */
  readonly tuningRevision: number
}

export interface RunRecord {
  readonly detector: RaisingDetector
  readonly ranAtMs: number
  readonly nextRunAtMs: number
  readonly summary: RunSummary
  /** Null where nothing could be evaluated; then no anomaly changes. */
  readonly found: RunFound | null
  /**
   * Feedback and mutes that the run used, read after `detector`. If they have changed since that, the run is
   * not recorded. Null: not compared.
   */
  readonly tuning: Tuning | null
}

export interface RunFound {
  readonly findings: readonly Finding[]
  readonly window: RunWindow
  readonly signals: readonly Signal[]
  /** The time whose telemetry was read, in order: the window without what was already erased or hidden. */
  readonly read: readonly KnownRange[]
  /** Whether bands were learnt from all of that time; false where somebody configured them. */
  readonly isLearnt: boolean
  /** Whether a part of the range is erased or hidden by now. */
  readonly isUnknown: (range: KnownRange) => boolean
}

interface KnownRange {
  readonly startNs: Ns
  readonly endNs: Ns
}

/**
 * The recorded anomalies that `reconcile` needs for these runs of one organisation, by detector and in any
 * order; at most `idsMax` runs.
 */
export async function recordedAnomalies(
  trx: ControlTransaction,
  runs: readonly RunRecord[],
): Promise<Map<string, RecordedAnomaly[]>> {
  const windows = new Map(
    runs.flatMap(({ detector, found }) =>
      found === null ? [] : [[detector.id, { detector, startNs: comparedFromNs(found) }] as const],
    ),
  )
  const [first] = windows.values()
  if (first === undefined) return new Map()
  const startNs = earliestOf([...windows.values()].map((window) => window.startNs))
  const rows = await trx
    .selectFrom('anomalies')
    .select(['id', 'detector_id', 'group_key', 'metric_key', 'started_at_ns', 'seen_until_ns', 'ended_at_ns'])
    .where(ofDetectors(trx, first.detector.tenantId, [...windows.keys()]))
    .where((where) =>
      where.or([
        where('ended_at_ns', 'is', null),
        ...(startNs === null ? [] : [where(ns('seen_until_ns'), '>', bound(startNs))]),
      ]),
    )
    .execute()
  const recorded = rows.flatMap((row) => {
    const window = windows.get(row.detector_id)
    const isOpen = row.ended_at_ns === null
    const seenUntilNs = BigInt(row.seen_until_ns)
    const isCompared = window?.startNs != null && seenUntilNs > window.startNs
    if (window === undefined || !(isOpen || isCompared)) return []
    // The detector no longer watches this metric, so nothing can be found again: the group key is
    // changed to match no series.
    const isWatched = row.metric_key === window.detector.definition.metric_key
    const groupKey = isWatched ? row.group_key : `${row.metric_key} ${row.group_key}`
    const { detector_id: detectorId, id } = row
    return [{ detectorId, id, groupKey, startedNs: BigInt(row.started_at_ns), seenUntilNs, isOpen }]
  })
  return Map.groupBy(recorded, ({ detectorId }) => detectorId)
}

/**
 * From when on recorded anomalies that have ended may share time with a finding of a run; null where none
 * may. Earlier ones are not read: a detector has a thousand.
 */
export function comparedFromNs({ findings, window }: Pick<RunFound, 'findings' | 'window'>): Ns | null {
  const firstNs = earliestOf(findings.map(({ startedNs }) => startedNs))
  return firstNs === null || firstNs > window.startNs ? firstNs : window.startNs
}

function earliestOf(all: readonly (Ns | null)[]): Ns | null {
  let earliest: Ns | null = null
  for (const each of all) if (each !== null && (earliest === null || each < earliest)) earliest = each
  return earliest
}

/** Digits of the largest instant. */
const instantDigits = 19

/** The text of an instant, whose order is that of instants. Times before 1970 count as 1970. */
export function sortableInstant(instantNs: Ns): string {
  return (instantNs < 0n ? 0n : instantNs).toString().padStart(instantDigits, '0')
}

/** Replaces the reason once the telemetry that it was computed from is erased. */
const redactedReason = 'Its expected band was computed from telemetry that has since been erased'

/** The reason of an anomaly whose band was never recorded (read-time.ts). */
const withheldReason =
  'Its expected band is not recorded, because the telemetry before it was erased in too many places'

/** Values that overwrite everything in an anomaly that comes from before its own time. */
export const redactedColumns = {
  expected: null,
  lower: null,
  upper: null,
  score: 0,
  reason: redactedReason,
  read_from_ns: null,
  unread_ns: null,
  edge_factor: null,
  verdict_note: null,
} as const

/** The same where a run cannot record what it learnt from. */
export const withheldColumns = { ...redactedColumns, reason: withheldReason } as const

/** Whether nothing of an anomaly comes from before its own time. */
function isWithoutPast(reason: string): boolean {
  return reason === redactedReason || reason === withheldReason
}

export const sourceColumns = [
  'signal',
  'started_at_ns',
  'seen_until_ns',
  'read_from_ns',
  'unread_ns',
  'reason',
] as const

/**
 * What a recorded anomaly is derived from. One without the start of its window may have read everything
 * before it. What it read is parsed when it is asked for, because most callers need only its own time.
 */
export function sourceOf(
  row: Pick<Selectable<AnomaliesTable>, (typeof sourceColumns)[number]>,
): AnomalySource {
  const [startedNs, seenUntilNs] = [BigInt(row.started_at_ns), BigInt(row.seen_until_ns)]
  let read: readonly TimeRange[] | undefined
  return {
    signals: signalsOf(row),
    startedNs,
    seenUntilNs,
    get read() {
      read ??= isWithoutPast(row.reason) ? [] : readOf(row, seenUntilNs)
      return read
    },
  }
}

function readOf(
  { read_from_ns, unread_ns }: Pick<Selectable<AnomaliesTable>, 'read_from_ns' | 'unread_ns'>,
  endNs: Ns,
): TimeRange[] {
  const holes = unread_ns === null ? [] : holesOf(unread_ns)
  return without({ startNs: read_from_ns === null ? null : BigInt(read_from_ns), endNs }, holes)
}

/** Parses `unread_ns`. */
export function holesOf(unread: string): BoundedRange[] {
  const pairs: [string, string][] = JSON.parse(unread)
  return pairs.map(([from, to]) => ({ startNs: BigInt(from), endNs: BigInt(to) }))
}

function signalsOf({ signal }: { readonly signal: string }): Signal[] {
  return allSignals.filter((known) => signal.split(',').includes(known))
}

/** Converts a row to the wire form. A band that was learnt from hidden telemetry is hidden with it. */
export function toAnomaly(
  stored: Selectable<AnomaliesTable>,
  hidden: readonly Pick<Selection, 'signals' | 'range'>[],
): Anomaly {
  const source = sourceOf(stored)
  const isLearntFromHidden = hidden.some((part) => fateOf(source, { ...part, held: [] }) === 'redacted')
  const row = isLearntFromHidden ? { ...stored, ...redactedColumns } : stored
  return {
    id: row.id,
    detector_id: row.detector_id,
    metric_key: row.metric_key,
    group: JSON.parse(row.group_key),
    signals: signalsOf(row),
    started_at: instantOf(row.started_at_ns),
    ended_at: row.ended_at_ns === null ? null : instantOf(row.ended_at_ns),
    seen_until: instantOf(row.seen_until_ns),
    peak_at: instantOf(row.peak_at_ns),
    value: row.value,
    expected: row.expected,
    lower: row.lower,
    upper: row.upper,
    score: row.score,
    reason: row.reason,
    muted: row.muted === 1,
    feedback: feedbackOf(row),
    created_at: instantText(row.created_at_ms),
    updated_at: instantText(row.updated_at_ms),
  }
}

function feedbackOf(row: Selectable<AnomaliesTable>): Feedback | null {
  if (row.verdict === null) return null
  const verdict = Verdict.parse(row.verdict)
  const { expected, score, value } = row
  return {
    verdict,
    note: row.verdict_note,
    given_by: laterActorTextIn('verdict_by', row) ?? '',
    given_at: instantText(row.verdict_at_ms ?? 0),
    effect: effectOf({ verdict, value, expected, score, edgeFactor: row.edge_factor ?? 1 }),
  }
}

function instantOf(text: string): string {
  return formatInstant(BigInt(text))
}

type AnomalyColumns = ExpressionBuilder<Database, 'anomalies'>

/**
 * Whether an anomaly has one of the signals. `signal` is a list, such as `traces` or `metrics,logs,traces`.
 */
export function isOfSignals(where: AnomalyColumns, signals: readonly Signal[]) {
  return where.or(signals.map((signal) => where('signal', 'like', `%${signal}%`)))
}

/** Whether the anomaly is about an instant of the range. */
export function isTouched(where: AnomalyColumns, signals: readonly Signal[], range: TimeRange) {
  const conditions = [isOfSignals(where, signals)]
  if (range.startNs !== null) conditions.push(where(ns('seen_until_ns'), '>', bound(range.startNs)))
  if (range.endNs !== null) conditions.push(where(ns('started_at_ns'), '<', bound(range.endNs)))
  return where.and(conditions)
}

/** A column of nanoseconds, which is text, as a 64-bit integer. Null counts as `whenNull`. */
export function ns(column: 'started_at_ns' | 'seen_until_ns' | 'read_from_ns', whenNull: Ns = 0n) {
  return sql<bigint>`cast(coalesce(${sql.ref(column)}, ${whenNull.toString()}) as bigint)`
}

export function bound(instantNs: Ns) {
  return sql<bigint>`cast(${instantNs.toString()} as bigint)`
}
