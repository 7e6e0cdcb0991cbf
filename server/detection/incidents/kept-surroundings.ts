// Surroundings of incidents that are kept in memory for the next reader, of all organisations. They take a
// limited number of bytes together: where there is no room, the organisation that has most loses its oldest.

import type { Clue } from './clues.ts'
import type { Surroundings } from './grouping.ts'

export interface KnownSurroundings extends Surroundings {
  /** What spans point to; null where there are none, or where they could not be read in time. */
  readonly clues: readonly Clue[] | null
}

interface Kept {
  /** That of the gate when it was read. */
  readonly visibility: number
  readonly found: KnownSurroundings
}

/** Those of one organisation, oldest first. */
interface Own {
  readonly entries: Map<string, Kept & { readonly bytes: number }>
  bytes: number
}

/** Usual ones take some 60 kB, and the largest a few megabytes. */
const bytesMax = 64 << 20
const entriesOfOne = 30
const organisationsMax = 20

export class KeptSurroundings {
  readonly #bytesMax: number
  readonly #kept = new Map<string, Own>()
  #bytes = 0

  constructor(bytesOfAll = bytesMax) {
    this.#bytesMax = bytesOfAll
  }

  /** Undefined where nothing is kept that was read with this visibility. */
  find(tenantId: string, key: string, visibility: number): KnownSurroundings | undefined {
    const kept = this.#kept.get(tenantId)?.entries.get(key)
    return kept?.visibility === visibility ? kept.found : undefined
  }

  keep(tenantId: string, key: string, kept: Kept): void {
    const bytes = bytesOf(kept.found)
    this.#drop(tenantId, key)
    if ((this.#kept.get(tenantId)?.entries.size ?? 0) >= entriesOfOne) this.#dropOldest(tenantId)
    const own = this.#kept.get(tenantId) ?? { entries: new Map(), bytes: 0 }
    const [first] = this.#kept.keys()
    if (!this.#kept.has(tenantId) && this.#kept.size >= organisationsMax) this.forget(first ?? '')
    this.#kept.set(tenantId, own)
    own.entries.set(key, { ...kept, bytes })
    own.bytes += bytes
    this.#bytes += bytes
    while (this.#bytes > this.#bytesMax) this.#dropOldest(this.#largest())
  }

  /** Drops everything of an organisation. */
  forget(tenantId: string): void {
    this.#bytes -= this.#kept.get(tenantId)?.bytes ?? 0
    this.#kept.delete(tenantId)
  }

  #dropOldest(tenantId: string): void {
    const [oldest] = this.#kept.get(tenantId)?.entries.keys() ?? []
    if (oldest !== undefined) this.#drop(tenantId, oldest)
  }

  #drop(tenantId: string, key: string): void {
    const own = this.#kept.get(tenantId)
    const dropped = own?.entries.get(key)
    if (own === undefined || dropped === undefined) return
    own.entries.delete(key)
    own.bytes -= dropped.bytes
    this.#bytes -= dropped.bytes
    if (own.entries.size === 0) this.#kept.delete(tenantId)
  }

  #largest(): string {
    const bySize = [...this.#kept].reduce((most, one) => (one[1].bytes > most[1].bytes ? one : most))
    return bySize[0]
  }
}

/** One object with its numbers and the headers of its texts. */
const objectBytes = 200

/** An estimate, rather too much: a text that several objects share is counted for each of them. */
function bytesOf({ clues, deploys, graph }: KnownSurroundings): number {
  const texts = [
    ...deploys.map((one) => [one.environment, one.previous_version, one.service, one.version]),
    ...(clues ?? []).map((one) => [one.metricKey, one.service, one.text]),
  ]
  // A text has one or two bytes for each character.
  return texts
    .map((own) => objectBytes + 2 * own.reduce((chars, text) => chars + (text?.length ?? 0), 0))
    .reduce((sum, bytes) => sum + bytes, graph.bytesMax)
}
