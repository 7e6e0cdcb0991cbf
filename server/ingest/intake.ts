// The one way in for telemetry, whichever protocol brought it: quota, decode, leave out what came too late,
// commit, count. Success means committed by the engine and counted. A request is stored as a whole or,
// where it throws, to be repeated as a whole; single records that can't be stored are counted with their
// reason and never a failure.

import type { LoopTurns } from '../core/loop-turns.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
import type { Decoder, Undecoded } from './decoder.ts'
import { type LateSelection, withoutLate } from './rows/late-rows.ts'
import { requireFewPartitions } from './rows/partition-spread.ts'
import type { DecodedExport } from './rows/row-collector.ts'
import type { IngestWriter } from './rows/writer.ts'

/** One request's part of what its organisation may send. */
interface Admission {
  /** Throws `quota_exceeded`. */
  takeRows(rows: number): void
  /** To be called where nothing of the request was stored. */
  giveBack(): void
  /** Resolves when the counts are on disk. */
  count(rowsAccepted: number, rowsRejected: number): Promise<void>
}

interface Quota {
  /** Throws `quota_exceeded`. */
  admit(tenantId: string, bytes: number): Promise<Admission>
}

export interface IntakeOptions {
  readonly writer: IngestWriter
  readonly decoder: Decoder
  readonly turns: LoopTurns
  readonly quota: Quota
  /** What the organisation refuses for good because it has erased it. */
  readonly lateSelections: (tenantId: string) => readonly LateSelection[]
  /** Told of rows that were left out because of it, by deletion. */
  readonly onLate: (late: ReadonlyMap<string, number>) => void
  /** Throws where nothing can be stored at present, as on a full disk. */
  readonly requireRoom: () => void
  /** Told of every request, for the metrics page. */
  readonly onExport: (signal: Signal, accepted: number, rejected: number) => void
}

/** What became of a request, or of one of the kinds of record in it. */
export interface IntakeResult {
  readonly accepted: number
  readonly rejected: number
  /** Counts by reason; empty when nothing was rejected. */
  readonly reasons: string
}

export class Intake {
  readonly #options: IntakeOptions

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  /**
   * Takes a request. Answers a result for each kind of record that its protocol has, in their order. Throws
   * what its decoder throws, `storage_unavailable`, `quota_exceeded`, `body_too_large` for rows of too many
   * weeks, and what the writer throws; nothing then counts against the quota.
   *
   * @param body is not looked at where the quota refuses it
   */
  async take(place: TenantPlace, signal: Signal, body: Undecoded): Promise<readonly IntakeResult[]> {
    this.#options.requireRoom()
    const admission = await this.#options.quota.admit(place.tenantId, body.bodyBytes)
    try {
      this.#options.writer.requireRoom(place)
      const parts = await this.#options.decoder.decode(place.tenantId, body)
      const { committed, results, late } = this.#begin(place, admission, parts)
      await committed
      // A commit acknowledges hundreds of requests at once, and to answer one keeps the
      // event loop for a moment.
      await this.#options.turns.turnOf(place.tenantId)
      for (const rows of late) if (rows.size > 0) this.#options.onLate(rows)
      const [accepted, rejected] = [total(results, 'accepted'), total(results, 'rejected')]
      this.#options.onExport(signal, accepted, rejected)
      await admission.count(accepted, rejected)
      return results
    } catch (error) {
      admission.giveBack()
      throw error
    }
  }

  /**
   * From late rows to the commit in one breath: a fence comes down only after late rows
   * are refused. Keeps no rows.
   */
  #begin(place: TenantPlace, admission: Admission, decoded: readonly DecodedExport[]) {
    const parts = decoded.map((part) => this.#inTime(place.tenantId, part))
    const results = parts.map(({ result }) => result)
    admission.takeRows(total(results, 'accepted'))
    const batch = parts.flatMap((part) => part.batch)
    requireFewPartitions(batch)
    const committed = this.#options.writer.commit(place, batch)
    return { committed, results, late: parts.map((part) => part.late) }
  }

  #inTime(tenantId: string, decoded: DecodedExport) {
    const { batch, late } = withoutLate(decoded.batch, this.#options.lateSelections(tenantId))
    const lateRows = [...late.values()].reduce((sum, rows) => sum + rows, 0)
    const result: IntakeResult = {
      accepted: decoded.accepted - lateRows,
      rejected: decoded.rejected + lateRows,
      reasons: lateRows === 0 ? decoded.reasons : withLate(decoded.reasons, lateRows),
    }
    return { batch, late, result }
  }
}

function total(results: readonly IntakeResult[], field: 'accepted' | 'rejected'): number {
  return results.reduce((sum, result) => sum + result[field], 0)
}

function withLate(reasons: string, lateRows: number): string {
  const late = `${lateRows} for a time that your organisation has erased and refuses`
  return reasons === '' ? late : `${reasons}; ${late}`
}
