// Attributes in statements, over the texts of pairs that rows hold (schema/attribute-pairs.ts). Where a
// record has no attribute of a name, that of its resource stands for it. Nested values of logs and spans are
// JSON texts, which are read where a name may lead into one; what is stored stays as it is. Points of metrics
// have no nested attributes (OpenTelemetry's metrics data model), and a filter on them is in the plan of each
// metric table. Whole sets are answered as they are stored and taken apart here, because to plan how the
// engine would make maps of them takes it longer than to read them.

import { pairMiddle, pairStart } from './schema/attribute-pairs.ts'
import { bytes, join, raw, type Sql, sql } from './sql.ts'

/** Column of a resource's attributes, in all tables. */
const resourceColumn = 'ResourceAttributesPairs'

/** Column of a metric point's own attributes. */
const pointColumn = 'AttributesPairs'

/**
 * An attribute of the record itself or, where it has none of that name, of its resource. Where neither has, a
 * name with dots may be a path into a nested value of a log or a span, and points of metrics have the labels
 * that Prometheus knows their source by. Empty where there is nothing.
 *
 * @param column of the record's own pairs
 */
export function attribute(column: string, key: string): Sql {
  const [own, resource] = [hasKey(column, key), hasKey(resourceColumn, key)]
  const label = labelOf(column, key)
  const ways = waysOf(column, key)
  const cases = [
    sql`${own}, ${valueIn(column, key)}`,
    sql`${resource}, ${valueIn(resourceColumn, key)}`,
    ...(label === undefined ? [] : [label]),
    ...(ways.length === 0 ? [] : [sql`${mayLead(column, key)}, ${nestedText(ways)}`]),
  ]
  return sql`multiIf(${join(cases, ', ')}, '')`
}

/**
 * Whether {@link attribute} is that value, or a list with that item. One search of each set for all that
 * could make it so comes first, so that what it takes to be sure is computed for few rows only.
 */
export function hasAttribute(column: string, key: string, value: string): Sql {
  // What is absent counts as empty.
  if (value === '') return sql`${attribute(column, key)} = ''`
  const pair = bytes(pairStart, key, pairMiddle, value, pairStart)
  const ways = waysOf(column, key)
  const isAbsent = sql`NOT ${hasKey(column, key)} AND NOT ${hasKey(resourceColumn, key)}`
  const marks = [
    sql`${pair}`,
    sql`${bytes(pairStart, key, pairMiddle, '[')}`,
    ...ways.slice(0, 1).map(() => sql`${nestedMark(key)}`),
  ]
  const search = (own: string) => sql`multiSearchAny(${raw(own)}, [${join(marks, ', ')}])`
  const sure = [
    sql`position(${raw(column)}, ${pair}) > 0`,
    sql`(position(${raw(resourceColumn)}, ${pair}) > 0 AND NOT ${hasKey(column, key)})`,
    hasItem(valueOfKey(column, key), value),
    ...(ways.length === 0 ? [] : [sql`(${isAbsent} AND ${isNested(ways, value)})`]),
  ]
  const found = sql`((${search(column)} OR ${search(resourceColumn)}) AND (${join(sure, ' OR ')}))`
  const label = labelOf(column, key)
  return label === undefined ? found : sql`(${found} OR (${isAbsent} AND multiIf(${label}, '') = ${value}))`
}

/** Whether the record or its resource has an attribute of that name at all. */
export function knowsAttribute(column: string, key: string): Sql {
  const ways = waysOf(column, key)
  const found = ways.map(({ json, path }) => sql`JSONHas(${json}, ${path})`)
  return sql`(${join(
    [
      hasKey(column, key),
      hasKey(resourceColumn, key),
      ...(labelOf(column, key) === undefined ? [] : [sql`${attribute(column, key)} != ''`]),
      ...(ways.length === 0 ? [] : [sql`(${mayLead(column, key)} AND (${join(found, ' OR ')}))`]),
    ],
    ' OR ',
  )})`
}

/** Stands for a key and the bytes around it while a value is cut out; like those, no UTF-8 has it. */
const keyMark = bytes(0xfd)

/**
 * The value of a key of a set; empty where the set has none. Nothing but the column varies in it, so of a
 * column with a dictionary the engine computes it once for each entry of that.
 */
export function pairIn(column: string, key: string): Sql {
  const marked = sql`replaceOne(${raw(column)}, ${bytes(pairStart, key, pairMiddle)}, ${keyMark})`
  return sql`substringIndex(substringIndex(${marked}, ${keyMark}, -1), ${bytes(pairStart)}, 1)`
}

/** Whether a record has an attribute of its own. */
export function hasKey(column: string, key: string): Sql {
  return sql`position(${raw(column)}, ${bytes(pairStart, key, pairMiddle)}) > 0`
}

/** The value of a key of a set that has it. */
function valueIn(column: string, key: string): Sql {
  const before = bytes(pairStart, key, pairMiddle)
  const rest = sql`substring(${raw(column)}, position(${raw(column)}, ${before}) + length(${before}))`
  return sql`substringIndex(${rest}, ${bytes(pairStart)}, 1)`
}

/** The value that the record has of a key, else its resource; empty where neither has. */
function valueOfKey(column: string, key: string): Sql {
  const both = sql`concat(${raw(column)}, toString(${raw(resourceColumn)}))`
  const rest = sql`splitByString(${bytes(pairStart, key, pairMiddle)}, ${both})[2]`
  return sql`substringIndex(${rest}, ${bytes(pairStart)}, 1)`
}

/** Whether a JSON text is that of a list with that item. */
function hasItem(json: Sql, value: string): Sql {
  return sql`has(JSONExtract(${json}, 'Array(String)'), ${value})`
}

/** Names of more parts than these are no paths: each part is one more way in which the name may be meant. */
const partsMax = 5

/**
 * A way in which a name leads into a nested value: the JSON text of a key of the set, and
 * keys one inside the other.
 */
interface Way {
  readonly json: Sql
  readonly path: Sql
}

/**
 * The first parts of the name are a key of the set; the others lead down one by one, or
 * the last of them together.
 */
function waysOf(column: string, key: string): Way[] {
  const parts = key.split('.')
  if (parts.length > partsMax || column === pointColumn) return []
  return parts.slice(1).flatMap((_, i) => {
    const rest = parts.slice(i + 1)
    const json = valueOfKey(column, parts.slice(0, i + 1).join('.'))
    return rest.map((_, j) => {
      const keys = [...rest.slice(0, j), rest.slice(j).join('.')]
      const path = join(
        keys.map((one) => sql`${one}`),
        ', ',
      )
      return { json, path }
    })
  })
}

/**
 * Whether some JSON text of the row has a key that ends as the name does. Only such rows are looked into,
 * because to read JSON takes far longer than to search a text.
 */
function mayLead(column: string, key: string): Sql {
  const search = (own: string) => sql`position(${raw(own)}, ${nestedMark(key)}) > 0`
  return sql`(${search(column)} OR ${search(resourceColumn)})`
}

/** What a JSON text has where a key in it ends as the name does. */
function nestedMark(key: string): string {
  return JSON.stringify(key.slice(key.lastIndexOf('.') + 1)).slice(1)
}

function nestedText(ways: readonly Way[]): Sql {
  const found = ways.map(({ json, path }) => sql`nullIf(JSONExtractString(${json}, ${path}), '')`)
  return sql`coalesce(${join(found, ', ')}, '')`
}

function isNested(ways: readonly Way[], value: string): Sql {
  const found = ways.map(
    ({ json, path }) =>
      sql`JSONExtractString(${json}, ${path}) = ${value} OR has(JSONExtract(${json}, ${path}, 'Array(String)'), ${value})`,
  )
  return sql`(${join(found, ' OR ')})`
}

/**
 * Labels of Prometheus that became resource and scope on their way in, as
 * `server/ingest/prometheus/remote-write.ts` has it: of points of metrics that have no attribute of such a
 * name. Each is a condition and the text where it holds.
 */
function labelOf(column: string, key: string): Sql | undefined {
  return column === pointColumn ? labels.get(key) : undefined
}

const namespace = 'service.namespace'
const instance = 'service.instance.id'

const labels: ReadonlyMap<string, Sql> = new Map([
  [
    'job',
    sql`ServiceName != '', concat(if(${hasKey(resourceColumn, namespace)}, concat(${valueIn(resourceColumn, namespace)}, '/'), ''), toString(ServiceName))`,
  ],
  ['instance', sql`${hasKey(resourceColumn, instance)}, ${valueIn(resourceColumn, instance)}`],
  ['otel_scope_name', raw(`ScopeName != '', toString(ScopeName)`)],
  ['otel_scope_version', raw(`ScopeVersion != '', toString(ScopeVersion)`)],
])

/** A column of pairs in an answer, for {@link attributesOf}; JSON has no place for its bytes. */
export function pairsColumn(column: string): Sql {
  return raw(`base64Encode(${column})`)
}

/** A column that holds a list of texts of pairs, for {@link attributesOf} one by one. */
export function pairListColumn(column: string): Sql {
  return raw(`arrayMap(pairs -> base64Encode(pairs), ${column})`)
}

/** The attributes of a set that an answer holds. */
export function attributesOf(answered: string): Record<string, string> {
  const pairs = Buffer.from(answered, 'base64')
  const entries: [key: string, value: string][] = []
  for (let at = 0; at < pairs.length - 1; ) {
    const middle = pairs.indexOf(pairMiddle, at)
    const end = pairs.indexOf(pairStart, middle)
    entries.push([pairs.toString('utf8', at + 1, middle), pairs.toString('utf8', middle + 1, end)])
    at = end
  }
  // A key may be any name, also one that an object has by itself.
  return Object.fromEntries(entries)
}
