// Figures and instants as text for people in a terminal.

/** `12,345`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US')
}

const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** Three digits and a decimal unit, such as `12.3 MB`. */
export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`
}

/** A duration, such as `340 ms`, `12.5 s`, `3 min 20 s` or `2 d 4 h`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.floor(ms / 1000)
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** Milliseconds of `90m`, `24h`, `7d` or `30s`; null for anything else. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})(s|m|h|d)$/.exec(text)
  if (match === null) return null
  const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] ?? ''] ?? 0
  return Number(match[1]) * unitMs
}

/** Aligns columns to their widest cell; those in `right` are right-aligned. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, i) => {
        const width = widths[i] ?? 0
        return right.includes(i) ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd(),
  )
}
