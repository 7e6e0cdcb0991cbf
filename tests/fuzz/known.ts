// Values that a client has learnt from responses: ids by their origin, cursors, entity tags. Requests with
// existing ids reach more code than those with invented ones.

import type { Chance } from './chance.ts'

/** Number of values per kind; new ones replace the oldest. */
const keptMax = 60

export class Known {
  readonly #kept = new Map<string, string[]>()
  readonly #chance: Chance

  constructor(chance: Chance) {
    this.#chance = chance
  }

  /**
   * Returns a value of that kind, such as `request_id`, `cursor` or `etag`; undefined while none is known.
   */
  pick(kind: string): string | undefined {
    const kept = this.#kept.get(kind)
    return kept === undefined ? undefined : this.#chance.pick(kept)
  }

  keep(kind: string, value: string): void {
    const kept = this.#kept.get(kind) ?? []
    this.#kept.set(kind, kept)
    if (kept.includes(value)) return
    kept.push(value)
    if (kept.length > keptMax) kept.shift()
  }

  /** Stores everything in a response that later requests may name. `path` is that of the operation. */
  learn(path: string, value: unknown): void {
    if (Array.isArray(value)) for (const item of value) this.learn(path, item)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [key, member] of Object.entries(value)) {
      if (typeof member !== 'string') this.learn(path, member)
      else if (key === 'next_cursor') this.keep('cursor', member)
      else if (key === 'id') this.keep(kindOf(path), member)
      else if (key.endsWith('_id') || key === 'metric_key' || key === 'service') this.keep(key, member)
    }
  }
}

const kinds: readonly (readonly [part: string, kind: string])[] = [
  ['/preview', 'preview_id'],
  ['/deletions', 'request_id'],
  ['/detectors', 'detector_id'],
  ['/mutes', 'mute_id'],
  ['/anomalies', 'anomaly_id'],
  ['/incidents', 'incident_id'],
  ['/holds', 'hold_id'],
  ['/tokens', 'token_id'],
]

function kindOf(path: string): string {
  return kinds.find(([part]) => path.includes(part))?.[1] ?? 'id'
}
