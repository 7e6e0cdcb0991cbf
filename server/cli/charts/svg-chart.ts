// Judged series as an SVG picture, one panel below the other. A panel shows values with their band or, where
// the method has none, with the score below them; anomalies; deploys; and, where events are labelled, which
// of them were found or missed and which alarms were false. It has no references to other files, and text
// from the input is escaped. Pure.

import {
  type BucketSpan,
  type Chart,
  type Column,
  columnsOf,
  labelResultsOf,
  type Marker,
  minuteText,
  type Scale,
  scaleOf,
  ticksOf,
  usualScaleOf,
  valueText,
} from './chart.ts'

interface PictureSize {
  readonly width: number
  /** Of the values of one panel. */
  readonly plotHeight: number
  /** Whether each panel names its colours. */
  readonly hasLegend: boolean
  /** Whether extremes are shown in full, also where they flatten everything else. */
  readonly hasExtremes: boolean
}

const usualSize: PictureSize = { width: 960, plotHeight: 172, hasLegend: true, hasExtremes: false }
const margin = { left: 80, right: 20, top: 34, bottom: 34 }
/** Units of the picture for each label of time. */
const timeLabelWidth = 190
const scoreHeight = 34
/** Scores beyond this multiple of the edge are cut. */
const scoreMax = 2
const lane = { height: 8, gap: 3, before: 8 }
/** The least width of a drawn range, so that it can be seen. */
const leastWidth = 1.5
/** Deploys of which the texts have no room show their lines alone. */
const deployTextWidth = 56

const colours = {
  values: '#1f77b4',
  alarm: '#d62728',
  right: '#2ca02c',
  missed: '#ff8c00',
  history: '#bbbbbb',
  deploy: '#7b3fb5',
  score: '#666',
} as const

export function drawSvg(charts: readonly Chart[], name: string, size: Partial<PictureSize> = {}): string {
  const whole = { ...usualSize, ...size }
  let height = 0
  const panels = charts.map((chart) => {
    const panel = panelOf(chart, whole)
    const placed = `<g transform="translate(0 ${height})">${panel.text}</g>`
    height += panel.height
    return placed
  })
  const { width } = whole
  height = Math.max(height, margin.top)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11" fill="#333" role="img">`,
    `<title>${escapeMarkup(name)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...panels,
    '</svg>',
    '',
  ].join('\n')
}

interface Panel {
  readonly text: string
  readonly height: number
}

type ToPosition = (value: number) => number

/** Positions in a panel. */
interface Frame {
  readonly left: number
  readonly right: number
  readonly top: number
  /** End of the values. */
  readonly bottom: number
  /** The horizontal position of a bucket's start; fractions are inside it. */
  readonly xOf: ToPosition
}

function panelOf(chart: Chart, { hasExtremes, hasLegend, plotHeight, width }: PictureSize): Panel {
  const [left, right, top] = [margin.left, width - margin.right, margin.top]
  const bottom = top + plotHeight
  const share = (right - left) / Math.max(1, chart.values.length)
  const frame: Frame = { left, right, top, bottom, xOf: (bucket) => round(left + bucket * share) }
  const columns = columnsOf(chart, right - left)
  const scale = hasExtremes ? scaleOf(columns) : usualScaleOf(columns)
  const title = `<text x="${left}" y="20" font-size="13" font-weight="bold">${escapeMarkup(chart.title)}</text>`
  if (scale === null) {
    const none = `<text x="${left}" y="${top + 20}">No values.</text>`
    return { text: `${title}${none}`, height: bottom + margin.bottom }
  }
  const step = (right - left) / columns.length
  const x = (i: number) => round(left + (i + 0.5) * step)
  const y = (value: number) => {
    const height = (value - scale.low) / (scale.high - scale.low)
    return round(bottom - Math.max(0, Math.min(1, height)) * (bottom - top))
  }
  const score = scoreOfPanel(chart, columns, frame, x)
  const lanes = lanesOf(chart, { ...frame, bottom: score.bottom })
  return {
    text: [
      title,
      ...(hasLegend ? [legendOf(chart, frame)] : []),
      ...historyOf(chart, frame),
      ...gridOf(scale, frame, y),
      ...shadesOf(chart, frame),
      ...bandsOf(columns, frame, x, y),
      ...runsOf(columns, (one) => !Number.isNaN(one.least)).map(([from, until]) =>
        lineOf(columns, from, until, x, y),
      ),
      ...cutsOf(columns, scale, frame, x),
      ...deploysIn(chart, frame),
      ...score.parts,
      ...lanes.parts,
      ...timesOf(chart, { ...frame, bottom: lanes.bottom }),
    ].join('\n'),
    height: lanes.bottom + margin.bottom,
  }
}

/** The part that only serves to learn is grey. */
function historyOf({ judgedFrom = 0 }: Chart, { bottom, left, top, xOf }: Frame): string[] {
  if (judgedFrom === 0) return []
  return [
    `<rect class="history" x="${left}" y="${top}" width="${round(xOf(judgedFrom) - left)}" height="${bottom - top}" fill="#f3f3f3"/>`,
  ]
}

function gridOf(scale: Scale, { left, right }: Frame, y: ToPosition): string[] {
  return ticksOf(scale).map(
    (value) =>
      `<path d="M${left} ${y(value)}H${right}" stroke="#ddd"/><text x="${left - 6}" y="${y(value) + 4}" text-anchor="end">${valueText(value)}</text>`,
  )
}

function timesOf({ startMs, stepMs, values }: Chart, { bottom, left, right }: Frame): string[] {
  const count = Math.max(2, Math.min(5, Math.floor((right - left) / timeLabelWidth) + 1))
  return Array.from({ length: count }, (_, i) => {
    const share = i / (count - 1)
    const text = minuteText(startMs + stepMs * Math.round(share * (values.length - 1)))
    const anchor = i === 0 ? 'start' : i === count - 1 ? 'end' : 'middle'
    return `<text x="${round(left + share * (right - left))}" y="${bottom + 18}" text-anchor="${anchor}">${text}</text>`
  })
}

function rectOf(
  className: string,
  [from, until]: BucketSpan,
  { xOf }: Frame,
  box: { readonly y: number; readonly height: number; readonly fill: string; readonly opacity: number },
): string {
  const width = round(Math.max(leastWidth, xOf(until) - xOf(from)))
  return `<rect class="${className}" x="${xOf(from)}" y="${box.y}" width="${width}" height="${box.height}" fill="${box.fill}" fill-opacity="${box.opacity}"/>`
}

/** Behind the values: what was raised, and what was missed. */
function shadesOf(chart: Chart, frame: Frame): string[] {
  const box = { y: frame.top, height: frame.bottom - frame.top, opacity: 0.18 }
  const labelResults = labelResultsOf(chart)
  const draw = (className: string, spans: readonly BucketSpan[], fill: string) =>
    spans.map((span) => rectOf(className, span, frame, { ...box, fill }))
  if (labelResults === null) return draw('anomaly', chart.anomalies, colours.alarm)
  return [
    ...draw('missed', labelResults.missed, colours.missed),
    ...draw('anomaly right', labelResults.right, colours.right),
    ...draw('anomaly wrong', labelResults.wrong, colours.alarm),
  ]
}

/** Below the values, where events were labelled: a row of them, and a row of alarms. */
function lanesOf(chart: Chart, frame: Frame): { readonly parts: string[]; readonly bottom: number } {
  const labelResults = labelResultsOf(chart)
  if (labelResults === null) return { parts: [], bottom: frame.bottom }
  const { judgedFrom = 0, labels = [] } = chart
  const past = (spans: readonly BucketSpan[]) => spans.filter(([from]) => from < judgedFrom)
  const rows = [
    {
      name: 'events',
      past: past(labels),
      good: labelResults.found,
      bad: labelResults.missed,
      fill: colours.missed,
    },
    {
      name: 'alarms',
      past: past(chart.anomalies),
      good: labelResults.right,
      bad: labelResults.wrong,
      fill: colours.alarm,
    },
  ]
  const parts = rows.flatMap(({ bad, fill, good, name, past: before }, i) => {
    const y = frame.bottom + lane.before + i * (lane.height + lane.gap)
    const draw = (className: string, spans: readonly BucketSpan[], colour: string) =>
      spans.map((span) =>
        rectOf(className, span, frame, { y, height: lane.height, fill: colour, opacity: 1 }),
      )
    return [
      `<rect x="${frame.left}" y="${y}" width="${frame.right - frame.left}" height="${lane.height}" fill="#f3f3f3"/>`,
      `<text x="${frame.left - 6}" y="${y + lane.height}" text-anchor="end">${name}</text>`,
      ...draw('before', before, colours.history),
      ...draw('good', good, colours.right),
      ...draw('bad', bad, fill),
    ]
  })
  return { parts, bottom: frame.bottom + lane.before + 2 * (lane.height + lane.gap) }
}

/** A strip with the score and its edge, where no band shows how far the values are from what was expected. */
function scoreOfPanel(chart: Chart, columns: readonly Column[], frame: Frame, x: ToPosition) {
  const hasBand = columns.some(({ lower, upper }) => !Number.isNaN(lower) || !Number.isNaN(upper))
  if (chart.score === undefined || hasBand) return { parts: [], bottom: frame.bottom }
  const top = frame.bottom + lane.before
  const bottom = top + scoreHeight
  const y = (score: number) => round(bottom - (Math.min(scoreMax, score) / scoreMax) * scoreHeight)
  const lines = runsOf(columns, ({ score }) => !Number.isNaN(score)).map(([from, until]) => {
    const points = columns.slice(from, until).map(({ score }, i) => `${x(from + i)} ${y(score)}`)
    return `<path class="score" d="M${points.length === 1 ? `${points[0]}h0` : points.join('L')}" fill="none" stroke="${colours.score}" stroke-width="0.8" stroke-linecap="round"/>`
  })
  const parts = [
    `<rect x="${frame.left}" y="${top}" width="${frame.right - frame.left}" height="${scoreHeight}" fill="#fafafa"/>`,
    `<text x="${frame.left - 6}" y="${y(1) + 4}" text-anchor="end">score 1</text>`,
    ...lines,
    `<path d="M${frame.left} ${y(1)}H${frame.right}" stroke="${colours.alarm}" stroke-dasharray="4 3"/>`,
  ]
  return { parts, bottom }
}

/** A line for each deploy; its text is above the plot where there is room after the previous one. */
function deploysIn({ deploys = [], startMs, stepMs, values }: Chart, frame: Frame): string[] {
  let textFrom = frame.left
  return deploys.flatMap(({ atMs, text }: Marker) => {
    const bucket = (atMs - startMs) / stepMs
    if (bucket < 0 || bucket > values.length) return []
    const at = frame.xOf(bucket)
    const line = `<path class="deploy" d="M${at} ${frame.top - 2}V${frame.bottom}" stroke="${colours.deploy}" stroke-dasharray="2 2"/><path d="M${at} ${frame.top + 2}l-3.5 -6h7z" fill="${colours.deploy}"/>`
    if (at < textFrom || at > frame.right - deployTextWidth) return [line]
    textFrom = at + deployTextWidth
    const shown = text.length > 9 ? `${text.slice(0, 8)}…` : text
    return [
      `${line}<text x="${at + 5}" y="${frame.top + 3}" font-size="9" fill="${colours.deploy}">${escapeMarkup(shown)}</text>`,
    ]
  })
}

/** A small mark where a value lies beyond the scale. */
function cutsOf(
  columns: readonly Column[],
  { high, low }: Scale,
  { bottom, top }: Frame,
  x: ToPosition,
): string[] {
  return columns.flatMap(({ greatest, least }, i) => [
    ...(greatest > high
      ? [`<path class="cut" d="M${x(i) - 3} ${top}h6l-3 -5z" fill="${colours.values}"/>`]
      : []),
    ...(least < low
      ? [`<path class="cut" d="M${x(i) - 3} ${bottom}h6l-3 5z" fill="${colours.values}"/>`]
      : []),
  ])
}

/** What the colours mean, at the right of the title; empty where there is nothing but values and alarms. */
function legendOf(chart: Chart, { right }: Frame): string {
  const labelResults = labelResultsOf(chart)
  const words: [fill: string, text: string][] = [
    ...(chart.deploys !== undefined && chart.deploys.length > 0
      ? ([[colours.deploy, 'deploy']] as [string, string][])
      : []),
    ...(labelResults === null
      ? []
      : ([
          [colours.right, `${labelResults.found.length} found`],
          [colours.missed, `${labelResults.missed.length} missed`],
          [
            colours.alarm,
            `${labelResults.wrong.length} of ${labelResults.right.length + labelResults.wrong.length} alarms false`,
          ],
        ] as [string, string][])),
  ]
  if (words.length === 0) return ''
  const spans = words.map(
    ([fill, text]) => `<tspan fill="${fill}" dx="10">■</tspan><tspan dx="3">${escapeMarkup(text)}</tspan>`,
  )
  return `<text class="legend" x="${right}" y="20" text-anchor="end">${spans.join('')}</text>`
}

/** A band with one edge reaches to the end of the panel on its other side. */
function bandsOf(columns: readonly Column[], frame: Frame, x: ToPosition, y: ToPosition): string[] {
  const has = (one: Column) => !Number.isNaN(one.lower) || !Number.isNaN(one.upper)
  return runsOf(columns, has).map(([from, until]) => {
    const run = columns.slice(from, until)
    const top = run.map((one, i) => `${x(from + i)} ${Number.isNaN(one.upper) ? frame.top : y(one.upper)}`)
    const bottom = run.map(
      (one, i) => `${x(from + i)} ${Number.isNaN(one.lower) ? frame.bottom : y(one.lower)}`,
    )
    return `<path class="band" d="M${[...top, ...bottom.reverse()].join('L')}Z" fill="${colours.values}" fill-opacity="0.18"/>`
  })
}

/** A dot is a line of no length with round ends. */
function lineOf(
  columns: readonly Column[],
  from: number,
  until: number,
  x: ToPosition,
  y: ToPosition,
): string {
  const points = columns
    .slice(from, until)
    .flatMap(({ greatest, least }, i) =>
      y(least) === y(greatest)
        ? [`${x(from + i)} ${y(least)}`]
        : [`${x(from + i)} ${y(least)}`, `${x(from + i)} ${y(greatest)}`],
    )
  const path = points.length === 1 ? `${points[0]}h0` : points.join('L')
  return `<path class="values" d="M${path}" fill="none" stroke="${colours.values}" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round"/>`
}

/** Runs of neighbouring columns that match, half-open. */
function runsOf(columns: readonly Column[], matches: (column: Column) => boolean): [number, number][] {
  const runs: [number, number][] = []
  columns.forEach((column, i) => {
    if (!matches(column)) return
    const last = runs.at(-1)
    if (last?.[1] === i) last[1] = i + 1
    else runs.push([i, i + 1])
  })
  return runs
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Text between tags or in an attribute. Characters that XML does not allow are replaced. */
export function escapeMarkup(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
