// A page with the series of a bench: each with its band or score, its labelled, found and missed events, its
// false alarms, and close-ups of misses and false alarms, so that a person can see the cause. It is one file
// without scripts or references to others.

import { writeFileSync } from 'node:fs'
import {
  type BucketSpan,
  type Chart,
  labelResultsOf,
  minuteText,
  partOfChart,
} from '../../server/cli/charts/chart.ts'
import { drawSvg, escapeMarkup } from '../../server/cli/charts/svg-chart.ts'
import { type Row, say } from '../report.ts'
import { cellText } from '../tables.ts'

/** Close-ups of a series for each kind of result. */
const closeUps = { missed: 4, wrong: 4, found: 2 }
const closeUpSize = { width: 470, plotHeight: 100, hasLegend: false, hasExtremes: true }
/** Buckets before and after the event of a close-up, and at most so many of a long event itself. */
const contextBuckets = 360
const eventBucketsMax = 1_440

const style = `body{font:14px/1.45 system-ui,sans-serif;color:#222;max-width:980px;margin:2em auto;padding:0 1em}
h1{font-size:22px}h2{font-size:18px;margin-top:2.2em}h3{font-size:15px;margin:2em 0 .2em}
table{border-collapse:collapse;font-size:12px;margin:.8em 0}td,th{padding:.15em .7em;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}p{margin:.3em 0}svg{display:inline-block;max-width:100%;height:auto}
summary{cursor:pointer;color:#555}a{color:#1f5f97}`

/** What the colours of every page mean. */
const colourText =
  'Each series with its band or, where the method has none, its score. Green: events that were found and alarms about them. Orange: events that were missed. Red: false alarms. What lies on grey is there to learn from and does not count.'

/** Collects series as pictures, so that their columns need not be in memory together. */
export class ReportPage {
  readonly #title: string
  readonly #parts: string[] = []
  readonly #index: string[] = []

  constructor(title: string) {
    this.#title = title
  }

  /** Adds a series; `row` is its row in the report of the bench. */
  addSeries(chart: Chart, row: Row): void {
    const id = `series-${this.#parts.length}`
    const cells = Object.values(row).map((cell) => cellText(cell))
    const head = Object.keys(row)
    if (this.#index.length === 0) this.#index.push(tableRow('th', ['series', ...head].map(escapeMarkup)))
    const link = `<a href="#${id}">${escapeMarkup(chart.title)}</a>`
    this.#index.push(tableRow('td', [link, ...cells.map(escapeMarkup)]))
    this.#parts.push(
      `<h3 id="${id}">${escapeMarkup(chart.title)}</h3>`,
      drawSvg([{ ...chart, title: '' }], chart.title),
      ...closeUpsOf(chart),
    )
  }

  /** Writes the page, with tables that the bench made of all series, by name. */
  write(path: string, tables: ReadonlyMap<string, readonly Row[]> = new Map()): void {
    writeFileSync(path, this.#html(tables))
    say(`${path} shows each series`)
  }

  #html(tables: ReadonlyMap<string, readonly Row[]>): string {
    const summaries = [...tables].map(([name, rows]) => `<h2>${escapeMarkup(name)}</h2>${tableOf(rows)}`)
    return [
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeMarkup(this.#title)}</title><style>${style}</style></head><body>`,
      `<h1>${escapeMarkup(this.#title)}</h1><p>${colourText}</p>`,
      ...summaries,
      `<h2>Each series</h2><table>${this.#index.join('')}</table>`,
      ...this.#parts,
      '</body></html>',
      '',
    ].join('\n')
  }
}

/** The longest missed events, false alarms in order of time, and a few that were found. */
function closeUpsOf(chart: Chart): string[] {
  const labelResults = labelResultsOf(chart)
  if (labelResults === null) return []
  const longest = (spans: readonly BucketSpan[]) => spans.toSorted((a, b) => b[1] - b[0] - (a[1] - a[0]))
  const kinds = [
    ['missed', longest(labelResults.missed), closeUps.missed],
    ['false alarm', labelResults.wrong, closeUps.wrong],
    ['found', longest(labelResults.found), closeUps.found],
  ] as const
  const pictures = kinds.flatMap(([kind, spans, most]) =>
    spans.slice(0, most).map((span) => {
      const title = `${kind}: ${minuteText(chart.startMs + span[0] * chart.stepMs)}, ${lengthText(span, chart)}`
      return drawSvg([partOfChart(chart, title, around(span))], title, closeUpSize)
    }),
  )
  if (pictures.length === 0) return []
  return [`<details open><summary>close-ups</summary>${pictures.join('')}</details>`]
}

function around([from, until]: BucketSpan): BucketSpan {
  return [from - contextBuckets, Math.min(until, from + eventBucketsMax) + contextBuckets]
}

function lengthText([from, until]: BucketSpan, { stepMs }: Chart): string {
  const minutes = ((until - from) * stepMs) / 60_000
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 6) / 10} h`
}

function tableOf(rows: readonly Row[]): string {
  const [first] = rows
  if (first === undefined) return ''
  const head = tableRow('th', Object.keys(first).map(escapeMarkup))
  const body = rows.map((row) =>
    tableRow(
      'td',
      Object.values(row).map((cell) => escapeMarkup(cellText(cell))),
    ),
  )
  return `<table>${head}${body.join('')}</table>`
}

function tableRow(cell: 'td' | 'th', texts: readonly string[]): string {
  return `<tr>${texts.map((text) => `<${cell}>${text}</${cell}>`).join('')}</tr>`
}
