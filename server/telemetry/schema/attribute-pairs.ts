// How a set of attributes is stored: as one text, `start key middle value start key middle value
// start`, and as the empty text where there is none. Start and middle are bytes that no UTF-8 has, and
// all keys and values are UTF-8, so nothing in them has to be escaped and none can pretend to be
// another. A text is written, merged and read at once, where a map is moved string by string;
// docs/decisions/0018 has the measurements. The maps of the Collector's exporter are computed from
// these texts in views (exporter-views.ts).

/** Stands before each key, and behind the last value. */
export const pairStart = 0xfe

/** Stands between a key and its value. */
export const pairMiddle = 0xff

const [start, middle] = [pairStart, pairMiddle].map((byte) => `char(${byte})`)

/** Expression of the pairs in a column, `Array(String)` of key, middle and value. */
export function pairsIn(column: string): string {
  return `arrayFilter(pair -> notEmpty(pair), splitByChar(${start}, toString(${column})))`
}

/**
 * Expressions of the key and of the value of such a pair. Not by `position`: for a single byte from 0x80
 * on it misses matches in the last bytes of a block where the processor has no AVX-512 (seen with the
 * engine's version 26.7.2).
 */
export const pairKey = `substringIndex(pair, ${middle}, 1)`
export const pairValue = `substringIndex(pair, ${middle}, -1)`

const mapType = 'Map(LowCardinality(String), String)'

/**
 * Expression of the map that a column of pairs stands for. It is as short as it can be, because the
 * engine resolves all that a view computes for each statement that names the view, whether it asks for it
 * or not (docs/decisions/0019).
 */
export function mapOfPairs(column: string): string {
  const pairs = `arrayPopBack(arrayPopFront(splitByChar('\\xfe', toString(${column}))))`
  const pair = `(substringIndex(pair, '\\xff', 1), substringIndex(pair, '\\xff', -1))`
  return `CAST(arrayMap(pair -> ${pair}, ${pairs}), '${mapType}')`
}

/** Expression of the text that stands for a map. */
export function pairsOfMap(map: string): string {
  const pairs = `arrayMap((key, value) -> concat(${start}, key, ${middle}, value), mapKeys(${map}), mapValues(${map}))`
  return `if(empty(${map}), '', concat(arrayStringConcat(${pairs}), ${start}))`
}

/** A column of the exporter that holds a map, or a list of maps for each row. */
export interface MapColumn {
  readonly name: string
  readonly isList: boolean
}

export function mapColumnType({ isList }: MapColumn): string {
  return isList ? `Array(${mapType})` : mapType
}

/** Expression of the exporter's column over that of the pairs, which is one too. */
export function mapColumnExpression({ isList }: MapColumn, pairs: string): string {
  return isList ? `arrayMap(pairs -> ${mapOfPairs('pairs')}, ${pairs})` : mapOfPairs(pairs)
}

/** Expression of the column of pairs over that of the exporter. */
export function pairColumnExpression({ isList, name }: MapColumn): string {
  return isList ? `arrayMap(one -> ${pairsOfMap('one')}, \`${name}\`)` : pairsOfMap(`\`${name}\``)
}
