// Labelled series of real operations, read from disk (the AIOps Challenge of 2018 and Microsoft's cloud
// monitoring dataset), and the judgement of alarms on them, by the rules of the README beside the data: an
// *event* is a run of labelled points, a *stretch* joins events close to each other, and an alarm finds an
// event that it overlaps, the tolerance after the event included. Labels are never part of a series.

import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parsePoints } from '../../server/detection/scoring/points-file.ts'
import type { SeriesPoint } from '../../server/detection/scoring/series.ts'
import type { Span } from './served-openings.ts'

const minuteMs = 60_000
const minutesPerWeek = 10_080

export interface FieldSeries {
  readonly set: 'AIOps' | 'Microsoft'
  /** The unit that is held out as a whole: the folder of Microsoft's, one KPI of the AIOps Challenge. */
  readonly group: string
  readonly name: string
  /** The usual distance of two points. */
  readonly stepMinutes: number
  readonly points: readonly SeriesPoint[]
  readonly events: readonly Span[]
  /** Alarms and events count from here on; methods learn from the values before. */
  readonly judgedFromMs: number
  readonly endMs: number
}

export function fieldFolder(): string {
  return process.env.LETHE_FIELD_DIR ?? join(import.meta.dirname, '../../../shared/data/field')
}

/** False when the data is not on this machine. */
export function hasField(folder: string): boolean {
  return existsSync(join(folder, 'aiops-kpi/index.json'))
}

/** Every labelled series; those without any label are series in which every alarm is false. */
export function readField(folder: string): FieldSeries[] {
  const read = (set: FieldSeries['set'], below: string, pattern: string, groupOf: (path: string) => string) =>
    globSync(pattern, { cwd: join(folder, below) })
      .sort()
      .map((path) => {
        const name = set === 'AIOps' ? groupOf(path) : basename(path, '.csv.gz')
        return seriesOf(join(folder, below, path), { set, group: groupOf(path), name })
      })
  return [
    ...read('AIOps', 'aiops-kpi', '*.csv.gz', (path) => path.slice(0, 8)),
    ...read('Microsoft', 'microsoft-cloud', '*/*.csv.gz', dirname),
  ]
}

function seriesOf(path: string, what: Pick<FieldSeries, 'set' | 'group' | 'name'>): FieldSeries {
  const lines = gunzipSync(readFileSync(path)).toString().trim().split(/\r?\n/)
  const cells = lines.map((line) => line.split(','))
  const points = parsePoints(cells.map(([time, value]) => `${time},${value}`).join('\n'))
  const labels = cells.slice(cells.length - points.length).map((row) => row[2]?.replaceAll('"', ''))
  const rows = points
    .map(({ timeNs }, i) => ({ ms: Number(timeNs / 1_000_000n), isLabelled: labels[i] === '1' }))
    .sort((a, b) => a.ms - b.ms)
  const stepMinutes = usualStep(rows.map(({ ms }) => ms))
  const stepMs = stepMinutes * minuteMs
  const first = rows[0]?.ms ?? 0
  const endMs = (rows.at(-1)?.ms ?? 0) + stepMs
  const judgedFromMs = what.set === 'AIOps' ? (rows[rows.length >> 1]?.ms ?? 0) : first + 80 * stepMs
  const events: { startMs: number; endMs: number }[] = []
  let isInside = false
  for (const { isLabelled, ms } of rows) {
    const last = events.at(-1)
    if (isLabelled && isInside && last !== undefined) last.endMs = ms + stepMs
    else if (isLabelled) events.push({ startMs: ms, endMs: ms + stepMs })
    isInside = isLabelled
  }
  return { ...what, stepMinutes, points, events, judgedFromMs, endMs }
}

function usualStep(times: readonly number[]): number {
  const gaps = times.slice(1).map((ms, i) => ms - (times[i] ?? 0))
  const counts = new Map<number, number>()
  for (const gap of gaps) if (gap > 0) counts.set(gap, (counts.get(gap) ?? 0) + 1)
  const [usual] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [minuteMs]
  return Math.max(1, Math.round(usual / minuteMs))
}

export interface Judgement {
  readonly events: number
  readonly eventsFound: number
  readonly stretches: number
  readonly stretchesFound: number
  readonly alarms: number
  readonly right: number
  readonly weeks: number
}

/** Judges the alarms of one series, from the first violating bucket to the end of the last, in any order. */
export function judgeAlarms(series: FieldSeries, all: readonly Span[]): Judgement {
  const { endMs, judgedFromMs, stepMinutes } = series
  const toleranceMs = (stepMinutes === 1 ? 7 : 2) * stepMinutes * minuteMs
  const events = series.events.filter(({ startMs }) => startMs >= judgedFromMs)
  const stretches = joinedWithin(events, (stepMinutes < 60 ? 60 : 180) * minuteMs)
  const alarms = all.filter((alarm) => alarm.startMs >= judgedFromMs)
  const meets = (event: Span) => (alarm: Span) =>
    alarm.startMs < event.endMs + toleranceMs && alarm.endMs > event.startMs
  const found = (spans: readonly Span[]) => spans.filter((span) => alarms.some(meets(span))).length
  return {
    events: events.length,
    eventsFound: found(events),
    stretches: stretches.length,
    stretchesFound: found(stretches),
    alarms: alarms.length,
    right: alarms.filter((alarm) => events.some((event) => meets(event)(alarm))).length,
    weeks: (endMs - judgedFromMs) / minuteMs / minutesPerWeek,
  }
}

function joinedWithin(events: readonly Span[], apartMs: number): Span[] {
  const joined: { startMs: number; endMs: number }[] = []
  for (const { endMs, startMs } of events) {
    const last = joined.at(-1)
    if (last !== undefined && startMs - last.endMs < apartMs) last.endMs = endMs
    else joined.push({ startMs, endMs })
  }
  return joined
}

/** Sums; rates are of the sums, so that a long series counts for more. */
export function addJudgements(all: readonly Judgement[]): Judgement {
  const total = { events: 0, eventsFound: 0, stretches: 0, stretchesFound: 0, alarms: 0, right: 0, weeks: 0 }
  for (const one of all) for (const key of Object.keys(total) as (keyof Judgement)[]) total[key] += one[key]
  return total
}
