// ClickHouse SQL as a value: text with typed holes. A hole is always bound by the engine, never spliced into
// the text, so telemetry, attribute keys and ids from outside can't become syntax. Fragments nest; parameters
// get their names when the whole statement is rendered.

import type { Ns } from '../../contract/instant.ts'

/** A value with the ClickHouse type it is bound as. */
export class Bound {
  readonly type: string
  readonly value: unknown

  constructor(type: string, value: unknown) {
    this.type = type
    this.value = value
  }
}

export class Sql {
  readonly strings: readonly string[]
  readonly parts: readonly (Sql | Bound)[]

  constructor(strings: readonly string[], parts: readonly (Sql | Bound)[]) {
    this.strings = strings
    this.parts = parts
  }
}

/** A statement or fragment: ``sql`select count() from ${table} where ServiceName = ${name}` ``. Strings bind as String. */
export function sql(strings: TemplateStringsArray, ...parts: readonly (Sql | Bound | string)[]): Sql {
  return new Sql(
    strings,
    parts.map((part) => (typeof part === 'string' ? new Bound('String', part) : part)),
  )
}

/** Trusted text of our own, such as a column from a table of this repository. Never anything from outside. */
export function raw(text: string): Sql {
  return new Sql([text], [])
}

/** Fragments with a separator between them; `empty` where there is none. */
export function join(fragments: readonly Sql[], separator: string, empty: Sql = raw('')): Sql {
  if (fragments.length === 0) return empty
  const gaps = fragments.slice(1).map(() => separator)
  return new Sql(['', ...gaps, ''], fragments)
}

/** Conditions joined by AND; true where there is none. */
export function allOf(conditions: readonly Sql[]): Sql {
  return join(
    conditions.map((condition) => sql`(${condition})`),
    ' AND ',
    raw('1'),
  )
}

/** A telemetry instant, exact to the nanosecond. */
export function instant(ns: Ns): Sql {
  return sql`fromUnixTimestamp64Nano(${new Bound('Int64', ns.toString())}, 'UTC')`
}

export function uint(value: number | bigint): Bound {
  return new Bound('UInt64', value.toString())
}

export function strings(values: readonly string[]): Bound {
  return new Bound('Array(String)', values)
}

export interface RenderedSql {
  readonly text: string
  readonly params: Record<string, unknown>
}

/** The statement with named holes `{p0:String}` and their values. */
export function render(statement: Sql): RenderedSql {
  const params: Record<string, unknown> = {}
  let count = 0
  const write = (fragment: Sql): string =>
    fragment.strings.reduce((text, piece, i) => {
      const part = fragment.parts[i - 1]
      if (part === undefined) return text + piece
      if (part instanceof Sql) return text + write(part) + piece
      const name = `p${count++}`
      params[name] = part.value
      return `${text}{${name}:${part.type}}${piece}`
    })
  // `reduce` without a seed starts with the first piece, so a fragment always has one more piece than parts.
  return { text: write(statement), params }
}
