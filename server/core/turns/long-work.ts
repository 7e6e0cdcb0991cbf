// Work that occupies a member of a pool for a long time. Running work is not interrupted by turns, so a few
// owners with long work, each within its limits, could occupy every member together. Two rules prevent that:
// a flow whose work took long lately never gets the last free member; and where a flow without long work
// waits nevertheless, because those that hold every member had not shown theirs before, the work that has
// run longest gives way, if the pool's work can.

export interface LongWorkRule {
  /** Work that takes longer than this is long, milliseconds. */
  readonly longMs: number
  /** For so long after it ended, long work counts, milliseconds. */
  readonly rememberedMs: number
  /** Absent where work can't be ended early. */
  readonly givingWay?: GivingWay
}

/** When work that a client waits for is ended early. */
export interface GivingWay {
  /** Only after it has run this long, milliseconds... */
  readonly ranMs: number
  /** ...and another client has waited this long, milliseconds. */
  readonly waitedMs: number
  /** Returns the refusal for the client whose work gives way. */
  readonly refusal: () => Error
  /** Resolves after `ms`, or at once where `signal` aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Work that occupies a member. */
export interface RunningWork {
  readonly flow: string
  readonly startedMs: number
  /** Aborts with the refusal where the work has to give way; null where it never has to. */
  readonly giveWay: AbortController | null
}

export class LongWork {
  readonly #rule: LongWorkRule
  readonly #nowMs: () => number
  readonly #running = new Set<RunningWork>()
  /** When the last long work of a flow ended, in this order. */
  readonly #endedMs = new Map<string, number>()

  constructor(rule: LongWorkRule, nowMs: () => number) {
    this.#rule = rule
    this.#nowMs = nowMs
  }

  /** @param isAsked whether a client waits for the result, who can ask again */
  began(flow: string, isAsked: boolean): RunningWork {
    const mayGiveWay = isAsked && this.#rule.givingWay !== undefined
    const work = { flow, startedMs: this.#nowMs(), giveWay: mayGiveWay ? new AbortController() : null }
    this.#running.add(work)
    return work
  }

  ended(work: RunningWork): void {
    this.#running.delete(work)
    const nowMs = this.#nowMs()
    if (nowMs - work.startedMs > this.#rule.longMs) {
      this.#endedMs.delete(work.flow)
      this.#endedMs.set(work.flow, nowMs)
    }
    for (const [flow, endedMs] of this.#endedMs) {
      if (nowMs - endedMs < this.#rule.rememberedMs) break
      this.#endedMs.delete(flow)
    }
  }

  /** Whether work of the flow takes long, or took long lately. */
  isLong(flow: string): boolean {
    const nowMs = this.#nowMs()
    const endedMs = this.#endedMs.get(flow)
    if (endedMs !== undefined && nowMs - endedMs < this.#rule.rememberedMs) return true
    for (const work of this.#running) {
      if (work.flow === flow && nowMs - work.startedMs > this.#rule.longMs) return true
    }
    return false
  }

  /** Makes the work give way that has run longest, unless other work does already or none has run so long. */
  giveWay(): void {
    const { givingWay } = this.#rule
    const asked = [...this.#running].filter(({ giveWay }) => giveWay !== null)
    if (asked.some(({ giveWay }) => giveWay?.signal.aborted)) return
    // In the order in which it began.
    const [longest] = asked
    if (longest === undefined || givingWay === undefined) return
    if (this.#nowMs() - longest.startedMs >= givingWay.ranMs) longest.giveWay?.abort(givingWay.refusal())
  }
}
