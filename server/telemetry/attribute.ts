// Attributes in statements, over the texts of pairs that rows hold (schema/attribute-pairs.ts). Where a record has no
// attribute of a name, that of its resource stands for it. Whole sets are answered as they are stored and taken apart here,
// because to plan how the engine would make maps of them takes it longer than to read them.

import { pairMiddle, pairStart } from './schema/attribute-pairs.ts'
import { bytes, raw, type Sql, sql } from './sql.ts'

/** Column of a resource's attributes, in all tables. */
const resourceColumn = 'ResourceAttributesPairs'

/**
 * An attribute of the record itself or, where it has none of that name, of its resource; empty where neither has.
 *
 * @param column of the record's own pairs
 */
export function attribute(column: string, key: string): Sql {
  return sql`if(${hasKey(column, key)}, ${valueIn(column, key)}, if(${hasKey(resourceColumn, key)}, ${valueIn(resourceColumn, key)}, ''))`
}

/** Whether {@link attribute} is that value. */
export function hasAttribute(column: string, key: string, value: string): Sql {
  const pair = bytes(pairStart, key, pairMiddle, value, pairStart)
  const isIn = (own: string) => sql`position(${raw(own)}, ${pair}) > 0`
  // What is absent counts as empty.
  const ofResource =
    value === '' ? sql`(${isIn(resourceColumn)} OR NOT ${hasKey(resourceColumn, key)})` : isIn(resourceColumn)
  return sql`(${isIn(column)} OR (${ofResource} AND NOT ${hasKey(column, key)}))`
}

/** Whether a record has an attribute of its own. */
export function hasKey(column: string, key: string): Sql {
  return sql`position(${raw(column)}, ${bytes(pairStart, key, pairMiddle)}) > 0`
}

/** The value of a key that is there. */
function valueIn(column: string, key: string): Sql {
  const before = bytes(pairStart, key, pairMiddle)
  const rest = sql`substring(${raw(column)}, position(${raw(column)}, ${before}) + length(${before}))`
  return sql`substringIndex(${rest}, ${bytes(pairStart)}, 1)`
}

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
