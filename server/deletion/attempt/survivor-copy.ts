// The copy of the rows that stay in a partition, made in pieces: most of them before the placement is locked,
// while others write to the partition, and the rest under the lock. A piece counts only as long as it is
// exactly what it would be now: the same selection, and the same rows of the original. All others are
// removed from the copy before anything is added to it (docs/decisions/0044).

import type { TelemetryEngine } from '../../telemetry/engine.ts'
import type { PlacementLock } from '../../telemetry/placement-locks.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { copyMs } from './copy-cost.ts'
import { slicesOfPiece } from './copy-slices.ts'
import { type ErasedTable, noRows, requireLock, type SurvivalCounts } from './erased-table.ts'
import { ErasureError } from './erasure-error.ts'
import type { InTurn } from './partition-queue.ts'
import {
  type ActivePart,
  activeParts,
  inPiece,
  isUnchanged,
  joinMerged,
  mergesIn,
  newPieces,
  outsideOf,
  type Piece,
  partsOutside,
  rowsOf,
  rowsOutside,
  together,
} from './pieces.ts'
import { copyName } from './side-tables.ts'

/**
 * The share of the rows of a partition that may be left to the lock, and that a piece has at least: smaller
 * pieces would cost more statements than they save.
 */
const smallShare = 1 / 64

/**
 * How often the rest is counted or copied under the lock. A merge that ends at the wrong moment makes one try
 * useless. The last try uses no piece, so no merge has an influence on it, and the step ends.
 */
const triesMax = 3

/** When large parts are linked instead of copied (docs/decisions/0059). */
export interface LinkRule {
  /**
   * A part is linked where its copy would take longer than this, milliseconds. A linked part stays as it is,
   * and each takes some milliseconds more under the lock, so small ones are better copied together.
   */
  readonly fromMs: number
  /**
   * What linking takes for each part of the partition, milliseconds: the engine links all of them, and those
   * that are not wanted are dropped.
   */
  readonly perPartMs: number
}

/** How survivors are copied before the lock. */
interface AheadOptions {
  /** So many rows may be left to the lock. */
  readonly fewRows: number
  /** Called with pieces of work that others wait for. */
  readonly inTurn: InTurn
  /** Absent: only large parts are linked. A test with small parts sets zeros. */
  readonly linkRule?: LinkRule | undefined
  /** As {@link slicesOfPiece} has it. */
  readonly sliceMsOf?: ((pieceMs: number) => number) | undefined
}

const usualLinkRule: LinkRule = { fromMs: 500, perPartMs: 10 }

interface CopiedPiece extends Piece {
  readonly counts: SurvivalCounts
  /** The parts of the copy that have its survivors. */
  readonly copies: readonly string[]
}

/** The copy of one partition of a table. No other attempt has it. */
export class SurvivorCopy {
  readonly #engine: TelemetryEngine
  readonly #table: string
  readonly #partitionId: string
  readonly #name: string
  #pieces: readonly CopiedPiece[] = []
  /** The condition of the selection that the pieces were made for. */
  #selectedText = ''

  constructor(engine: TelemetryEngine, placement: number, table: string, partitionId: string) {
    this.#engine = engine
    this.#table = table
    this.#partitionId = partitionId
    this.#name = copyName(placement, table)
  }

  /** @param isSyncedAtOnce whether its inserts are not synced, so that it must be before a swap needs it */
  async create(attempt: PlacementLock, engines: CopyEngines, isSyncedAtOnce: boolean): Promise<void> {
    const engine = await engines.of(this.#table, isSyncedAtOnce)
    requireLock(attempt)
    await this.#engine.command(raw(`CREATE TABLE ${this.#name} AS ${this.#table} ENGINE = ${engine}`))
  }

  /** Drops it where no swap needed it. */
  async drop(attempt: PlacementLock): Promise<void> {
    requireLock(attempt)
    await this.#engine.command(raw(`DROP TABLE ${this.#name} SYNC`))
  }

  /**
   * Copies what is not copied yet, or links it. Returns whether little has arrived or was merged meanwhile: a
   * small share or `fewRows`.
   */
  async copyAhead(
    table: ErasedTable,
    { fewRows, inTurn, linkRule = usualLinkRule, sliceMsOf }: AheadOptions,
  ): Promise<boolean> {
    const little = (of: readonly Piece[]) => Math.max(fewRows, rowsOf(of) * smallShare)
    const { counts, parts, pieces } = await inTurn(async () => {
      const parts = await this.#keepUnchanged(table)
      await this.#linkUnselected(table, parts, linkRule)
      const merges = await mergesIn(this.#engine, this.#table, this.#partitionId)
      const pieces = newPieces(parts, this.#pieces, merges, { rowsMin: little(parts), rowsLeft: fewRows / 2 })
      return { counts: await table.countEach(this.#partitionId, pieces.map(inPiece)), parts, pieces }
    })
    for (const [i, piece] of pieces.entries()) {
      const found = counts[i] ?? noRows
      if (found.total !== piece.rows) continue
      if (found.total > found.selected) {
        for (const slice of slicesOfPiece(piece, parts, sliceMsOf))
          await inTurn(() => table.copySurvivors(this.#partitionId, slice))
      }
      await this.#keepCopied(table, piece, found)
    }
    const after = await activeParts(this.#engine, this.#table, this.#partitionId)
    return rowsOutside(after, unchangedOf(this.#pieces, after)) <= little(after)
  }

  /**
   * Links large parts that have no selected row. The engine links all parts of the partition as they are at
   * that moment; each link is known by its contents, and all but the wanted ones are removed again before
   * anything is copied.
   */
  async #linkUnselected(
    table: ErasedTable,
    parts: readonly ActivePart[],
    { fromMs, perPartMs }: LinkRule,
  ): Promise<void> {
    const large = partsOutside(parts, this.#pieces).filter((part) => copyMs(part) >= fromMs)
    if (large.length === 0) return
    const counts = await table.countParts(
      this.#partitionId,
      large.map(({ name }) => name),
    )
    const unselected = large.flatMap((part) => {
      const found = counts.get(part.name) ?? noRows
      return found.selected === 0 && found.total === part.rows ? [{ part, counts: found }] : []
    })
    const savedMs = unselected.reduce((sum, { part }) => sum + copyMs(part), 0)
    if (unselected.length === 0 || savedMs < parts.length * perPartMs) return
    await table.linkParts(this.#partitionId)
    const links = Map.groupBy(await this.#unknownCopies(), ({ contents }) => contents)
    const linked = unselected.flatMap(({ counts: found, part }) => {
      const [link, ...others] = links.get(part.contents) ?? []
      if (link === undefined || link.rows !== part.rows) return []
      links.set(part.contents, others)
      return [{ ...part, counts: found, copies: [link.name] }]
    })
    this.#pieces = [...this.#pieces, ...linked]
    await this.#dropUnknown(table)
  }

  /** Adds a piece that was copied; where the copy has not all of its survivors, removes it from the copy. */
  async #keepCopied(table: ErasedTable, piece: Piece, counts: SurvivalCounts): Promise<void> {
    const copies = await this.#unknownCopies()
    // A merge may have mixed them with others since.
    if (rowsOf(copies) !== counts.total - counts.selected) return this.#dropUnknown(table)
    this.#pieces = [...this.#pieces, { ...piece, counts, copies: copies.map(({ name }) => name) }]
  }

  /** Counts the rows of the partition under the lock. Reads only those that no piece has. */
  async counts(table: ErasedTable): Promise<SurvivalCounts> {
    if (this.#pieces.length === 0) return sumOf(await table.countEach(this.#partitionId, [outsideOf([])]))
    for (let tries = 1; ; tries++) {
      const isLast = tries === triesMax
      const parts = await this.#keepUnchanged(table, isLast)
      const rest = rowsOutside(parts, this.#pieces)
      const [later = noRows] =
        rest === 0 ? [] : await table.countEach(this.#partitionId, [outsideOf(this.#pieces)])
      if (later.total === rest || isLast) return sumOf([...this.#pieces.map((piece) => piece.counts), later])
    }
  }

  /**
   * Copies under the lock what no piece has. Throws ErasureError where the copy has not as many rows as
   * survive, by these counts: somebody writes who does not respect the lock.
   */
  async complete(table: ErasedTable, { selected, total }: SurvivalCounts): Promise<void> {
    for (let tries = 1; ; tries++) {
      // Also where nothing is left: the count then shows a row that should not be there.
      await table.copySurvivors(this.#partitionId, outsideOf(this.#pieces))
      if ((await this.#copiedRows()) === total - selected) return
      if (tries === triesMax) break
      await this.#dropUnknown(table)
      await this.#keepUnchanged(table, tries === triesMax - 1)
    }
    throw new ErasureError(`The copy of what survives in ${table.name} is not complete`)
  }

  /**
   * Removes from the copy the pieces that are not what they would be now, or all of them. Returns the parts
   * of the original.
   */
  async #keepUnchanged(table: ErasedTable, isNoneKept = false): Promise<readonly ActivePart[]> {
    const parts = await activeParts(this.#engine, this.#table, this.#partitionId)
    const isOther = isNoneKept || this.#selectedText !== table.selectedText
    const kept = isOther ? [] : unchangedOf(this.#pieces, parts)
    const keptCopies = new Set(kept.flatMap(({ copies }) => copies))
    const copies = this.#pieces.flatMap((piece) => piece.copies).filter((name) => !keptCopies.has(name))
    this.#selectedText = table.selectedText
    this.#pieces = kept
    await this.#dropCopies(table, copies)
    return parts
  }

  /** Removes from the copy what belongs to no piece. */
  async #dropUnknown(table: ErasedTable): Promise<void> {
    const unknown = await this.#unknownCopies()
    await this.#dropCopies(
      table,
      unknown.map(({ name }) => name),
    )
  }

  async #dropCopies(table: ErasedTable, names: readonly string[]): Promise<void> {
    if (names.length === 0) return
    table.requireLock()
    const drops = names.map((name) => `DROP PART '${name}'`)
    await this.#engine.command(raw(`ALTER TABLE ${this.#name} ${drops.join(', ')}`))
  }

  /** Counts only the partition that will be replaced: the engine swaps no other rows in. */
  async #copiedRows(): Promise<number> {
    const [copied] = await this.#engine.select<{ rows: string }>(
      sql`SELECT count() AS rows FROM ${raw(this.#name)} WHERE _partition_id = ${this.#partitionId}`,
    )
    return Number(copied?.rows)
  }

  /** Returns the parts of the copy that belong to no piece. */
  async #unknownCopies(): Promise<readonly ActivePart[]> {
    const known = new Set(this.#pieces.flatMap(({ copies }) => copies))
    const copies = await activeParts(this.#engine, this.#name, this.#partitionId)
    return copies.filter(({ name }) => !known.has(name))
  }
}

/** Parts with more bytes than this in all are not merged. */
const noMerges = [
  'max_bytes_to_merge_at_max_space_in_pool = 1',
  'max_bytes_to_merge_at_min_space_in_pool = 1',
]

/** Whether each file of an insert is synced when it ends. */
const syncs = (isSynced: boolean) => [
  `fsync_after_insert = ${Number(isSynced)}`,
  `fsync_part_directory = ${Number(isSynced)}`,
]

/** The engines of copies, as text. Each is read once, because only a start changes the engine of a table. */
export class CopyEngines {
  readonly #engine: Pick<TelemetryEngine, 'select'>
  readonly #known = new Map<string, string>()

  constructor(engine: Pick<TelemetryEngine, 'select'>) {
    this.#engine = engine
  }

  /**
   * Returns the engine of a copy of the table: its keys and settings. Unless all of the copy is synced at
   * once, each insert is. No part of it is merged: a piece, or a try that failed, can be removed only while
   * no part of the copy has rows of another one. The settings are in the text that creates the copy, because
   * changing those of a table that exists takes longer than creating it.
   */
  async of(table: string, isSyncedAtOnce: boolean): Promise<string> {
    const key = `${table} ${isSyncedAtOnce}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const [found] = await this.#engine.select<{ text: string }>(
      sql`SELECT engine_full AS text FROM system.tables WHERE database = currentDatabase() AND name = ${table}`,
    )
    if (found === undefined) throw new ErasureError(`The telemetry engine has no table ${table}`)
    const [keys, settings = ''] = found.text.split(' SETTINGS ')
    const copySettings = [...syncs(!isSyncedAtOnce), ...noMerges]
    const own = copySettings.map((setting) => setting.split(' ')[0])
    const others = settings.split(', ').filter((setting) => !['', ...own].includes(setting.split(' ')[0]))
    const text = `${keys} SETTINGS ${[...others, ...copySettings].join(', ')}`
    this.#known.set(key, text)
    return text
  }
}

/** Returns the pieces that still have exactly the rows that they had. */
function unchangedOf(pieces: readonly CopiedPiece[], parts: readonly Piece[]): readonly CopiedPiece[] {
  const join = (a: CopiedPiece, b: CopiedPiece): CopiedPiece => ({
    ...together(a, b),
    counts: sumOf([a.counts, b.counts]),
    copies: [...a.copies, ...b.copies],
  })
  return joinMerged(pieces, parts, join).filter((piece) => isUnchanged(piece, parts))
}

function sumOf(counts: readonly SurvivalCounts[]): SurvivalCounts {
  return counts.reduce(
    (sum, { own, selected, total }) => ({
      own: sum.own + own,
      selected: sum.selected + selected,
      total: sum.total + total,
    }),
    noRows,
  )
}
