// Removes repeated keys from attribute lists of OTLP/JSON: of equal keys the last one stays, in its position.
// In a map inside a value it takes the position of the first. Written without the product's maps, to compare
// them with it.

interface Entry {
  readonly key?: string
  readonly value?: object
}

/** Returns the message without repeated keys, and how many entries were removed. */
export function withoutRepeatedKeys(message: object): { message: object; repeated: number } {
  let repeated = 0
  const walk = (value: unknown, name: string, parent: string): unknown => {
    if (Array.isArray(value)) {
      const items = value.map((item) => walk(item, '', ''))
      const isMap = name === 'values' && parent === 'kvlistValue'
      if (!isMap && name !== 'attributes' && name !== 'filteredAttributes') return items
      const left = isMap ? lastOfFirsts(items as Entry[]) : lasts(items as Entry[])
      repeated += items.length - left.length
      return left
    }
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([member, inner]) => [member, walk(inner, member, name)]),
    )
  }
  return { message: walk(message, '', '') as object, repeated }
}

const keyOf = ({ key = '' }: Entry) => key

/**
 * A nested value may be refused for its depth, and the record with it, even where a later value replaces it.
 */
const isPlain = ({ value = {} }: Entry) => !('arrayValue' in value || 'kvlistValue' in value)

function lasts(entries: readonly Entry[]): Entry[] {
  return entries.filter(
    (entry, at) => !isPlain(entry) || !entries.slice(at + 1).some((later) => keyOf(later) === keyOf(entry)),
  )
}

function lastOfFirsts(entries: readonly Entry[]): Entry[] {
  const left = new Map<string, Entry>()
  for (const entry of entries) left.set(keyOf(entry), entry)
  return entries.every(isPlain) ? [...left.values()] : [...entries]
}
