// Drawing a judged series in a terminal and as SVG: peaks survive the reduction to columns, the wide band of
// a method that is still learning doesn't flatten the values, and names from a file cannot control the
// terminal or change the document.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Chart,
  columnsOf,
  labelResultsOf,
  partOfChart,
  scaleOf,
  ticksOf,
  usualScaleOf,
  valueText,
} from './chart.ts'
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

test('a series without values, with one value, or with gaps is drawn correctly', () => {
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
  assert.match(svg, /<title>&quot;x&quot; &lt;\/title&gt;<\/title>/)
  assert.doesNotMatch(svg, /href|<script/)
})

test('only the band and the alarms are coloured', () => {
  const chart = chartOf([1, 9], { upper: Float64Array.from([2, 2]), anomalies: [[1, 2]] })
  const coloured = drawInTerminal(chart, { width: 60, hasColour: true }).join('\n')
  assert.ok(coloured.includes('\u001b[1;31m▲\u001b[0m'))
  assert.ok(coloured.includes('\u001b[2m░'))
  assert.doesNotMatch(drawInTerminal(chart, plain).join('\n'), /\p{Cc}(?<!\n)/u)
})

const day = Array.from({ length: 1440 }, (_, i) => 10 + (i % 7))

test('labelled events are found or missed, alarms are right or false, and history does not count', () => {
  const chart = chartOf(day, {
    labels: [
      [50, 60],
      [200, 210],
      [300, 310],
      [400, 410],
    ],
    anomalies: [
      [55, 56],
      [205, 206],
      [314, 315],
      [900, 905],
    ],
    judgedFrom: 100,
  })
  assert.deepEqual(labelResultsOf(chart), {
    found: [
      [200, 210],
      [300, 310],
    ],
    missed: [[400, 410]],
    right: [
      [205, 206],
      [314, 315],
    ],
    wrong: [[900, 905]],
  })
  assert.equal(labelResultsOf(chartOf(day)), null)
  const svg = drawSvg([chart], 'labelled')
  const count = (mark: RegExp) => svg.match(mark)?.length
  assert.deepEqual(
    [count(/class="missed"/g), count(/class="anomaly right"/g), count(/class="anomaly wrong"/g)],
    [1, 2, 1],
  )
  assert.equal(count(/class="before"/g), 2, 'the event and the alarm of the history')
  assert.match(svg, /2 found.*1 missed.*1 of 3 alarms false/)
})

test('a part of a chart has the spans of its own buckets', () => {
  const chart = chartOf(day, { labels: [[200, 210]], anomalies: [[205, 400]], judgedFrom: 100 })
  const part = partOfChart(chart, 'part', [150, 300])
  assert.deepEqual(
    [part.startMs, part.values.length, part.labels, part.anomalies, part.judgedFrom],
    [startMs + 150 * 60_000, 150, [[50, 60]], [[55, 150]], 0],
  )
  const behind = partOfChart(chart, 'the end of what was found', [208, 300])
  assert.deepEqual(labelResultsOf(behind)?.found, [[0, 2]])
  assert.deepEqual(labelResultsOf(behind)?.missed, [])
})

test('large values are written with a unit', () => {
  assert.deepEqual([5e8, -1.5e9, 123_456, 0.25].map(valueText), ['500M', '-1.5G', '123500', '0.25'])
})

test('few extremes do not flatten all other values, and are marked where they are cut', () => {
  const values = day.map((value, i) => (i === 700 ? 5_000 : value))
  const columns = columnsOf(chartOf(values), 860)
  assert.equal(scaleOf(columns)?.high, 5_000)
  const { high = 0 } = usualScaleOf(columns) ?? {}
  assert.ok(high >= 16 && high < 50, String(high))
  assert.equal(drawSvg([chartOf(values)], 'cut').match(/class="cut"/g)?.length, 1)
  assert.doesNotMatch(drawSvg([chartOf(values)], 'whole', { hasExtremes: true }), /class="cut"/)
  assert.equal(usualScaleOf(columnsOf(chartOf([1, 1, 1, 100, 1]), 860))?.high, 100)
})

test('the lines of the grid are at round values inside the scale', () => {
  assert.deepEqual(ticksOf({ low: -4.75, high: 45.99 }), [0, 10, 20, 30, 40])
  assert.deepEqual(
    ticksOf({ low: 0.101, high: 0.109 }).map((tick) => Number(tick.toFixed(6))),
    [0.102, 0.104, 0.106, 0.108],
  )
})

test('deploys are drawn with their versions where there is room, and a version is text', () => {
  const minute = (i: number) => startMs + i * 60_000
  const deploys = [
    { atMs: minute(-10), text: 'before' },
    { atMs: minute(100), text: '<b>"1.0"' },
    { atMs: minute(110), text: '1.1' },
    { atMs: minute(800), text: '2.0.0-rc.1+build' },
  ]
  const svg = drawSvg([chartOf(day, { deploys })], 'deploys')
  assert.equal(svg.match(/class="deploy"/g)?.length, 3)
  assert.match(svg, /&lt;b&gt;&quot;1\.0&quot;</)
  assert.doesNotMatch(svg, /before|>1\.1<|<b>/)
  assert.match(svg, />2\.0\.0-rc…</)
})

test('the score is drawn where there is no band', () => {
  const score = Float64Array.from(day, (_, i) => (i === 700 ? 9 : 0.2))
  assert.equal(drawSvg([chartOf(day, { score })], 'score').match(/class="score"/g)?.length, 1)
  const upper = Float64Array.from(day, () => 20)
  assert.doesNotMatch(drawSvg([chartOf(day, { score, upper })], 'band'), /class="score"/)
})

test('labels are marked in the terminal too', () => {
  const lines = drawInTerminal(chartOf([1, 2, 9, 2], { labels: [[2, 3]] }), plain)
  assert.equal(lines.at(-2), `labels${' '.repeat(7)}━`)
})
