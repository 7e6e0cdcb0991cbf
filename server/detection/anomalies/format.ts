// Durations and quantities as sentences about anomalies have them.

/** `1 minute`, `2 hours 5 minutes`, `3 days 4 hours`: the two largest parts; the rest is dropped. */
export function formatMinutes(minutes: number): string {
  const parts: [number, string][] = [
    [Math.floor(minutes / 1440), 'day'],
    [Math.floor(minutes / 60) % 24, 'hour'],
    [minutes % 60, 'minute'],
  ]
  const first = parts.findIndex(([count]) => count > 0)
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, name]) => `${count} ${name}${count === 1 ? '' : 's'}`)
    .join(' ')
}

/** Made when it is first needed, because the first formatter of a process takes 40 ms. */
let wholeNumber: Intl.NumberFormat | undefined

function formatWhole(value: number): string {
  wholeNumber ??= new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
  return wholeNumber.format(value)
}

const binaryPrefixes = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** `4,032`. */
export function formatCount(count: number): string {
  return formatWhole(Math.round(count))
}

/** A longer text is no unit: the sender may send one of any length, and a reason repeats it at each value. */
const longestUnit = 64

/**
 * A number for people, with its unit: `12.0`, `1,240 ms`, `4.2 %`, `1.50 GiB`. The unit is one of UCUM;
 * annotations in braces are not shown.
 */
export function formatQuantity(value: number, unit: string): string {
  if (unit === 'By') {
    const power = Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10)
    const prefix = Math.min(binaryPrefixes.length - 1, power)
    return `${formatNumber(value / 1024 ** prefix)} ${binaryPrefixes[prefix] ?? 'B'}`
  }
  // Annotations are not nested.
  const shown = unit.length > longestUnit ? '' : unit.replace(/\{[^{}]*\}/g, '')
  const isUnitless = shown === '' || shown === '1' || shown.startsWith('/')
  return isUnitless ? formatNumber(value) : `${formatNumber(value)} ${shown}`
}

/** Three significant digits below 1,000, whole numbers with commas up to 10 million, powers of ten beyond. */
export function formatNumber(value: number): string {
  const size = Math.abs(value)
  if (value === 0) return '0'
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace('e+', 'e')
  if (size >= 999.5) return formatWhole(value)
  return Number.isInteger(value) && size >= 100 ? String(value) : value.toPrecision(3)
}
