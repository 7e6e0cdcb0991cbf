// Attributes in statements, over the texts of pairs that rows hold (schema/attribute-pairs.ts). Where a record has no
// attribute of a name, that of its resource stands for it.

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
  return sql`if(${has(column, key)}, ${valueIn(column, key)}, if(${has(resourceColumn, key)}, ${valueIn(resourceColumn, key)}, ''))`
}

/** Whether {@link attribute} is that value. */
export function hasAttribute(column: string, key: string, value: string): Sql {
  const pair = bytes(pairStart, key, pairMiddle, value, pairStart)
  const isIn = (own: string) => sql`position(${raw(own)}, ${pair}) > 0`
  // What is absent counts as empty.
  const ofResource =
    value === '' ? sql`(${isIn(resourceColumn)} OR NOT ${has(resourceColumn, key)})` : isIn(resourceColumn)
  return sql`(${isIn(column)} OR (${ofResource} AND NOT ${has(column, key)}))`
}

function has(column: string, key: string): Sql {
  return sql`position(${raw(column)}, ${bytes(pairStart, key, pairMiddle)}) > 0`
}

/** The value of a key that is there. */
function valueIn(column: string, key: string): Sql {
  const before = bytes(pairStart, key, pairMiddle)
  const rest = sql`substring(${raw(column)}, position(${raw(column)}, ${before}) + length(${before}))`
  return sql`substringIndex(${rest}, ${bytes(pairStart)}, 1)`
}
