// The format of a set of attributes in a table: one text, `start key middle value start key middle value
// start`; the empty text for an empty set. Start and middle are bytes that never occur in UTF-8, and all keys
// and values are UTF-8, so nothing has to be escaped and no key or value can imitate another. A text is
// written, merged and read at once, a map string by string; docs/decisions/0018 has the measurements. Views
// compute the maps of the Collector's exporter from these texts (exporter-views.ts).

/** Precedes each key, and follows the last value. */
export const pairStart = 0xfe

/** Separates a key from its value. */
export const pairMiddle = 0xff

const [start, middle] = [pairStart, pairMiddle].map((byte) => `char(${byte})`)

/** Expression of the pairs in a column, `Array(String)` of key, middle and value. */
export function pairsIn(column: string): string {
  return `arrayFilter(pair -> notEmpty(pair), splitByChar(${start}, toString(${column})))`
}

/**
 * Expressions of the key and of the value of such a pair. They don't use `position`: for a single byte of
 * 0x80 or above it misses matches in the last bytes of a block where the processor has no AVX-512 (seen with
 * the engine's version 26.7.2).
 */
export const pairKey = `substringIndex(pair, ${middle}, 1)`
export const pairValue = `substringIndex(pair, ${middle}, -1)`

const mapType = 'Map(LowCardinality(String), String)'

/**
 * Expression of the map of a column of pairs. It is as short as possible, because for each statement that
 * names a view the engine resolves everything that the view computes, even if the statement does not use it
 * (docs/decisions/0019).
 */
export function mapOfPairs(column: string): string {
  const pairs = `arrayPopBack(arrayPopFront(splitByChar('\\xfe', toString(${column}))))`
  const pair = `(substringIndex(pair, '\\xff', 1), substringIndex(pair, '\\xff', -1))`
  return `CAST(arrayMap(pair -> ${pair}, ${pairs}), '${mapType}')`
}

/** Expression of the text of a map. */
export function pairsOfMap(map: string): string {
  const pairs = `arrayMap((key, value) -> concat(${start}, key, ${middle}, value), mapKeys(${map}), mapValues(${map}))`
  return `if(empty(${map}), '', concat(arrayStringConcat(${pairs}), ${start}))`
}

/** A column of the exporter that has a map, or a list of maps, in each row. */
export interface MapColumn {
  readonly name: string
  readonly isList: boolean
}

export function mapColumnType({ isList }: MapColumn): string {
  return isList ? `Array(${mapType})` : mapType
}

/** Expression of the exporter's column from the column of pairs; of a list of maps from a list of pairs. */
export function mapColumnExpression({ isList }: MapColumn, pairs: string): string {
  return isList ? `arrayMap(pairs -> ${mapOfPairs('pairs')}, ${pairs})` : mapOfPairs(pairs)
}

/** Expression of the column of pairs from the exporter's column. */
export function pairColumnExpression({ isList, name }: MapColumn): string {
  return isList ? `arrayMap(one -> ${pairsOfMap('one')}, \`${name}\`)` : pairsOfMap(`\`${name}\``)
}
