// What a sender gave, in the size that an answer has room for. Whoever quotes input quotes it through
// here: a name of 60 kB that stands in each of a thousand quotations is 60 MB. What was cut says so,
// and how much is missing.

/** A text of `limit` characters at most, and then how many more it has. */
export function shortText(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `${text.slice(0, limit).toWellFormed()}… (${text.length - limit} more characters)`
}

/**
 * Characters that a value takes beside those of its texts: quotes, commas, a number. So
 * nesting has an end as well.
 */
const valueCost = 4

/**
 * A copy of a JSON value with texts and names of about `limit` characters in all, and of `textLimit` each.
 * The first of its items and members are kept; an item or a member named `…` says how many are missing. What
 * JSON can't say becomes text.
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
    // Defines each name as its own, also one that every object inherits.
    return Object.fromEntries(kept)
  }
}
