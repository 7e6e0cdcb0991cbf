// Series in a text file: two columns, timestamp and value, as exports and benchmarks have them, or three with
// the name of a group between them. A last column that the header names `label` says whether a point belongs
// to an event that is to be found. A line that is read wrongly would give a wrong result unnoticed, so every
// line that cannot be read is an error with its number.

import { type Ns, nsPerMinute, nsPerMs, nsPerSecond, parseInstant } from '../../../contract/values/instant.ts'
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

/**
 * The times of the points that are labelled `1` or `true`, by group; the group is empty in a file without
 * groups. Null where the header has no last column `label`.
 */
export function parseLabels(text: string, isGrouped: boolean): Map<string, Ns[]> | null {
  const lines = readLines(text, isGrouped)
  if (lines.every(({ isLabelled }) => isLabelled === null)) return null
  const groups = Map.groupBy(lines, ({ group }) => group)
  return new Map(
    [...groups].map(([group, own]) => [
      group,
      own.filter(({ isLabelled }) => isLabelled === true).map(({ timeNs }) => timeNs),
    ]),
  )
}

/**
 * Reads lines of `timestamp,text`, such as of deploys. Returns them in order of time. Throws an Error that
 * names the line.
 */
export function parseMarkers(text: string): { readonly timeNs: Ns; readonly text: string }[] {
  const markers = linesOf(text).flatMap(({ cells, number }) => {
    const [time = '', ...rest] = cells
    const timeNs = timeOf(time)
    if (timeNs === null && number === 1) return []
    if (timeNs === null || rest.length > 1) throw new Error(`Line ${number}: write it as timestamp,text.`)
    return [{ timeNs, text: rest[0] ?? '' }]
  })
  return markers.sort((a, b) => (a.timeNs < b.timeNs ? -1 : 1))
}

interface FilePoint extends SeriesPoint {
  readonly group: string
  /** Null in a file without labels. */
  readonly isLabelled: boolean | null
}

function readLines(text: string, isGrouped: boolean): FilePoint[] {
  const points: FilePoint[] = []
  let hasLabels = false
  for (const { cells, number } of linesOf(text)) {
    const [time = ''] = cells
    const timeNs = timeOf(time)
    if (timeNs === null && number === 1) {
      hasLabels = cells.length === (isGrouped ? 4 : 3) && cells.at(-1)?.toLowerCase() === 'label'
      continue
    }
    if (timeNs === null) throw new Error(`Line ${number}: "${time}" is not a timestamp.`)
    const most = (isGrouped ? 3 : 2) + (hasLabels ? 1 : 0)
    const label = hasLabels ? cells[most - 1] : undefined
    const [group = '', value = ''] = isGrouped ? cells.slice(1) : ['', cells[1]]
    const isWhole = cells.length === most || (cells.length === 1 && most === 2)
    const isEmpty = value === '' || value.toLowerCase() === 'nan'
    const measured = isEmpty ? Number.NaN : Number(value)
    const isLabelled = label === undefined ? null : labelOf(label)
    if (!isWhole || (!isEmpty && Number.isNaN(measured)) || isLabelled === undefined) {
      const columns = `timestamp,${isGrouped ? 'group,' : ''}value${hasLabels ? ',label' : ''}`
      throw new Error(`Line ${number}: write it as ${columns}${hasLabels ? ' with a label of 0 or 1' : ''}.`)
    }
    points.push({ timeNs, group, value: measured, isLabelled })
  }
  if (points.length === 0) throw new Error('The file has no points.')
  return points
}

/** Lines that have anything, with their numbers; a first line without a timestamp is the header. */
function linesOf(text: string): { readonly cells: string[]; readonly number: number }[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  return lines.flatMap((line, i) => {
    if (line.trim() === '') return []
    const cells = line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))
    return [{ cells, number: i + 1 }]
  })
}

/** Undefined for an invalid label. An empty one means that nothing is to be found. */
function labelOf(text: string): boolean | undefined {
  const labels: Readonly<Record<string, boolean>> = {
    '1': true,
    true: true,
    '0': false,
    false: false,
    '': false,
  }
  return labels[text.toLowerCase()]
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
