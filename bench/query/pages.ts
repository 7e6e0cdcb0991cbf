// What a page of four megabytes of log records costs the event loop, from the bytes that the engine returns
// to the bytes of the response: rows are parsed, items are counted until the page is full, and the response
// is written by its schema. The baseline does the same with whole texts: one JSON.parse, and JSON.stringify
// for each item and for the body. Both run in turn on the same rows; medians of wall time.
//
// npm run bench -- query/pages [--rounds 40]

import { parseArgs } from 'node:util'
import type { z } from 'zod'
import { LogPage, type LogRecord } from '../../contract/telemetry/queries.ts'
import { jsonBytes, pageBytes } from '../../server/core/input/cursor.ts'
import { Pace } from '../../server/core/turns/pace.ts'
import { responseWriter } from '../../server/http/response-text.ts'
import { readLines } from '../../server/telemetry/json-lines.ts'
import { report } from '../report.ts'
import { quantile, rounded } from '../samples.ts'

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '40' } } })

type Item = z.output<typeof LogRecord>
type Row = Omit<Item, 'attributes' | 'resource_attributes'>

const recordBytes = [300, 8_000, 200_000]
const range = { range_start: '2026-11-26T10:00:00Z', range_end: '2026-11-26T11:00:00Z' }
const write = responseWriter(LogPage)
const decoder = new TextDecoder()

function rowsOf(bytes: number): Row[] {
  return Array.from({ length: Math.floor(pageBytes / (bytes + 200)) }, (_, at) => ({
    time: '2026-11-26T10:30:00.123456789Z',
    service: 'checkout',
    severity: 'INFO',
    severity_number: 9,
    body: `${at} `.padEnd(bytes, 'lorem ipsum dolor sit amet '),
    trace_id: '5b8efff798038103d269b633813fc60c',
    span_id: 'eee19b7ec3c1b174',
    event_name: '',
  }))
}

const itemOf = (row: Row): Item => ({ ...row, attributes: {}, resource_attributes: {} })

function pageOf(rows: readonly Row[], bytesOf: (item: Item) => number) {
  let left = pageBytes
  const items = rows.map(itemOf).filter((item) => {
    left -= bytesOf(item)
    return left >= 0
  })
  return { items, next_cursor: null, searched: range, warnings: [] }
}

const ways = {
  async pieces(lines: Uint8Array) {
    const turn = async () => {}
    return write(pageOf(await readLines<Row>(lines, turn), jsonBytes), new Pace(turn))
  },
  async whole(lines: Uint8Array) {
    const rows: Row[] = JSON.parse(`[${decoder.decode(lines).trimEnd().replaceAll('\n', ',')}]`)
    const page = pageOf(rows, (item) => Buffer.byteLength(JSON.stringify(item)) + 1)
    return Buffer.from(JSON.stringify(LogPage.encode(page)))
  },
}

for (const bytes of recordBytes) {
  const rows = rowsOf(bytes)
  const lines = Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  const [own, whole] = [await ways.pieces(lines), await ways.whole(lines)]
  if (!own.equals(whole)) throw new Error('The two ways returned different pages.')
  const times = { pieces: [] as number[], whole: [] as number[] }
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const way of ['pieces', 'whole'] as const) {
      // The engine's library returns new memory each time.
      const given = new Uint8Array(lines)
      const startMs = performance.now()
      await ways[way](given)
      times[way].push(performance.now() - startMs)
    }
  }
  const [ms, wholeMs] = [quantile(times.pieces, 0.5), quantile(times.whole, 0.5)]
  report('A page of 4 MiB of log records', {
    'bytes a record': bytes,
    records: rows.length,
    ms: rounded(ms, 1),
    'whole texts, ms': rounded(wholeMs, 1),
    'of whole texts': rounded(ms / wholeMs),
  })
}
