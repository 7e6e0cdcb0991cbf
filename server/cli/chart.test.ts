// Drawing a judged series in a terminal and as SVG: peaks survive the reduction to columns, the wide band of
// a method that is still learning doesn't flatten the values, and names from a file cannot control the
// terminal or change the document.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Chart, columnsOf, scaleOf } from './chart.ts'
import { drawSvg } from './svg-chart.ts'
import { drawInTerminal } from './terminal-chart.ts'

const startMs = Date.UTC(2026, 0, 5)

function chartOf(values: readonly number[], more: Partial<Chart> = {}): Chart {
  const nothing = new Float64Array(values.length).fill(Number.NaN)
  return {
    ...{ title: '', startMs, stepMs: 60_000, values: Float64Array.from(values) },
    ...{ lower: nothing, upper: nothing, anomalies: [] },
    ...more,
  }
}

const plain = { width: 60, hasColour: false }

test('a peak of one bucket among thousands is drawn and marked', () => {
  const values = Array.from({ length: 5000 }, (_, i) => (i === 2500 ? 100 : 1))
  const chart = chartOf(values, { anomalies: [[2500, 2501]] })
  const columns = columnsOf(chart, 48)
  assert.equal(columns.length, 48)
  assert.deepEqual(
    columns.filter(({ greatest }) => greatest === 100).map(({ isAnomalous, least }) => [least, isAnomalous]),
    [[1, true]],
  )
  const lines = drawInTerminal(chart, plain)
  assert.match(lines[0] ?? '', /^ +100 ┤ {24}◆$/)
  assert.match(lines.at(-2) ?? '', /^ {35}▲$/)
  assert.match(lines.at(-1) ?? '', /^ +2026-01-05 00:00 +2026-01-08 11:19$/)
  for (const line of lines) assert.ok(line.length <= 60, line)
})

test('the band is shaded around the values, and a far too wide band is cut', () => {
  const band = { lower: Float64Array.from([-1e9, 8, 8]), upper: Float64Array.from([1e9, 12, 12]) }
  const chart = chartOf([9, 10, 11], band)
  assert.deepEqual(scaleOf(columnsOf(chart, 3)), { low: 7, high: 13 })
  const lines = drawInTerminal(chart, plain)
  assert.match(lines[0] ?? '', /13 ┤░$/)
  assert.ok(
    lines.some((line) => /┤.•░$/.test(line) || /░•░$/.test(line)),
    lines.join('\n'),
  )
})

test('a series without values, with one value, or with gaps is drawn as it is', () => {
  assert.deepEqual(drawInTerminal(chartOf([Number.NaN], { title: 'h1' }), plain), ['h1', 'No values.'])
  assert.equal(drawInTerminal(chartOf([5]), plain).filter((line) => line.includes('•')).length, 1)
  const gap = drawSvg([chartOf([1, Number.NaN, 3, 4])], 'gap')
  assert.equal(gap.match(/class="values"/g)?.length, 2)
  assert.doesNotMatch(gap, /NaN|Infinity/)
  assert.match(drawSvg([chartOf([])], 'empty'), /No values/)
})

test('the picture has a panel for each series with its anomalies, and text from a file is escaped', () => {
  const svg = drawSvg(
    [
      chartOf([1, 2, 3], { title: 'a<script>&\u0007', anomalies: [[1, 2]] }),
      chartOf([1, 1, 1], { title: 'b', upper: Float64Array.from([2, 2, 2]) }),
    ],
    '"x" </title>',
  )
  assert.equal(svg.match(/class="anomaly"/g)?.length, 1)
  assert.equal(svg.match(/class="band"/g)?.length, 1)
  assert.equal(svg.match(/<g transform/g)?.length, 2)
  assert.match(svg, /a&lt;script&gt;&amp;\ufffd</)
  assert.match(svg, /<title>"x" &lt;\/title&gt;<\/title>/)
  assert.doesNotMatch(svg, /href|<script/)
})

test('only the band and the alarms are coloured', () => {
  const chart = chartOf([1, 9], { upper: Float64Array.from([2, 2]), anomalies: [[1, 2]] })
  const coloured = drawInTerminal(chart, { width: 60, hasColour: true }).join('\n')
  assert.ok(coloured.includes('\u001b[1;31m▲\u001b[0m'))
  assert.ok(coloured.includes('\u001b[2m░'))
  assert.doesNotMatch(drawInTerminal(chart, plain).join('\n'), /\p{Cc}(?<!\n)/u)
})
