// Judged series as an SVG picture, one panel below the other: band, values and anomalies. It has no
// references to other files, and text from the input is escaped. Pure.

import { type Chart, type Column, columnsOf, minuteText, scaleOf, valueText } from './chart.ts'

const width = 960
const panelHeight = 240
const plot = { left: 80, right: 940, top: 34, bottom: 206 }
/** One column per unit of the picture's width. */
const columnsMax = plot.right - plot.left
const gridLines = 4
const timeLabels = 5

export function drawSvg(charts: readonly Chart[], name: string): string {
  const height = Math.max(1, charts.length) * panelHeight
  const panels = charts.map(
    (chart, i) => `<g transform="translate(0 ${i * panelHeight})">${panelOf(chart)}</g>`,
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11" fill="#333" role="img">`,
    `<title>${escapeText(name)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...panels,
    '</svg>',
    '',
  ].join('\n')
}

function panelOf(chart: Chart): string {
  const columns = columnsOf(chart, columnsMax)
  const scale = scaleOf(columns)
  const title = `<text x="${plot.left}" y="20" font-size="13" font-weight="bold">${escapeText(chart.title)}</text>`
  if (scale === null) return `${title}<text x="${plot.left}" y="${plot.top + 20}">No values.</text>`
  const step = (plot.right - plot.left) / columns.length
  const x = (i: number) => round(plot.left + (i + 0.5) * step)
  const y = (value: number) => {
    const share = (value - scale.low) / (scale.high - scale.low)
    return round(plot.bottom - Math.max(0, Math.min(1, share)) * (plot.bottom - plot.top))
  }
  return [
    title,
    ...gridOf(scale, y),
    ...timesOf(chart),
    ...runsOf(columns, (one) => one.isAnomalous).map(
      ([from, until]) =>
        `<rect class="anomaly" x="${round(plot.left + from * step)}" y="${plot.top}" width="${round((until - from) * step)}" height="${plot.bottom - plot.top}" fill="#d62728" fill-opacity="0.18"/>`,
    ),
    ...bandsOf(columns, x, y),
    ...runsOf(columns, (one) => !Number.isNaN(one.least)).map(([from, until]) =>
      lineOf(columns, from, until, x, y),
    ),
  ].join('\n')
}

type Place = (value: number) => number

function gridOf({ high, low }: { low: number; high: number }, y: Place): string[] {
  return Array.from({ length: gridLines + 1 }, (_, i) => {
    const value = low + ((high - low) * i) / gridLines
    return `<path d="M${plot.left} ${y(value)}H${plot.right}" stroke="#ddd"/><text x="${plot.left - 6}" y="${y(value) + 4}" text-anchor="end">${valueText(value)}</text>`
  })
}

function timesOf({ startMs, stepMs, values }: Chart): string[] {
  return Array.from({ length: timeLabels }, (_, i) => {
    const share = i / (timeLabels - 1)
    const text = minuteText(startMs + stepMs * Math.round(share * (values.length - 1)))
    const anchor = i === 0 ? 'start' : i === timeLabels - 1 ? 'end' : 'middle'
    const at = round(plot.left + share * (plot.right - plot.left))
    return `<text x="${at}" y="${plot.bottom + 18}" text-anchor="${anchor}">${text}</text>`
  })
}

/** A band with one edge extends to the end of the panel on its other side. */
function bandsOf(columns: readonly Column[], x: Place, y: Place): string[] {
  const has = (one: Column) => !Number.isNaN(one.lower) || !Number.isNaN(one.upper)
  return runsOf(columns, has).map(([from, until]) => {
    const run = columns.slice(from, until)
    const top = run.map((one, i) => `${x(from + i)} ${Number.isNaN(one.upper) ? plot.top : y(one.upper)}`)
    const bottom = run.map(
      (one, i) => `${x(from + i)} ${Number.isNaN(one.lower) ? plot.bottom : y(one.lower)}`,
    )
    return `<path class="band" d="M${[...top, ...bottom.reverse()].join('L')}Z" fill="#1f77b4" fill-opacity="0.18"/>`
  })
}

/** A dot is a line of length zero with round ends. */
function lineOf(columns: readonly Column[], from: number, until: number, x: Place, y: Place): string {
  const points = columns
    .slice(from, until)
    .flatMap(({ greatest, least }, i) =>
      least === greatest
        ? [`${x(from + i)} ${y(least)}`]
        : [`${x(from + i)} ${y(least)}`, `${x(from + i)} ${y(greatest)}`],
    )
  const path = points.length === 1 ? `${points[0]}h0` : points.join('L')
  return `<path class="values" d="M${path}" fill="none" stroke="#1f77b4" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round"/>`
}

/** Returns the runs of neighbouring columns that satisfy `holds`, half-open. */
function runsOf(columns: readonly Column[], holds: (column: Column) => boolean): [number, number][] {
  const runs: [number, number][] = []
  columns.forEach((column, i) => {
    if (!holds(column)) return
    const last = runs.at(-1)
    if (last?.[1] === i) last[1] = i + 1
    else runs.push([i, i + 1])
  })
  return runs
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Replaces characters that XML does not allow. */
function escapeText(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}
