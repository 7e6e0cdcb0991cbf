// Which kind a metric's name was last found to be, so that the next read begins with the right table: to find
// it out takes longer than to read a window. It only says where to look first. A read that finds nothing
// there looks everywhere, a memory serves a few reads and is then made anew, and all of an organisation's are
// gone with the first thing that is hidden of it, so nothing erased is remembered.

import type { TelemetryGate } from '../telemetry/gate.ts'
import type { MetricKind } from './metric-kind.ts'

/**
 * Reads that one memory serves: a name that comes to be used for a second kind is read
 * as before for that long.
 */
const usesMax = 20

/** Names that are remembered of one organisation, and of all; whoever has more finds out more often. */
const namesMax = 1000
const organisationsMax = 1000

interface Memory {
  readonly kind: MetricKind
  uses: number
}

export class KindMemory {
  readonly #kinds = new Map<string, Map<string, Memory>>()

  /** Where to look first, if anywhere. */
  recall(tenantId: string, metric: string): MetricKind | undefined {
    const own = this.#kinds.get(tenantId)
    const memory = own?.get(metric)
    if (memory === undefined) return undefined
    memory.uses++
    if (memory.uses >= usesMax) own?.delete(metric)
    return memory.kind
  }

  /** To be told what was looked up and not recalled, and only where nothing was hidden since. */
  remember(tenantId: string, metric: string, kind: MetricKind): void {
    const own = this.#kinds.get(tenantId) ?? new Map<string, Memory>()
    if (own.size >= namesMax) own.clear()
    if (!this.#kinds.has(tenantId) && this.#kinds.size >= organisationsMax) this.#kinds.clear()
    this.#kinds.set(tenantId, own)
    own.set(metric, { kind, uses: 0 })
  }

  forget(tenantId: string): void {
    this.#kinds.delete(tenantId)
  }
}

const memories = new WeakMap<TelemetryGate, KindMemory>()

/**
 * The memory of everybody who reads behind this gate, which forgets an organisation when
 * something of it is hidden.
 */
export function kindMemoryOf(gate: TelemetryGate): KindMemory {
  const known = memories.get(gate)
  if (known !== undefined) return known
  const memory = new KindMemory()
  gate.onHide((tenantId) => memory.forget(tenantId))
  memories.set(gate, memory)
  return memory
}
