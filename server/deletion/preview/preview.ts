// What a deletion would erase, counted for somebody who is about to ask for it, and held against the moment they
// do: a deletion that names its preview is refused where the selection has become another one meanwhile. A preview
// changes nothing. At rest it is counts by signal only, so no erasure has to visit it; names of services are
// answered once and kept nowhere.
//
// Everything selected is counted, also what a legal hold defers: the deletion will erase it in the end. Only the
// estimate of work leaves it out.

import type { z } from 'zod'
import type { DeletionPreview } from '../../../contract/deletion.ts'
import { formatInstant, nsPerMs } from '../../../contract/instant.ts'
import { hashOf } from '../../audit/chain.ts'
import type { Control } from '../../control/database.ts'
import { AppError, InvalidInput, problem } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import type { TimeRange } from '../../core/time-range.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import type { TelemetryEngine } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import type { WeighRows } from '../../telemetry/row-weights.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { ApprovalCause } from '../governance/policy.ts'
import { type DeletionSelection, holdsWithin, selectionText } from '../requests/selection.ts'
import { countRows, countSelection, type RowCounts, type SelectionCount } from './selection-count.ts'

type Preview = z.input<typeof DeletionPreview>

export interface PreviewedBackup {
  readonly backup_id: string
  /** Null while it is still to be taken. */
  readonly taken_at_ms: number | null
  readonly expires_at_ms: number
}

/** Who asks, where their telemetry is, and whether somebody still waits for the answer. */
type PreviewAsker = Pick<Caller, 'tenantId' | 'placement' | 'requester' | 'signal'>

export interface PreviewsDeps {
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly weighRows: WeighRows
  readonly control: Control
  readonly clock: Clock
  readonly derivedStores: readonly DerivedStore[]
  readonly activeHolds: (tenantId: string) => Promise<readonly ActiveHold[]>
  /** Every backup that may hold a copy of what is there now. */
  readonly knownBackups: () => Promise<readonly PreviewedBackup[]>
  /** Why the requester would need a second person for it; null where they would not. */
  readonly approvalCause: (asker: PreviewAsker, selection: DeletionSelection) => Promise<ApprovalCause | null>
}

/** Long enough to read and to ask a colleague; short enough that it is still about what is there. */
const lifetimeMs = 15 * 60_000

/** Telemetry keeps flowing while a person reads: so many rows, or one in a hundred, are no other selection. */
const toleranceRowsMin = 1000
const toleranceShare = 0.01

export class Previews {
  readonly #deps: PreviewsDeps

  constructor(deps: PreviewsDeps) {
    this.#deps = deps
  }

  /** Counts the selection and remembers the counts. Removes what has expired, of every organisation. */
  async create(place: PreviewAsker, selection: DeletionSelection): Promise<Preview> {
    const { activeHolds, approvalCause, clock, control, derivedStores, knownBackups, weighRows } = this.#deps
    const { tenantId } = place
    const held = holdsWithin(selection, await activeHolds(tenantId))
    const weights = await weighRows(place)
    const counted = await countSelection(this.#reader(place), { ...selection, held }, weights)
    const derived = { ...nothingDerived }
    for (const store of derivedStores) Object.assign(derived, await store.preview(tenantId, selection))
    const rowCounts: RowCounts = Object.fromEntries(counted.signals.map(({ signal, rows }) => [signal, rows]))
    const cause = await approvalCause(place, selection)
    const nowMs = clock.nowMs()
    const previewId = newId('prv', nowMs)
    await control.deleteFrom('deletion_previews').where('expires_at_ms', '<=', nowMs).execute()
    await control
      .insertInto('deletion_previews')
      .values({
        preview_id: previewId,
        tenant_id: tenantId,
        selection_hash: hashOf(selectionText(selection)),
        row_counts: JSON.stringify(rowCounts),
        created_at_ms: nowMs,
        expires_at_ms: nowMs + lifetimeMs,
      })
      .execute()
    return {
      id: previewId,
      preview_id: previewId,
      created_at: instantText(nowMs),
      expires_at: instantText(nowMs + lifetimeMs),
      scope: selection.scope,
      ...boundsOf(selection.range),
      ...countsOf(counted),
      derived,
      held: held.map(({ holdId, signals, range }) => ({
        hold_id: holdId,
        signals: [...signals],
        ...boundsOf(range),
      })),
      ...backupsOf(await knownBackups()),
      needs_approval: cause !== null,
      warnings: [
        ...warningsAbout(selection, nowMs),
        ...(cause === 'ranges_together' ? [rangesTogether] : []),
      ],
      tolerance_rows: toleranceOf(totalOf(rowCounts)),
    }
  }

  /**
   * Passes where the preview is of this selection, has not expired, and the selection holds what it held, within
   * the tolerance. Throws InvalidInput where it is of another selection; otherwise `preview_stale` with a new
   * preview, alike for an expired, an unknown and another organisation's.
   */
  async check(place: PreviewAsker, previewId: string, selection: DeletionSelection): Promise<void> {
    const { clock, control } = this.#deps
    const nowMs = clock.nowMs()
    const row = await control
      .selectFrom('deletion_previews')
      .selectAll()
      .where('preview_id', '=', previewId)
      .where('tenant_id', '=', place.tenantId)
      .executeTakeFirst()
    // One from the future was made before the clock was set back: nobody knows how old it is.
    if (row === undefined || row.expires_at_ms <= nowMs || row.created_at_ms > nowMs) {
      throw await this.#stale(place, selection, 'The preview has expired or is unknown')
    }
    if (row.selection_hash !== hashOf(selectionText(selection))) throw ofAnotherSelection(previewId)
    const before: RowCounts = JSON.parse(row.row_counts)
    const now = await countRows(this.#reader(place), selection)
    if (differenceOf(before, now) <= toleranceOf(totalOf(before))) return
    const moved = `The selection held ${totalOf(before)} rows when it was previewed and holds ${totalOf(now)} now`
    throw await this.#stale(place, selection, moved)
  }

  async #stale(place: PreviewAsker, selection: DeletionSelection, what: string): Promise<AppError> {
    const preview = await this.create(place, selection)
    return new AppError('preview_stale', {
      sentence: `${what}; look at the new preview and confirm that.`,
      facts: { preview },
    })
  }

  #reader({
    placement,
    signal,
    tenantId,
  }: Pick<PreviewAsker, 'placement' | 'signal' | 'tenantId'>): TenantReader {
    return new TenantReader(this.#deps.engine, { tenantId, placement }, this.#deps.gate, { signal })
  }
}

/** What a preview says where no store counts anything. */
const nothingDerived: Preview['derived'] = { anomalies: 0, anomalies_learned_from: 0 }

/** A sender's clock may be ahead by so much. */
const clockSkewMs = 60_000

/** A year too many in a bound is easily typed, and nothing else would say so. */
export function warningsAbout({ range }: DeletionSelection, nowMs: number): Preview['warnings'] {
  const { endNs } = range
  if (endNs === null || endNs <= BigInt(nowMs + clockSkewMs) * nsPerMs) return []
  const message = `range_end is ${formatInstant(endNs)}, which has not come yet: telemetry for that time which arrives before the deletion has completed is refused or erased too, and what arrives afterwards is kept.`
  return [{ code: 'future_end', message }]
}

/** A short range that needs approval is otherwise a riddle. */
const rangesTogether: Preview['warnings'][number] = {
  code: 'ranges_together',
  message:
    'Together with what you have erased alone in the last 31 days this covers more than 31 days, so a second owner or admin must approve it.',
}

export function toleranceOf(rows: number): number {
  return Math.max(toleranceRowsMin, Math.floor(rows * toleranceShare))
}

/** Rows that came and went, signal by signal: as many new logs as lost spans are not the same selection. */
export function differenceOf(before: RowCounts, now: RowCounts): number {
  const signals = new Set([...Object.keys(before), ...Object.keys(now)] as Signal[])
  return [...signals].reduce((sum, signal) => sum + Math.abs((now[signal] ?? 0) - (before[signal] ?? 0)), 0)
}

function totalOf(counts: RowCounts): number {
  return Object.values(counts).reduce((sum, rows) => sum + rows, 0)
}

function countsOf({ signals, work }: SelectionCount) {
  return {
    rows: signals.reduce((sum, { rows }) => sum + rows, 0),
    bytes: signals.reduce((sum, { bytes }) => sum + bytes, 0),
    signals: signals.map(({ signal, rows, bytes, firstNs, lastNs, services, servicesTotal }) => ({
      signal,
      rows,
      bytes,
      first: firstNs === null ? null : formatInstant(firstNs),
      last: lastNs === null ? null : formatInstant(lastNs),
      services: [...services],
      services_total: servicesTotal,
    })),
    work: {
      partitions_dropped: work.partitionsDropped,
      partitions_rewritten: work.partitionsRewritten,
      bytes_rewritten: work.bytesRewritten,
    },
  }
}

function boundsOf({ startNs, endNs }: TimeRange) {
  return {
    range_start: startNs === null ? null : formatInstant(startNs),
    range_end: endNs === null ? null : formatInstant(endNs),
  }
}

/** One that is still to be taken can't be told apart from the others yet, but may hold a copy just as long. */
function backupsOf(known: readonly PreviewedBackup[]) {
  const backups = known.flatMap(({ backup_id, taken_at_ms, expires_at_ms }) =>
    taken_at_ms === null
      ? []
      : [{ backup_id, taken_at: instantText(taken_at_ms), expires_at: instantText(expires_at_ms) }],
  )
  const clearByMs = Math.max(...known.map(({ expires_at_ms }) => expires_at_ms))
  return { backups, backups_clear_by: known.length === 0 ? null : instantText(clearByMs) }
}

function ofAnotherSelection(previewId: string): InvalidInput {
  return new InvalidInput([
    problem(
      ['body', 'preview_id'],
      'value_error',
      'This preview is of another selection; preview what you want to erase',
      previewId,
      { error: 'preview of another selection' },
    ),
  ])
}
