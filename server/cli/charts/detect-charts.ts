// The charts of `lethe detect`: the series of a file with what was found, the labels of the file, and
// deploys.

import { type Ns, nsPerMs } from '../../../contract/values/instant.ts'
import type { Finding } from '../../detection/anomalies/findings.ts'
import type { Scores } from '../../detection/methods/method.ts'
import type { Series } from '../../detection/scoring/series.ts'
import { print } from '../print.ts'
import { type Chart, labelResultsOf } from './chart.ts'
import { seriesChart } from './series-chart.ts'
import { drawInTerminal } from './terminal-chart.ts'

/** One series of a file with what was found in it; its group is null in a file without groups. */
export interface Judged {
  readonly group: string | null
  readonly series: Series
  readonly scores: Scores
  readonly findings: readonly Pick<Finding, 'seenUntilNs' | 'startedNs'>[]
}

interface DrawnBeside {
  /** Times of labelled points by group; null in a file without labels. */
  readonly labels: ReadonlyMap<string, readonly Ns[]> | null
  readonly deploys: readonly { readonly timeNs: Ns; readonly text: string }[]
}

/** Series that are drawn in lines of text: a screen full. */
const drawnMax = 4

export function chartsOf(judged: readonly Judged[], { deploys, labels }: DrawnBeside): Chart[] {
  return judged.map(({ findings, group, scores, series }) =>
    seriesChart({
      ...{ title: group ?? '', series, scores },
      anomalies: findings.map(({ seenUntilNs, startedNs }) => ({
        startMs: msOf(startedNs),
        endMs: msOf(seenUntilNs),
      })),
      events: labels === null ? undefined : eventsOf(labels.get(group ?? '') ?? [], series),
      deploys: deploys.map(({ text, timeNs }) => ({ text, atMs: msOf(timeNs) })),
    }),
  )
}

/** Draws the series with the most anomalies in the terminal. */
export function drawSome(charts: readonly Chart[]): void {
  const drawn = charts.toSorted((a, b) => b.anomalies.length - a.anomalies.length).slice(0, drawnMax)
  const style = {
    width: process.stdout.columns || 100,
    hasColour: process.stdout.isTTY === true && !process.env.NO_COLOR,
  }
  for (const chart of drawn) {
    // The colours are ours; what came from the file is in the title alone.
    for (const line of drawInTerminal({ ...chart, title: '' }, style)) process.stdout.write(`${line}\n`)
    if (chart.title !== '') print(`  ${chart.title}: ${chart.anomalies.length} anomalies`)
  }
  if (charts.length > drawn.length) print(`  and ${charts.length - drawn.length} series that are not drawn`)
}

/** `12 of 30 labelled events found; 1 of 9 anomalies is about none`; null in a file without labels. */
export function labelResultsText(charts: readonly Chart[]): string | null {
  let [found, events, wrong, anomalies] = [0, 0, 0, 0]
  for (const chart of charts) {
    const labelResults = labelResultsOf(chart)
    if (labelResults === null) return null
    found += labelResults.found.length
    events += labelResults.found.length + labelResults.missed.length
    wrong += labelResults.wrong.length
    anomalies += labelResults.right.length + labelResults.wrong.length
  }
  return `${found} of ${events} labelled events found; ${wrong} of ${anomalies} anomalies ${wrong === 1 ? 'is' : 'are'} about none`
}

/** Labelled points in buckets that follow each other are one event. */
function eventsOf(times: readonly Ns[], { stepMinutes }: Series): { startMs: number; endMs: number }[] {
  const stepMs = stepMinutes * 60_000
  const events: { startMs: number; endMs: number }[] = []
  for (const timeMs of times.map(msOf).sort((a, b) => a - b)) {
    const startMs = Math.floor(timeMs / stepMs) * stepMs
    const last = events.at(-1)
    if (last !== undefined && startMs <= last.endMs) last.endMs = startMs + stepMs
    else events.push({ startMs, endMs: startMs + stepMs })
  }
  return events
}

function msOf(ns: Ns): number {
  return Number(ns / nsPerMs)
}
