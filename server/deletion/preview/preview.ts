// Counts what a deletion would erase, and compares it again when the deletion is requested: a deletion that
// names its preview is refused where the selection has changed too much since. A preview changes nothing.
// Only counts per signal are stored, so no erasure has to visit previews; names of services are returned and
// not stored.
//
// Everything selected is counted, also what a legal hold delays: the deletion will erase it in the end. Only
// the estimate of work leaves it out.

import type { z } from 'zod'
import type { DeletionPreview } from '../../../contract/deletion/requests.ts'
import { formatInstant, nsPerMs } from '../../../contract/values/instant.ts'
import { hashOf } from '../../audit/chain.ts'
import type { Control } from '../../control/database.ts'
import { AppError, InvalidInput, problem } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import type { TelemetryEngine } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import type { WeighRowsFor } from '../../telemetry/row-weights.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { type TenantAnswer, TenantReader } from '../../telemetry/tenant-reader.ts'
import type { ApprovalCause } from '../governance/policy.ts'
import type { KnownBackup } from '../requests/request.ts'
import { type DeletionSelection, holdsWithin, selectionText, wireBounds } from '../requests/selection.ts'
import { countRows, countSelection, type RowCounts, type SelectionCount } from './selection-count.ts'

type Preview = z.input<typeof DeletionPreview>

/**
 * The requester, the organisation and placement of their telemetry, and a signal that aborts when they no
 * longer wait.
 */
type PreviewAsker = Pick<Caller, 'tenantId' | 'placement' | 'requester' | 'signal'>

export interface PreviewsDeps {
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly weighRows: WeighRowsFor
  readonly control: Control
  readonly clock: Clock
  readonly derivedStores: readonly DerivedStore[]
  readonly activeHolds: (tenantId: string) => Promise<readonly ActiveHold[]>
  /** Returns every backup that may have a copy of what is stored now. */
  readonly knownBackups: () => Promise<readonly KnownBackup[]>
  /** Returns why the requester would need a second person; null where they would not. */
  readonly approvalCause: (asker: PreviewAsker, selection: DeletionSelection) => Promise<ApprovalCause | null>
}

/** How long a preview is valid, milliseconds: long enough to read it and to ask a colleague. */
const lifetimeMs = 15 * 60_000

/** Telemetry arrives while a person reads: a difference of this many rows, or of this share, is accepted. */
const toleranceRowsMin = 1000
const toleranceShare = 0.01

export class Previews {
  readonly #deps: PreviewsDeps

  constructor(deps: PreviewsDeps) {
    this.#deps = deps
  }

  /**
   * Counts the selection and stores the counts. The result is the body of a response, which is not sent where
   * something was hidden meanwhile. Also removes expired previews of every organisation.
   */
  answer(place: PreviewAsker, selection: DeletionSelection): Promise<TenantAnswer<Preview>> {
    const reader = this.#reader(place)
    // A preview that is counted again leaves the first counts behind until they expire.
    return reader.answer(() => this.#create(place, selection, reader))
  }

  async #create(place: PreviewAsker, selection: DeletionSelection, reader: TenantReader): Promise<Preview> {
    const { activeHolds, approvalCause, clock, control, derivedStores, knownBackups, weighRows } = this.#deps
    const { tenantId } = place
    const held = holdsWithin(selection, await activeHolds(tenantId))
    const weights = await weighRows(reader)
    const counted = await countSelection(reader, { ...selection, held }, weights)
    const derived = { ...nothingDerived }
    const hidden = reader.gate.hidden(tenantId)
    for (const store of derivedStores)
      Object.assign(derived, await store.preview(tenantId, selection, hidden))
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
      ...wireBounds(selection.range),
      ...countsOf(counted),
      derived,
      held: held.map(({ holdId, signals, range }) => ({
        hold_id: holdId,
        signals: [...signals],
        ...wireBounds(range),
      })),
      ...backupsOf(await knownBackups()),
      needs_approval: cause !== null,
      warnings: [...warningsAbout(selection, nowMs), ...causeWarnings.filter(({ code }) => code === cause)],
      tolerance_rows: toleranceOf(totalOf(rowCounts)),
    }
  }

  /**
   * Returns where the preview is of this selection, is valid, and the selection has the same rows within the
   * tolerance. Throws InvalidInput where it is of another selection. Otherwise throws `preview_stale` with a
   * new preview; an expired one, an unknown one and one of another organisation look the same.
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
    // A creation time in the future means that the clock was set back, so its age is unknown.
    if (row === undefined || row.expires_at_ms <= nowMs || row.created_at_ms > nowMs) {
      throw await this.#stale(place, selection, 'The preview has expired or is unknown')
    }
    if (row.selection_hash !== hashOf(selectionText(selection))) throw ofAnotherSelection(previewId)
    const before: RowCounts = JSON.parse(row.row_counts)
    const reader = this.#reader(place)
    const stale = await reader.together(async () => {
      const now = await countRows(reader, selection)
      if (differenceOf(before, now) <= toleranceOf(totalOf(before))) return null
      const moved = `The selection had ${totalOf(before)} rows when it was previewed and has ${totalOf(now)} now`
      return this.#stale(place, selection, moved)
    })
    if (stale !== null) throw stale
  }

  async #stale(place: PreviewAsker, selection: DeletionSelection, what: string): Promise<AppError> {
    const { body: preview, requireCurrent } = await this.answer(place, selection)
    return new AppError('preview_stale', {
      sentence: `${what}; look at the new preview and confirm that.`,
      facts: { preview },
      requireCurrent,
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

/** Counts where no derived store has anything. */
const nothingDerived: Preview['derived'] = { anomalies: 0, anomalies_learned_from: 0 }

/** How far the clock of a client may be ahead, milliseconds. */
const clockSkewMs = 60_000

/** Warns of an end in the future: a wrong year is easily typed, and nothing else would show it. */
export function warningsAbout({ range }: DeletionSelection, nowMs: number): Preview['warnings'] {
  const { endNs } = range
  if (endNs === null || endNs <= BigInt(nowMs + clockSkewMs) * nsPerMs) return []
  const message = `range_end is ${formatInstant(endNs)}, which has not come yet: telemetry for that time which arrives before the deletion has completed is refused or erased too, and what arrives afterwards is kept.`
  return [{ code: 'future_end', message }]
}

/** Explain why a short range needs approval. */
const causeWarnings: Preview['warnings'] = [
  {
    code: 'ranges_together',
    message:
      'Together with what you have erased alone in the last 31 days this covers more than 31 days, so a second owner or admin must approve it.',
  },
  {
    code: 'nothing_left',
    message:
      'Beside this and what was erased before, no telemetry of a signal that is older than a day is known to stay, so it counts as a full erasure and a second owner or admin must approve it.',
  },
]

export function toleranceOf(rows: number): number {
  return Math.max(toleranceRowsMin, Math.floor(rows * toleranceShare))
}

/**
 * Returns the rows that were added and removed, per signal: as many new logs as lost spans are a difference.
 */
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

/** A backup that is requested and not taken isn't listed, but its expiry counts. */
function backupsOf(known: readonly KnownBackup[]) {
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
