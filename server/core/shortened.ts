// Shortens input to the size that a response may contain. All quoted input must go through here: a name of 60
// kB in each of a thousand quotations is 60 MB. A shortened text says how much is missing.

/** Returns at most `limit` characters of a text, followed by the number of the others. */
export function shortText(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `${text.slice(0, limit).toWellFormed()}… (${text.length - limit} more characters)`
}

/**
 * Characters that count for a value besides those of its texts: quotes, commas, a number. So nesting is
 * limited too.
 */
const valueCost = 4

/**
 * Returns a copy of a JSON value with about `limit` characters in all its texts and names, and `textLimit` in
 * each. Keeps the first items and members; an item or a member named `…` says how many are missing. What JSON
 * can't represent becomes text.
 */
export function shortValue(value: unknown, limit: number, textLimit: number): unknown {
  return new Shortener(limit, textLimit).copy(value)
}

class Shortener {
  readonly #textLimit: number
  #left: number

  constructor(limit: number, textLimit: number) {
    this.#left = limit
    this.#textLimit = textLimit
  }

  copy(value: unknown): unknown {
    this.#left -= valueCost
    if (typeof value === 'string') return this.#text(value)
    if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
    if (typeof value !== 'object') return value === undefined ? undefined : this.#text(String(value))
    return Array.isArray(value) ? this.#list(value) : this.#members(value)
  }

  #text(text: string): string {
    const short = shortText(text, Math.min(this.#textLimit, Math.max(this.#left, 0)))
    this.#left -= short.length
    return short
  }

  #list(items: readonly unknown[]): unknown[] {
    const kept: unknown[] = []
    for (const item of items) {
      if (this.#left <= 0) return [...kept, `… (${items.length - kept.length} more)`]
      kept.push(this.copy(item))
    }
    return kept
  }

  #members(object: object): object {
    const names = Object.keys(object)
    const kept: [string, unknown][] = []
    for (const name of names) {
      if (this.#left <= 0) {
        kept.push(['…', `(${names.length - kept.length} more)`])
        break
      }
      kept.push([this.#text(name), this.copy(Reflect.get(object, name))])
    }
    // Defines each name as an own property, also a name that every object inherits.
    return Object.fromEntries(kept)
  }
}
