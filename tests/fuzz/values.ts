// Random values from a JSON Schema: valid ones, often at the limits of what is allowed, and valid ones that
// were changed at one position.

import fc from 'fast-check'
import type { Chance } from './chance.ts'
import { type Document, type JsonSchema, resolve } from './operations.ts'

/** Returns a value that the service knows, by the name of its field; undefined where there is none. */
type Hint = (name: string) => unknown

const deepest = 6

export class Values {
  readonly #document: Document
  readonly #chance: Chance
  readonly #hint: Hint
  readonly #matching = new Map<string, readonly string[]>()

  constructor(document: Document, chance: Chance, hint: Hint) {
    this.#document = document
    this.#chance = chance
    this.#hint = hint
  }

  /** Returns a value that the schema accepts; `name` is that of the field. */
  valid(given: JsonSchema, name = '', depth = 0): unknown {
    const chance = this.#chance
    const schema = resolve(this.#document, given)
    if (schema.const !== undefined) return schema.const
    if (schema.enum !== undefined) return chance.pick(schema.enum)
    const hinted = chance.is(0.75) ? this.#hint(name) : undefined
    if (hinted !== undefined) return hinted
    const branches = schema.anyOf ?? schema.oneOf
    if (branches !== undefined) return this.valid(chance.pick(branches), name, depth + 1)
    if (schema.allOf !== undefined) {
      return Object.assign({}, ...schema.allOf.map((part) => this.valid(part, name, depth + 1)))
    }
    const type = typeof schema.type === 'object' ? chance.pick(schema.type) : schema.type
    if (type === 'string') return this.#string(schema)
    if (type === 'integer' || type === 'number') return this.#number(schema, type === 'integer')
    if (type === 'boolean') return chance.is(0.5)
    if (type === 'null') return null
    if (type === 'array') return this.#list(schema, name, depth)
    if (type === 'object') return this.#object(schema, depth)
    return this.any(depth)
  }

  /** Any JSON. */
  any(depth = 0): unknown {
    const { any } = this
    const chance = this.#chance
    if (depth < deepest && chance.is(0.2))
      return Array.from({ length: chance.integer(0, 3) }, () => any.call(this, depth + 1))
    if (depth < deepest && chance.is(0.2)) return { [this.text(12)]: this.any(depth + 1) }
    return chance.pick([null, true, 0, -1, 1e308, 0.1, this.text(8), '', 2 ** 53])
  }

  /** Text of up to `most` UTF-16 units, with characters that often cause errors. */
  text(most: number): string {
    const chance = this.#chance
    const alphabet = chance.is(0.7) ? plain : strange
    return Array.from({ length: chance.integer(0, most) }, () => chance.pick(alphabet))
      .join('')
      .slice(0, most)
  }

  /** Returns the same value, changed at one position. */
  broken(value: unknown): unknown {
    const chance = this.#chance
    if (Array.isArray(value) && value.length > 0 && chance.is(0.7)) {
      const at = chance.integer(0, value.length - 1)
      return value.map((item, i) => (i === at ? this.broken(item) : item))
    }
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return this.#brokenObject(value)
    return chance.pick<() => unknown>([
      () => this.any(),
      () => null,
      () => [value],
      () => ({ value }),
      () => this.text(40).repeat(chance.pick([1, 10, 400])),
      () => chance.pick([-1, 0, 1e18, -1e18, 0.5, Number.MAX_SAFE_INTEGER, 2 ** 63]),
      () => nested(chance.integer(1, 200)),
      () => Array.from({ length: chance.pick([0, 2, 600]) }, () => value),
      () =>
        chance.pick([
          '0001-01-01T00:00:00Z',
          '9999-12-31T23:59:59.999999999Z',
          '2026-02-30T00:00:00Z',
          '-999d',
        ]),
    ])()
  }

  #brokenObject(value: object): object {
    const chance = this.#chance
    const keys = Object.keys(value)
    if (keys.length > 0 && chance.is(0.6)) {
      const key = chance.pick(keys)
      return defined(value, key, this.broken(Reflect.get(value, key)))
    }
    if (keys.length > 0 && chance.is(0.5)) {
      const gone = chance.pick(keys)
      return Object.fromEntries(Object.entries(value).filter(([key]) => key !== gone))
    }
    return defined(
      value,
      chance.pick(['__proto__', 'constructor', '', this.text(30), 'id', 'tenant_id']),
      this.any(),
    )
  }

  #string({ format, maxLength, minLength = 0, pattern }: JsonSchema): string {
    const chance = this.#chance
    if (format === 'date-time') return new Date(Date.now() - chance.integer(-1, 40) * 3_600_000).toISOString()
    if (pattern !== undefined) return chance.pick(this.#samplesOf(pattern))
    const most = Math.max(minLength, Math.min(maxLength ?? 40, chance.is(0.05) ? 5000 : 40))
    const text = this.text(most)
    return text.length >= minLength ? text : text.padEnd(minLength, 'x')
  }

  #samplesOf(pattern: string): readonly string[] {
    const known = this.#matching.get(pattern)
    if (known !== undefined) return known
    const made = fc.sample(fc.stringMatching(new RegExp(pattern)), { numRuns: 50, seed: 1 })
    this.#matching.set(pattern, made)
    return made
  }

  #number(
    { maximum = 1e6, minimum = -1e6, exclusiveMaximum, exclusiveMinimum }: JsonSchema,
    isInteger: boolean,
  ): number {
    const chance = this.#chance
    const least = exclusiveMinimum === undefined ? minimum : exclusiveMinimum + (isInteger ? 1 : 1e-9)
    const most = exclusiveMaximum === undefined ? maximum : exclusiveMaximum - (isInteger ? 1 : 1e-9)
    if (chance.is(0.2)) return chance.pick([least, most])
    // People send small numbers, and large ones take time.
    const near = Math.min(most, least + 1000)
    return isInteger
      ? chance.integer(Math.ceil(least), Math.floor(near))
      : least + (near - least) * (chance.integer(0, 1000) / 1000)
  }

  #list({ items = {}, maxItems = 4, minItems = 0 }: JsonSchema, name: string, depth: number): unknown[] {
    const most = depth >= deepest ? minItems : Math.min(maxItems, minItems + 3)
    return Array.from({ length: this.#chance.integer(minItems, most) }, () =>
      this.valid(items, name, depth + 1),
    )
  }

  #object(
    { additionalProperties, properties = {}, propertyNames, required = [] }: JsonSchema,
    depth: number,
  ): object {
    const chance = this.#chance
    let made: object = {}
    for (const [key, schema] of Object.entries(properties)) {
      if (!required.includes(key) && !chance.is(depth < deepest ? 0.35 : 0)) continue
      made = defined(made, key, this.valid(schema, key, depth + 1))
    }
    if (typeof additionalProperties !== 'object') return made
    for (let i = chance.integer(0, 2); i > 0; i--) {
      const key = String(propertyNames === undefined ? this.text(12) : this.valid(propertyNames))
      made = defined(made, key, this.valid(additionalProperties, key, depth + 1))
    }
    return made
  }
}

const plain = [...'abcdefghijklmnopqrstuvwxyz0123456789._-/ ']
const strange = [
  ...'\u0000\u0001\n\r\t"\'\\%_{}[]<>&;`$',
  '\u202e',
  '\u2028',
  'é',
  '😀',
  '\ud800',
  'ÿ',
  '\ufeff',
]

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

/** Returns a copy with that own key, also where every object inherits the name. */
function defined(value: object, key: string, member: unknown): object {
  const copy = { ...value }
  Object.defineProperty(copy, key, { value: member, enumerable: true, configurable: true, writable: true })
  return copy
}
