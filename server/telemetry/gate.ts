// The gate between telemetry and its readers and writers while an erasure is running. It keeps three facts
// for each organisation: what is *hidden* (no reader sees it), what is *fenced* (no writer adds to it), and
// what is *erased* (time that readers must treat as unknown, not as zero). The deletion room sets them;
// readers, the writer and the detectors only ask. There is one process, so they are kept in memory; they are
// loaded from the control plane before the service is ready.

import { covers, overlaps, type TimeRange, touches } from '../core/time-range.ts'
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

const signalOf = new Map(tables.map((table) => [table.name, table.signal]))

export class TelemetryGate {
  readonly #hidden = new Map<string, Selection[]>()
  readonly #hidings = new Map<string, number>()
  readonly #onHide: ((tenantId: string) => void)[] = []
  readonly #fenced = new Map<string, Selection[]>()
  readonly #erased = new Map<string, Selection[]>()
  readonly #late = new Map<string, Selection[]>()
  readonly #commits = new Map<string, Set<Promise<unknown>>>()
  readonly #closedPlacements = new Set<number>()
  readonly #occupiedPlacements = new Set<number>()
  readonly #placements = new Map<number, Promise<unknown>>()

  hide(tenantId: string, selection: Selection): void {
    put(this.#hidden, tenantId, selection)
    this.#hidings.set(tenantId, this.hidings(tenantId) + 1)
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

  unhide(tenantId: string, id: string): void {
    take(this.#hidden, tenantId, id)
  }

  hidden(tenantId: string): readonly Selection[] {
    return this.#hidden.get(tenantId) ?? []
  }

  /** Drops selections that a wider erasure covers, so that nightly ones don't accumulate. */
  markErased(tenantId: string, selection: Selection): void {
    const said = (this.#erased.get(tenantId) ?? []).filter(
      ({ signals, range }) =>
        signals.every((signal) => selection.signals.includes(signal)) && covers(selection.range, range),
    )
    for (const { id } of said) take(this.#erased, tenantId, id)
    put(this.#erased, tenantId, selection)
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

  unmarkErased(tenantId: string, id: string): void {
    take(this.#erased, tenantId, id)
  }

  /** Returns erased or hidden time of one signal that overlaps the range: unknown to detectors and charts. */
  unknownTime(tenantId: string, signal: Signal, range: TimeRange): readonly TimeRange[] {
    return [...this.hidden(tenantId), ...(this.#erased.get(tenantId) ?? [])]
      .filter((selection) => selection.signals.includes(signal) && overlaps(selection.range, range))
      .map((selection) => selection.range)
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

  /** Whether {@link exclusively} is running on the placement; a writer need not wait in its queue. */
  isOccupied(placement: number): boolean {
    return this.#occupiedPlacements.has(placement)
  }

  /**
   * Whether the organisation's placement is closed, or a fence covers an instant between the earliest and
   * latest row of some table of the batch.
   */
  refuses({ tenantId, placement }: TenantPlace, batch: readonly TableExtent[]): boolean {
    if (this.isClosed(placement)) return true
    const fences = this.#fenced.get(tenantId)
    if (fences === undefined) return false
    return batch.some(({ table, minTimeNs, maxTimeNs }) => {
      const signal = signalOf.get(table)
      return fences.some(
        (fence) =>
          signal !== undefined &&
          fence.signals.includes(signal) &&
          touches(fence.range, minTimeNs, maxTimeNs),
      )
    })
  }

  /** Counts a commit as running for its organisation until it settles. */
  track(tenantId: string, commit: Promise<unknown>): void {
    const running = this.#commits.get(tenantId) ?? new Set()
    this.#commits.set(tenantId, running)
    running.add(commit)
    const done = () => {
      running.delete(commit)
      if (running.size === 0 && this.#commits.get(tenantId) === running) this.#commits.delete(tenantId)
    }
    commit.then(done, done)
  }

  /** Resolves when every commit that began before the call has settled. */
  async drain(tenantId: string): Promise<void> {
    await Promise.allSettled([...(this.#commits.get(tenantId) ?? [])])
  }

  /**
   * Runs `work` while nothing else works on one of the placements. A partition may be dropped as a whole only
   * while no neighbour can commit into it between the check that it has only our rows and the drop.
   */
  async exclusively<T>(placements: readonly number[], work: () => Promise<T>): Promise<T> {
    const before = placements.map((placement) => this.#placements.get(placement))
    const running = Promise.all(before).then(async () => {
      for (const placement of placements) this.#occupiedPlacements.add(placement)
      try {
        return await work()
      } finally {
        for (const placement of placements) this.#occupiedPlacements.delete(placement)
      }
    })
    const settled = running.then(
      () => undefined,
      () => undefined,
    )
    for (const placement of placements) this.#placements.set(placement, settled)
    return running
  }
}

function put(map: Map<string, Selection[]>, tenantId: string, selection: Selection): void {
  map.set(tenantId, [...(map.get(tenantId) ?? []).filter(({ id }) => id !== selection.id), selection])
}

function take(map: Map<string, Selection[]>, tenantId: string, id: string): void {
  const left = (map.get(tenantId) ?? []).filter((selection) => selection.id !== id)
  if (left.length === 0) map.delete(tenantId)
  else map.set(tenantId, left)
}
