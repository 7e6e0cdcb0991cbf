// What is under way, in any unit, and how it is divided: into organisations, their lines of tokens, and the
// branches of those. Limits are divided equally between the parts that have something under way. So who has
// much can't keep the others from what they need. A part that has nothing takes no memory.

import type { CallerLine } from '../../core/caller.ts'

/** The line and branch of tokens whose root is unknown; no id is empty. */
export const unknownLine: CallerLine = { root: '', branch: '' }

/** An amount, and the amounts of its parts. */
export class Shares {
  #amount = 0
  readonly #parts = new Map<string, Shares>()

  get amount(): number {
    return this.#amount
  }

  /** The part with this name; an empty one where there is none. */
  part(name: string): Shares {
    return this.#parts.get(name) ?? new Shares()
  }

  /** Number of parts that have something, once this one has more. */
  partsWith(name: string): number {
    return this.#parts.size + (this.#parts.has(name) ? 0 : 1)
  }

  /** Changes the amount of the part with this path, and of all that contain it. */
  add([name, ...rest]: readonly string[], change: number): void {
    this.#amount += change
    if (name === undefined) return
    const part = this.part(name)
    part.add(rest, change)
    if (part.amount === 0) this.#parts.delete(name)
    else this.#parts.set(name, part)
  }

  /**
   * Whether the part with this path, or one that contains it, has less than its equal share of the limit,
   * also with that much more.
   */
  hasLess([name, ...rest]: readonly string[], limit: number, more = 0): boolean {
    if (name === undefined) return false
    const part = this.part(name)
    const share = limit / this.partsWith(name)
    return part.amount + more < share || part.hasLess(rest, share, more)
  }

  /** The path of the largest part, of the largest part of that, and so on; empty where there is none. */
  largest(): string[] {
    const parts = [...this.#parts]
    const [first] = parts
    if (first === undefined) return []
    const [name, part] = parts.reduce((a, b) => (b[1].amount > a[1].amount ? b : a), first)
    return [name, ...part.largest()]
  }
}
