// Series in a text file: two columns, timestamp and value, as exports and benchmarks have them, or three with
// the name of a group between them. A file that is read wrongly gives a wrong result without any sign of it,
// so every line that cannot be read is an error with its number.

import { type Ns, nsPerMinute, nsPerMs, nsPerSecond, parseInstant } from '../../../contract/instant.ts'
import type { SeriesPoint } from './series.ts'

/**
 * Reads lines of `timestamp,value`, with or without a header line. A timestamp is RFC 3339,
 * `2026-09-11 12:00:00` (taken as UTC), or seconds or milliseconds since 1970. An empty value, or NaN, is no
 * data. Throws an Error that names the line.
 */
export function parsePoints(text: string): SeriesPoint[] {
  return readLines(text, false).map(({ timeNs, value }) => ({ timeNs, value }))
}

/**
 * The same for lines of `timestamp,group,value`. Returns points by group, in the order in
 * which groups first appear.
 */
export function parseGroupedPoints(text: string): Map<string, SeriesPoint[]> {
  return Map.groupBy(readLines(text, true), ({ group }) => group)
}

function readLines(text: string, isGrouped: boolean): (SeriesPoint & { group: string })[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const points: (SeriesPoint & { group: string })[] = []
  lines.forEach((line, i) => {
    if (line.trim() === '') return
    const cells = line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))
    const [time = ''] = cells
    const timeNs = timeOf(time)
    // A first line without a timestamp is the header.
    if (timeNs === null && points.length === 0 && i === 0) return
    if (timeNs === null) throw new Error(`Line ${i + 1}: "${time}" is not a timestamp.`)
    const [group = '', value = ''] = isGrouped ? cells.slice(1) : ['', cells[1]]
    const isWhole = isGrouped ? cells.length === 3 : cells.length <= 2
    const isEmpty = value === '' || value.toLowerCase() === 'nan'
    const number = isEmpty ? Number.NaN : Number(value)
    if (!isWhole || (!isEmpty && Number.isNaN(number))) {
      throw new Error(`Line ${i + 1}: write it as timestamp,${isGrouped ? 'group,' : ''}value.`)
    }
    points.push({ timeNs, group, value: number })
  })
  if (points.length === 0) throw new Error('The file has no points.')
  return points
}

function timeOf(text: string): Ns | null {
  if (/^\d{9,11}(?:\.\d+)?$/.test(text)) return BigInt(Math.round(Number(text) * 1000)) * nsPerMs
  if (/^\d{12,14}$/.test(text)) return BigInt(text) * nsPerMs
  const withT = text.replace(' ', 'T')
  const read = parseInstant(/(?:[Zz]|[+-]\d{2}:\d{2})$/.test(withT) ? withT : `${withT}Z`)
  return 'ns' in read ? read.ns : null
}

/** The most frequent distance between neighbours, in whole minutes; at least 1. */
export function stepOfPoints(points: readonly SeriesPoint[]): number {
  const times = points.map(({ timeNs }) => timeNs).sort((a, b) => (a < b ? -1 : 1))
  const counts = new Map<bigint, number>()
  for (let i = 1; i < times.length; i++) {
    const gap = (times[i] ?? 0n) - (times[i - 1] ?? 0n)
    if (gap > 0n) counts.set(gap, (counts.get(gap) ?? 0) + 1)
  }
  const [usual] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [nsPerMinute]
  return Math.max(1, Math.round(Number(usual / nsPerSecond) / 60))
}
