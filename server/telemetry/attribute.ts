// Expressions for attributes in statements, over the texts of pairs in rows (schema/attribute-pairs.ts).
// Where a record does not have an attribute, the attribute of its resource is used. Nested values of logs and
// spans are stored as JSON texts, which are read where a name may lead into one; what is stored does not
// change. Points of metrics have no nested attributes (OpenTelemetry's metrics data model); for them a filter
// is part of the plan of each metric table. Whole sets are returned as they are stored and parsed here,
// because planning maps takes the engine longer than reading the sets.

import type { Pace } from '../core/turns/pace.ts'
import { pairMiddle, pairStart } from './schema/attribute-pairs.ts'
import { bytes, join, raw, type Sql, sql } from './sql.ts'

/** Column of a resource's attributes, in all tables. */
const resourceColumn = 'ResourceAttributesPairs'

/** Column of a metric point's own attributes. */
const pointColumn = 'AttributesPairs'

/**
 * The value of an attribute of the record or, where it does not have it, of its resource. Where neither has
 * it, a name with dots may be a path into a nested value of a log or a span, and points of metrics have the
 * labels by which Prometheus identifies their source. Empty where nothing is found.
 *
 * @param column the column of the record's own pairs
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
 * Whether {@link attribute} equals `value`, or is a list that contains it. One search of each set for every
 * text that could match comes first, so that the exact test is computed for few rows only.
 */
export function hasAttribute(column: string, key: string, value: string): Sql {
  // An absent attribute counts as empty.
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

/** Whether the record or its resource has an attribute of that name. */
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

/** Replaces a key and the bytes around it while a value is cut out. Like those it never occurs in UTF-8. */
const keyMark = bytes(0xfd)

/**
 * The value of a key in a set; empty where the set does not have it. Only the column varies in the
 * expression, so the engine computes it once for each entry where the column has a dictionary.
 */
export function pairIn(column: string, key: string): Sql {
  const marked = sql`replaceOne(${raw(column)}, ${bytes(pairStart, key, pairMiddle)}, ${keyMark})`
  return sql`substringIndex(substringIndex(${marked}, ${keyMark}, -1), ${bytes(pairStart)}, 1)`
}

/** Whether a record itself has an attribute. */
export function hasKey(column: string, key: string): Sql {
  return sql`position(${raw(column)}, ${bytes(pairStart, key, pairMiddle)}) > 0`
}

/** The value of a key in a set that has it. */
function valueIn(column: string, key: string): Sql {
  const before = bytes(pairStart, key, pairMiddle)
  const rest = sql`substring(${raw(column)}, position(${raw(column)}, ${before}) + length(${before}))`
  return sql`substringIndex(${rest}, ${bytes(pairStart)}, 1)`
}

/** The value of a key in the record, or else in its resource; empty where neither has it. */
function valueOfKey(column: string, key: string): Sql {
  const both = sql`concat(${raw(column)}, toString(${raw(resourceColumn)}))`
  const rest = sql`splitByString(${bytes(pairStart, key, pairMiddle)}, ${both})[2]`
  return sql`substringIndex(${rest}, ${bytes(pairStart)}, 1)`
}

/** Whether a JSON text is a list that contains that item. */
function hasItem(json: Sql, value: string): Sql {
  return sql`has(JSONExtract(${json}, 'Array(String)'), ${value})`
}

/** Names with more parts are not read as paths: each part adds one way to interpret the name. */
const partsMax = 5

/**
 * One way in which a name leads into a nested value: the JSON text of a key of the set, and the keys below
 * it, from the outer to the inner one.
 */
interface Way {
  readonly json: Sql
  readonly path: Sql
}

/**
 * The first parts of the name are a key of the set; each of the others is one key below, or the last of them
 * together are one key.
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
 * Whether some JSON text of the row has a key that ends like the name. Only such rows are parsed, because
 * parsing JSON takes far longer than searching a text.
 */
function mayLead(column: string, key: string): Sql {
  const search = (own: string) => sql`position(${raw(own)}, ${nestedMark(key)}) > 0`
  return sql`(${search(column)} OR ${search(resourceColumn)})`
}

/** The text that a JSON text contains where one of its keys ends like the name. */
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
 * Labels of Prometheus that `server/ingest/prometheus/remote-write.ts` turned into resource and scope, for
 * points of metrics that have no attribute of that name. Each is a condition and the value where it is true.
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

/**
 * A column of pairs in a result, for {@link attributesOf}; in base64, because JSON can't contain its bytes.
 */
export function pairsColumn(column: string): Sql {
  return raw(`base64Encode(${column})`)
}

/** A column with a list of texts of pairs, for {@link attributesOf} one by one. */
export function pairListColumn(column: string): Sql {
  return raw(`arrayMap(pairs -> base64Encode(pairs), ${column})`)
}

/** Returns the attributes of a set from a result. Waits for turns of the pace: a set may have megabytes. */
export async function attributesOf(answered: string, pace: Pace): Promise<Record<string, string>> {
  const pairs = Buffer.from(answered, 'base64')
  const entries: [key: string, value: string][] = []
  for (let at = 0; at < pairs.length - 1; ) {
    if (pace.isOver()) await pace.turn()
    const middle = pairs.indexOf(pairMiddle, at)
    const end = pairs.indexOf(pairStart, middle)
    entries.push([pairs.toString('utf8', at + 1, middle), pairs.toString('utf8', middle + 1, end)])
    at = end
  }
  // A key may have any name, also that of a property that objects inherit.
  return Object.fromEntries(entries)
}
