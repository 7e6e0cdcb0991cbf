// Converts OTLP attribute values to text, for both encodings. As in the OpenTelemetry Collector's ClickHouse
// exporter, strings are unchanged, booleans and numbers are text, bytes are base64, arrays and key-value
// lists are JSON text. Two points are defined that the exporter leaves open: keys of a nested map are sorted
// (equal maps have equal texts), and NaN and the infinities are `NaN`, `Infinity` and `-Infinity`, in JSON
// text as strings, as OTLP/JSON writes them. Of duplicate keys the last one is used at every level.

/** @param nested true inside an array or map, where the text must be JSON */
export function stringText(value: string, nested: boolean): string {
  return nested ? JSON.stringify(value) : value
}

/** Returns the digits of a double as ECMAScript writes them (Go's exporter writes the same); keeps `-0`. */
export function doubleText(value: number, nested: boolean): string {
  if (value === 0 && 1 / value < 0) return '-0'
  const text = String(value)
  return nested && !Number.isFinite(value) ? `"${text}"` : text
}

/** Text of a value that is not set: nothing, or `null` inside an array or map. */
export function emptyText(nested: boolean): string {
  return nested ? 'null' : ''
}

/** JSON text of an array whose items are JSON texts. */
export function arrayText(items: readonly string[]): string {
  return `[${items.join(',')}]`
}

/** JSON text of a map whose values are JSON texts, sorted by key in UTF-16 order. */
export function mapText(entries: ReadonlyMap<string, string>): string {
  const keys = [...entries.keys()].sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${entries.get(key)}`).join(',')}}`
}
