// What a sender gave, in the size that an answer has room for. Whoever quotes input quotes it through here: a name of
// 60 kB that stands in each of a thousand quotations is 60 MB. What was cut says so, and how much is missing.

/** A text of `limit` characters at most, and then how many more it has. */
export function shortText(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `${text.slice(0, limit).toWellFormed()}… (${text.length - limit} more characters)`
}

/** Arrays and objects within each other; deeper ones are an ellipsis. */
const depthMax = 8

/** Characters of one text or name. */
const textMax = 300

/** Characters that a value takes beside those of its texts: quotes, commas, a number. */
const valueCost = 4

/**
 * A copy of a JSON value with texts and names of about `limit` characters in all. The first of its items and members are
 * kept; an item or a member named `…` says how many are missing. What JSON can't say becomes text.
 */
export function shortValue(value: unknown, limit: number): unknown {
  return new Shortener(limit).copy(value, 0)
}

class Shortener {
  #left: number

  constructor(limit: number) {
    this.#left = limit
  }

  copy(value: unknown, depth: number): unknown {
    this.#left -= valueCost
    if (typeof value === 'string') return this.#text(value)
    if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
    if (typeof value !== 'object') return value === undefined ? undefined : this.#text(String(value))
    if (depth === depthMax) return '…'
    return Array.isArray(value) ? this.#list(value, depth) : this.#members(value, depth)
  }

  #text(text: string): string {
    const short = shortText(text, Math.min(textMax, Math.max(this.#left, 0)))
    this.#left -= short.length
    return short
  }

  #list(items: readonly unknown[], depth: number): unknown[] {
    const kept: unknown[] = []
    for (const item of items) {
      if (this.#left <= 0) return [...kept, `… (${items.length - kept.length} more)`]
      kept.push(this.copy(item, depth + 1))
    }
    return kept
  }

  #members(object: object, depth: number): object {
    const names = Object.keys(object)
    const kept: [string, unknown][] = []
    for (const name of names) {
      if (this.#left <= 0) {
        kept.push(['…', `(${names.length - kept.length} more)`])
        break
      }
      kept.push([this.#text(name), this.copy(Reflect.get(object, name), depth + 1)])
    }
    // Defines each name as its own, also one that every object inherits.
    return Object.fromEntries(kept)
  }
}
