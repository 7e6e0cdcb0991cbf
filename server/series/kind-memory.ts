// Remembers the kind that was last found for a metric's name, so that the next read begins with the right
// table: finding the kind takes longer than reading a window. The kind only decides which table is read
// first; a read that finds nothing there reads the others. A memory serves a few reads and is then created
// again. When something of an organisation is hidden, its whole memory is removed, so nothing that is erased
// is remembered.

import type { TelemetryGate } from '../telemetry/gate.ts'
import type { MetricKind } from './metric-kind.ts'

/** Reads that one memory serves: a name that gets a second kind is read as before for at most that many. */
const usesMax = 20

/**
 * Limits of remembered names: of one organisation, and of all. With more names the kind must be found more
 * often.
 */
const namesMax = 1000
const organisationsMax = 1000

interface Memory {
  readonly kind: MetricKind
  uses: number
}

export class KindMemory {
  readonly #kinds = new Map<string, Map<string, Memory>>()

  /** Returns the kind to try first; undefined where none is remembered. */
  recall(tenantId: string, metric: string): MetricKind | undefined {
    const own = this.#kinds.get(tenantId)
    const memory = own?.get(metric)
    if (memory === undefined) return undefined
    memory.uses++
    if (memory.uses >= usesMax) own?.delete(metric)
    return memory.kind
  }

  /** Call it for a kind that was found and not recalled, and only where nothing was hidden since. */
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
 * Returns the memory of all readers of this gate, which forgets an organisation when something of it is
 * hidden.
 */
export function kindMemoryOf(gate: TelemetryGate): KindMemory {
  const known = memories.get(gate)
  if (known !== undefined) return known
  const memory = new KindMemory()
  gate.onHide((tenantId) => memory.forget(tenantId))
  memories.set(gate, memory)
  return memory
}
