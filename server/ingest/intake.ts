// Stores telemetry of all protocols: quota, decode, leave out late rows, commit, count. Success means that
// the engine has committed the rows and that they are counted. A request is stored as a whole or, where this
// throws, must be repeated as a whole. Single records that can't be stored are counted with their reason and
// are not an error.

import type { LoopTurns } from '../core/turns/loop-turns.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
import type { DecodedBody } from './decode-job.ts'
import type { Decoder, Undecoded } from './decoder.ts'
import type { DistantWeeks } from './rows/distant-weeks.ts'
import { type LateSelection, withoutLate } from './rows/late-rows.ts'
import { requireFewPartitions } from './rows/partition-spread.ts'
import type { DecodedExport } from './rows/row-collector.ts'
import type { IngestWriter } from './rows/writer.ts'

/** Admission of one HTTP request under the quota of its organisation. */
interface Admission {
  /** Throws `quota_exceeded`. */
  takeRows(rows: number): void
  /** Call it where nothing of the request was stored. */
  giveBack(): void
  /** Resolves when the counts are on disk; never rejects. */
  count(rowsAccepted: number, rowsRejected: number): Promise<void>
}

interface Quota {
  /** Throws `quota_exceeded`. */
  admit(tenantId: string, bytes: number): Promise<Admission>
}

export interface IntakeOptions {
  readonly writer: IngestWriter
  readonly decoder: Decoder
  readonly weeks: DistantWeeks
  readonly turns: LoopTurns
  readonly quota: Quota
  /** Selections that the organisation has erased and refuses for ever. */
  readonly lateSelections: (tenantId: string) => readonly LateSelection[]
  /** Reports the rows that were left out for such a selection, by deletion. */
  readonly onLate: (late: ReadonlyMap<string, number>) => void
  /** Throws where nothing can be stored at present, as on a full disk. */
  readonly requireRoom: () => void
  /** Reports every HTTP request to the metrics page. */
  readonly onExport: (signal: Signal, accepted: number, rejected: number) => void
}

/** The result of a request, or of one kind of record in it. */
export interface IntakeResult {
  readonly accepted: number
  readonly rejected: number
  /** Counts by reason; empty where nothing was rejected. */
  readonly reasons: string
}

export class Intake {
  readonly #options: IntakeOptions

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  /**
   * Stores the records of a request. Returns a result for each kind of record of its protocol, in their
   * order. Throws the errors of the decoder and of the writer, `storage_unavailable`, `quota_exceeded`, and
   * `body_too_large` for rows of too many weeks or distant ones; nothing then counts against the quota.
   *
   * @param body is not read where the quota refuses it
   */
  async take(place: TenantPlace, signal: Signal, body: Undecoded): Promise<readonly IntakeResult[]> {
    this.#options.requireRoom()
    const { admission, parts } = await this.#decode(place, body)
    try {
      const decoded = parts.flatMap(({ batch }) => batch)
      await this.#options.weeks.prepare(place, decoded)
      const { committed, results, late } = this.#begin(place, admission, parts)
      const [accepted, rejected] = [total(results, 'accepted'), total(results, 'rejected')]
      await committed
      // Before this request waits for its turn, so that all requests of a commit are counted together.
      const counted = admission.count(accepted, rejected)
      // A commit acknowledges hundreds of requests at once, and each response occupies the event loop for a
      // moment.
      await this.#options.turns.turnOf(place.tenantId)
      for (const rows of late) if (rows.size > 0) this.#options.onLate(rows)
      this.#options.onExport(signal, accepted, rejected)
      await counted
      return results
    } catch (error) {
      admission.giveBack()
      throw error
    }
  }

  /** Decodes a body under the quota: first with the bytes that it claims, then with those that it has. */
  async #decode(place: TenantPlace, body: Undecoded) {
    const { quota } = this.#options
    const admission = await quota.admit(place.tenantId, body.bodyBytes)
    const { bodyBytes, parts } = await this.#decodeInRoom(place, body).catch((error: unknown) => {
      admission.giveBack()
      throw error
    })
    if (bodyBytes === body.bodyBytes) return { admission, parts }
    admission.giveBack()
    return { admission: await quota.admit(place.tenantId, bodyBytes), parts }
  }

  async #decodeInRoom(place: TenantPlace, body: Undecoded): Promise<DecodedBody> {
    this.#options.writer.requireRoom(place)
    this.#options.writer.received(place, body.bodyBytes)
    return this.#options.decoder.decode(place.tenantId, body)
  }

  /**
   * From late rows to the commit without a turn of the event loop: a fence is removed only after late rows
   * are refused. Keeps no rows.
   */
  #begin(place: TenantPlace, admission: Admission, decoded: readonly DecodedExport[]) {
    const parts = decoded.map((part) => this.#inTime(place.tenantId, part))
    const results = parts.map(({ result }) => result)
    admission.takeRows(total(results, 'accepted'))
    const batch = parts.flatMap((part) => part.batch)
    requireFewPartitions(batch)
    this.#options.weeks.admit(place, batch)
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
