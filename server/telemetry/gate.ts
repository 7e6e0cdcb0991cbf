// The gate of one node: what its readers and writers must know of erasures. It keeps three facts for each
// organisation: what is *hidden* (no reader sees it), what is *fenced* (no writer adds to it), and what is
// *erased* (time that readers must treat as unknown, not as zero). Changes come through the fences
// (fences.ts), each with an epoch; readers, the writer and the detectors ask the gate and never change it. It
// is kept in memory, and loaded from the control plane before the service is ready.

import { AppError } from '../core/app-error.ts'
import { OutermostRanges } from '../core/outermost-ranges.ts'
import { overlaps, type TimeRange, touches } from '../core/time-range.ts'
import type { TenantPlace } from './engine.ts'
import type { TableExtent } from './rows.ts'
import { type Signal, tables } from './schema/tables.ts'

/** Telemetry of one organisation that a deletion selects. */
export interface Selection {
  /** The deletion that selects it. */
  readonly id: string
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

/** The effect of a fence on one organisation. */
type FenceKind = 'hidden' | 'fenced' | 'erased' | 'late'

/** One fact that begins or ends. A selection replaces the one of the same kind and id. */
export type FenceChange =
  | { readonly kind: FenceKind; readonly tenantId: string; readonly set: Selection }
  | { readonly kind: FenceKind; readonly tenantId: string; readonly end: Selection['id'] }
  | { readonly kind: 'closed'; readonly placement: number; readonly isClosed: boolean }

/**
 * How often reads are repeated. Each takes as long as the first, so an organisation that erases without a
 * pause would use the engine for ever and never get an answer.
 */
const repeatsUsually = 5

/**
 * How many of the last hidings of an organisation are known one by one: more than it may ask for at once.
 * Beyond them an answer counts as outdated whatever it contains.
 */
const latelyMax = 500

/** What an answer contains: telemetry of these signals, within the range. */
export type Coverage = Pick<Selection, 'signals' | 'range'>

/** A commit in progress, and the times of its rows. */
interface RunningCommit {
  readonly batch: readonly TableExtent[]
  readonly ended: Promise<unknown>
}

const signalOf = new Map(tables.map((table) => [table.name, table.signal]))

export class TelemetryGate {
  readonly #hidden = new Map<string, Selection[]>()
  readonly #hidings = new Map<string, number>()
  /** The last selections that were hidden, oldest first, also those that are not hidden any more. */
  readonly #lately = new Map<string, readonly Selection[]>()
  readonly #unhidings = new Map<string, number>()
  readonly #onHide: ((tenantId: string) => void)[] = []
  readonly #fenced = new Map<string, Selection[]>()
  readonly #erased = new Map<string, ErasedSelections>()
  readonly #late = new Map<string, Selection[]>()
  readonly #commits = new Map<string, Set<RunningCommit>>()
  readonly #closedPlacements = new Set<number>()
  #epoch = 0

  /** The epoch of the newest changes that were applied: what this node has acknowledged. */
  get epoch(): number {
    return this.#epoch
  }

  /**
   * Applies changes in their order and acknowledges their epoch. Throws where they are older than what was
   * applied, and the errors of a listener of {@link onHide}; then the epoch is not acknowledged.
   */
  apply(epoch: number, changes: readonly FenceChange[]): void {
    if (epoch <= this.#epoch) {
      throw new Error(`Fences of epoch ${epoch} arrived after those of epoch ${this.#epoch}.`)
    }
    for (const change of changes) this.#apply(change)
    this.#epoch = epoch
  }

  #apply(change: FenceChange): void {
    if (change.kind === 'closed') {
      if (change.isClosed) this.closePlacement(change.placement)
      else this.openPlacement(change.placement)
    } else if ('set' in change) this[setterOf[change.kind]](change.tenantId, change.set)
    else this[enderOf[change.kind]](change.tenantId, change.end)
  }

  hide(tenantId: string, selection: Selection): void {
    put(this.#hidden, tenantId, selection)
    this.#hidings.set(tenantId, this.hidings(tenantId) + 1)
    this.#lately.set(tenantId, [...(this.#lately.get(tenantId) ?? []), selection].slice(-latelyMax))
    for (const forget of this.#onHide) forget(tenantId)
  }

  /**
   * Calls `forget` each time something of an organisation is hidden, so that caches drop what they have of
   * it.
   */
  onHide(forget: (tenantId: string) => void): void {
    this.#onHide.push(forget)
  }

  /**
   * Returns how often something was hidden. A read during which this changed may have seen too much and is
   * repeated.
   */
  hidings(tenantId: string): number {
    return this.#hidings.get(tenantId) ?? 0
  }

  /**
   * Whether something of the coverage was hidden after {@link hidings} had this value, also where an erasure
   * has completed since. Without a coverage, whether anything was.
   */
  hasHiddenSince(tenantId: string, hidings: number, coverage?: Coverage): boolean {
    const count = this.hidings(tenantId) - hidings
    if (count === 0) return false
    const lately = this.#lately.get(tenantId) ?? []
    if (coverage === undefined || count > lately.length) return true
    const { range, signals } = coverage
    return lately
      .slice(-count)
      .some((hidden) => overlaps(hidden.range, range) && hidden.signals.some((one) => signals.includes(one)))
  }

  unhide(tenantId: string, id: string): void {
    take(this.#hidden, tenantId, id)
    this.#unhidings.set(tenantId, (this.#unhidings.get(tenantId) ?? 0) + 1)
  }

  /**
   * Returns a number that changes with what is hidden: also where a cancelled deletion makes something
   * visible again. What was read at another number may be incomplete.
   */
  visibility(tenantId: string): number {
    return this.hidings(tenantId) + (this.#unhidings.get(tenantId) ?? 0)
  }

  /**
   * Runs reads whose results are combined, again where something was hidden before the last one ended: so the
   * result never contains what was hidden before it is returned. Throws `erasing` where that happens more
   * than `repeatsMax` times.
   */
  async together<T>(tenantId: string, read: () => Promise<T>, repeatsMax = repeatsUsually): Promise<T> {
    for (let repeats = 0; repeats <= repeatsMax; repeats++) {
      const hidings = this.hidings(tenantId)
      const result = await read()
      if (this.hidings(tenantId) === hidings) return result
    }
    throw hiddenMeanwhile()
  }

  hidden(tenantId: string): readonly Selection[] {
    return this.#hidden.get(tenantId) ?? []
  }

  /**
   * Of selections of which one covers the other only the wider one is kept, so that nightly ones don't
   * accumulate. Marking many in order of time takes no longer for each than marking a few.
   */
  markErased(tenantId: string, selection: Selection): void {
    const erased = this.#erased.get(tenantId) ?? new ErasedSelections()
    this.#erased.set(tenantId, erased)
    erased.mark(selection)
  }

  /** From here on commits leave out rows of the selection, for ever; see {@link lateSelections}. */
  refuseLate(tenantId: string, selection: Selection): void {
    put(this.#late, tenantId, selection)
  }

  acceptLate(tenantId: string, id: string): void {
    take(this.#late, tenantId, id)
  }

  lateSelections(tenantId: string): readonly Selection[] {
    return this.#late.get(tenantId) ?? []
  }

  erased(tenantId: string): readonly Selection[] {
    return this.#erased.get(tenantId)?.all() ?? []
  }

  unmarkErased(tenantId: string, id: string): void {
    this.#erased.get(tenantId)?.unmark(id)
  }

  /** Returns erased or hidden time of one signal that overlaps the range: unknown to detectors and charts. */
  unknownTime(tenantId: string, signal: Signal, range: TimeRange): readonly TimeRange[] {
    const hidden = this.hidden(tenantId).filter(
      (selection) => selection.signals.includes(signal) && overlaps(selection.range, range),
    )
    const erased = this.#erased.get(tenantId)?.overlapping(signal, range) ?? []
    return [...hidden, ...erased].map((selection) => selection.range)
  }

  /**
   * From here on no commit of this organisation may add to the selection; see {@link drain} for running ones.
   */
  fence(tenantId: string, selection: Selection): void {
    put(this.#fenced, tenantId, selection)
  }

  unfence(tenantId: string, id: string): void {
    take(this.#fenced, tenantId, id)
  }

  /**
   * Refuses every commit to a placement until {@link openPlacement}: one of its partitions may contain rows
   * twice.
   */
  closePlacement(placement: number): void {
    this.#closedPlacements.add(placement)
  }

  openPlacement(placement: number): void {
    this.#closedPlacements.delete(placement)
  }

  isClosed(placement: number): boolean {
    return this.#closedPlacements.has(placement)
  }

  /** Returns the placements that are closed now. */
  closedPlacements(): readonly number[] {
    return [...this.#closedPlacements]
  }

  /**
   * Whether the organisation's placement is closed, or a fence covers an instant between the earliest and
   * latest row of some table of the batch.
   */
  refuses({ tenantId, placement }: TenantPlace, batch: readonly TableExtent[]): boolean {
    if (this.isClosed(placement)) return true
    return (this.#fenced.get(tenantId) ?? []).some((fence) => mayHave(fence, batch))
  }

  /** Counts a commit as running for its organisation until it settles. */
  track(tenantId: string, batch: readonly TableExtent[], commit: Promise<unknown>): void {
    const commits = this.#commits.get(tenantId) ?? new Set()
    this.#commits.set(tenantId, commits)
    const running = { batch, ended: commit }
    commits.add(running)
    const done = () => {
      commits.delete(running)
      if (commits.size === 0 && this.#commits.get(tenantId) === commits) this.#commits.delete(tenantId)
    }
    commit.then(done, done)
  }

  /**
   * Resolves when every commit that began before the call has settled, as far as {@link refuses} would refuse
   * it where this were fenced.
   */
  async drain(tenantId: string, coverage: Coverage): Promise<void> {
    const running = [...(this.#commits.get(tenantId) ?? [])]
    await Promise.allSettled(
      running.filter(({ batch }) => mayHave(coverage, batch)).map(({ ended }) => ended),
    )
  }
}

/** Whether an instant between the earliest and latest row of some table of the batch is covered. */
function mayHave({ range, signals }: Coverage, batch: readonly TableExtent[]): boolean {
  return batch.some(({ table, minTimeNs, maxTimeNs }) => {
    const signal = signalOf.get(table)
    return signal !== undefined && signals.includes(signal) && touches(range, minTimeNs, maxTimeNs)
  })
}

/**
 * What one organisation has erased. It can have erased a range every second for days, and every read of a
 * chart and of a detector asks, so nothing but {@link all} walks through it.
 */
class ErasedSelections {
  readonly #byId = new Map<string, Selection>()
  /** By the signals that they select: there are seven combinations. */
  readonly #groups = new Map<string, { signals: readonly Signal[]; ranges: OutermostRanges<Selection> }>()

  all(): readonly Selection[] {
    return [...this.#byId.values()]
  }

  mark(selection: Selection): void {
    const { id, range, signals } = selection
    this.unmark(id)
    const own = this.#groupOf(signals)
    let isCovered = false
    for (const group of this.#groups.values()) {
      if (group === own) continue
      if (includesAll(signals, group.signals)) this.#forget(group.ranges.takeCovered(range))
      else if (includesAll(group.signals, signals)) isCovered ||= group.ranges.hasCovering(range)
    }
    if (isCovered) return
    this.#byId.set(id, selection)
    this.#forget(own.ranges.add(selection))
  }

  unmark(id: string): void {
    const selection = this.#byId.get(id)
    if (selection === undefined) return
    // No other one of its group is covered by it.
    this.#forget(this.#groupOf(selection.signals).ranges.takeCovered(selection.range))
  }

  overlapping(signal: Signal, range: TimeRange): readonly Selection[] {
    return [...this.#groups.values()].flatMap(({ ranges, signals }) =>
      signals.includes(signal) ? ranges.overlapping(range) : [],
    )
  }

  #groupOf(signals: readonly Signal[]) {
    const key = signals.toSorted().join()
    const group = this.#groups.get(key) ?? { signals, ranges: new OutermostRanges<Selection>() }
    this.#groups.set(key, group)
    return group
  }

  #forget(selections: readonly Selection[]): void {
    for (const { id } of selections) this.#byId.delete(id)
  }
}

function includesAll(wide: readonly Signal[], narrow: readonly Signal[]): boolean {
  return narrow.every((signal) => wide.includes(signal))
}

/** The refusal where telemetry was hidden while an answer with it was computed. */
export function hiddenMeanwhile(): AppError {
  return new AppError('erasing', {
    sentence: 'Telemetry was erased while it was read; repeat after Retry-After.',
    retryAfterSeconds: 1,
  })
}

const setterOf = { hidden: 'hide', fenced: 'fence', erased: 'markErased', late: 'refuseLate' } as const
const enderOf = {
  hidden: 'unhide',
  fenced: 'unfence',
  erased: 'unmarkErased',
  late: 'acceptLate',
} as const

function put(map: Map<string, Selection[]>, tenantId: string, selection: Selection): void {
  map.set(tenantId, [...(map.get(tenantId) ?? []).filter(({ id }) => id !== selection.id), selection])
}

function take(map: Map<string, Selection[]>, tenantId: string, id: string): void {
  const left = (map.get(tenantId) ?? []).filter((selection) => selection.id !== id)
  if (left.length === 0) map.delete(tenantId)
  else map.set(tenantId, left)
}
