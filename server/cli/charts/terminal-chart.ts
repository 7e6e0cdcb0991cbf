// A judged series as lines of text for a terminal: the band shaded, the values as dots, anomalies marked
// below. Pure.

import { type Chart, type Column, columnsOf, minuteText, scaleOf, valueText } from './chart.ts'

interface TerminalStyle {
  /** Columns of the terminal. */
  readonly width: number
  readonly hasColour: boolean
}

const rows = 9
/** Width of the label and the axis before the first column. */
const marginWidth = 11

/** Returns only the title where the series has no value. */
export function drawInTerminal(chart: Chart, { hasColour, width }: TerminalStyle): string[] {
  const columns = columnsOf(chart, Math.max(20, width - marginWidth - 1))
  const scale = scaleOf(columns)
  const title = chart.title === '' ? [] : [chart.title]
  if (scale === null) return [...title, 'No values.']
  const { high, low } = scale
  const rowOf = (value: number) =>
    Math.max(0, Math.min(rows - 1, Math.round(((value - low) / (high - low)) * (rows - 1))))
  const cells = columns.map((column) => cellsOf(column, rowOf))
  const lines = Array.from({ length: rows }, (_, fromTop) => {
    const row = rows - 1 - fromTop
    const label = row === 0 ? valueText(low) : row === rows - 1 ? valueText(high) : ''
    const text = cells.map((column) => column[row] ?? ' ').join('')
    return `${label.padStart(marginWidth - 2)} ┤${hasColour ? coloured(text) : text}`
  })
  const marks = columns.map(({ isAnomalous }) => (isAnomalous ? '▲' : ' ')).join('')
  const labels = columns.map(({ isLabelled }) => (isLabelled ? '━' : ' ')).join('')
  const indent = ' '.repeat(marginWidth)
  return [
    ...title,
    ...lines.map((line) => line.trimEnd()),
    ...(marks.trim() === '' ? [] : [`${indent}${hasColour ? coloured(marks) : marks.trimEnd()}`]),
    ...(labels.trim() === '' ? [] : [`${'labels'.padEnd(marginWidth)}${labels.trimEnd()}`]),
    `${indent}${timesOf(chart, columns.length)}`,
  ]
}

/** One character for each row, lowest first. */
function cellsOf(column: Column, rowOf: (value: number) => number): string[] {
  const cells = Array.from({ length: rows }, () => ' ')
  if (!Number.isNaN(column.lower) || !Number.isNaN(column.upper)) {
    const from = Number.isNaN(column.lower) ? 0 : rowOf(column.lower)
    const to = Number.isNaN(column.upper) ? rows - 1 : rowOf(column.upper)
    cells.fill('░', from, to + 1)
  }
  if (!Number.isNaN(column.least)) {
    cells.fill(column.isAnomalous ? '◆' : '•', rowOf(column.least), rowOf(column.greatest) + 1)
  }
  return cells
}

function timesOf({ startMs, stepMs, values }: Chart, width: number): string {
  const [first, last] = [minuteText(startMs), minuteText(startMs + stepMs * (values.length - 1))]
  return `${first}${last.padStart(Math.max(last.length + 2, width - first.length))}`
}

function coloured(text: string): string {
  return text
    .replace(/░+/g, (band) => `\u001b[2m${band}\u001b[0m`)
    .replace(/[◆▲]+/g, (raised) => `\u001b[1;31m${raised}\u001b[0m`)
}
