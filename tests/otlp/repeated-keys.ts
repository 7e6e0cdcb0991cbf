// Attribute lists of OTLP/JSON in which no key comes twice: of equal keys the last stays, in its
// place. In a map inside a value it takes the place of the first. Written without the product's maps,
// to hold them against it.

interface Entry {
  readonly key?: string
  readonly value?: object
}

/** The message with such lists only, and how many entries were taken out. */
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
 * A value that is nested may be refused for its depth, and the record with it, even where
 * a later one replaces it.
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
