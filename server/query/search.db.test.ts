// Searches with much data: records of a megabyte among short ones, spans with long events, more rows than a
// page may search. Every test compares the pages with all rows, on the real engine, with lower limits of
// statements so that a few megabytes are much.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { formatInstant, parseInstant } from '../../contract/values/instant.ts'
import { delegate, openStores, type Stores } from '../../tests/fixtures.ts'
import { AppError } from '../core/app-error.ts'
import { EngineError, type TelemetryEngine, type TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { signals, type TableName } from '../telemetry/schema/tables.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { listLogs } from './logs.ts'
import type { ReadLimits } from './search.ts'
import { listSpans, readTrace } from './traces.ts'

const t0 = 1_763_712_000_000_000_000n
const at = (ms: number): bigint => t0 + BigInt(ms) * 1_000_000n
const range = { range_start: t0, range_end: at(3_600_000) }
const megabyte = 1 << 20

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const placeOf = (tenantId: string): TenantPlace => ({ tenantId, placement: 7 })
const readerOf = (tenantId: string, gate = new TelemetryGate(), engine: TelemetryEngine = stores.engine) =>
  new TenantReader(engine, placeOf(tenantId), gate)
const insert = (tenantId: string, table: TableName, rows: readonly FixtureRow[]) =>
  insertFixture(stores.engine, placeOf(tenantId), table, rows)
/** Inserts log records, a millisecond apart. */
const insertBodies = (tenantId: string, bodies: readonly string[]) =>
  insert(
    tenantId,
    'otel_logs',
    bodies.map((Body, i) => ({ Timestamp: at(i), Body })),
  )

type LogQuery = Parameters<typeof listLogs>[1]
type SpanQuery = Parameters<typeof listSpans>[1]

interface Page {
  readonly items: readonly unknown[]
  readonly next_cursor: string | null
}

/** Returns every page up to the last, and checks each. */
async function everyPage<P extends Page>(
  read: (cursor: string | undefined) => Promise<P>,
  look: (page: P) => void = () => {},
): Promise<P[]> {
  const pages: P[] = []
  for (let cursor: string | undefined; pages.length < 2_000; ) {
    const page = await read(cursor)
    look(page)
    pages.push(page)
    if (page.next_cursor === null) return pages
    cursor = page.next_cursor
  }
  throw new Error('The pages do not end')
}

const logPages = (
  tenantId: string,
  query: Partial<LogQuery>,
  limits?: ReadLimits,
  look?: (page: Awaited<ReturnType<typeof listLogs>>) => void,
) =>
  everyPage(
    (cursor) =>
      listLogs(
        readerOf(tenantId),
        { attribute: [], limit: 50, ...range, ...query, cursor } as LogQuery,
        at(3_600_000),
        limits,
      ),
    look,
  )

const bodiesOf = (pages: readonly { readonly items: readonly { readonly body: string }[] }[]) =>
  pages.flatMap(({ items }) => items.map(({ body }) => body))

test('a text is found among records of a megabyte that are too large for one statement', async () => {
  const filler = 'x'.repeat(megabyte - 20)
  const large = Array.from({ length: 24 }, (_, i) => ({
    Timestamp: at(i * 50),
    Body: `${filler} large ${i}`,
  }))
  const small = Array.from({ length: 2_000 }, (_, i) => ({ Timestamp: at(i), Body: `small ${i}` }))
  await insert('large', 'otel_logs', [...large, ...small])
  const limits = { maxSeconds: 20, maxMemoryBytes: 64 * megabyte }
  const found = bodiesOf(await logPages('large', { text: 'LARGE' }, limits))
  assert.deepEqual(
    found.map((body) => body.slice(filler.length)),
    large.map(({ Body }) => Body.slice(filler.length)).reverse(),
  )
  assert.deepEqual(bodiesOf(await logPages('large', { text: 'small 17' }, limits)).length, 111)
})

test('a page ends at 4 MiB of JSON, and the pages together are the whole list', async () => {
  const bodies = Array.from({ length: 60 }, (_, i) => `${i} ${'y'.repeat(300_000)}`)
  await insertBodies('bytes', bodies)
  const pages = await logPages('bytes', { limit: 500 }, undefined, (page) =>
    assert.ok(JSON.stringify(page).length < 4 * megabyte + 1_000),
  )
  assert.deepEqual(bodiesOf(pages), bodies.toReversed())
  assert.equal(pages.length, 5)
})

test('each long record of a page takes a turn of its organisation on the event loop', async () => {
  const bodies = Array.from({ length: 8 }, (_, i) => `${i} ${'z'.repeat(300_000)}`)
  await insertBodies('turns', bodies)
  let turns = 0
  const turn = async () => void turns++
  const reader = new TenantReader(stores.engine, placeOf('turns'), new TelemetryGate(), { turn })
  const page = await listLogs(reader, { attribute: [], limit: 50, ...range }, at(3_600_000))
  assert.deepEqual(bodiesOf([page]), bodies.toReversed())
  assert.ok(turns >= bodies.length, `${turns} turns`)
})

test('a record that is longer than a page is returned alone and complete', async () => {
  const long = '\u0001'.repeat(megabyte)
  await insert('alone', 'otel_logs', [
    { Timestamp: at(1), Body: 'before' },
    { Timestamp: at(2), Body: long },
    { Timestamp: at(3), Body: 'after' },
  ])
  const pages = await logPages('alone', {})
  assert.deepEqual(
    pages.map(({ items }) => items.map(({ body }) => (body === long ? 'long' : body))),
    [['after'], ['long'], ['before']],
  )
})

/** Within all limits of telemetry; JSON writes each of its characters as six. */
const manyAttributes = () =>
  Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key ${i}`, '\u0001'.repeat(32_000)]))

test('a log record with more than 8 MiB of JSON is returned alone, without its attributes, and reported', async () => {
  const attributes = manyAttributes()
  const fewer = Object.fromEntries(Object.entries(attributes).slice(0, 40))
  await insert('attributes', 'otel_logs', [
    { Timestamp: at(1), Body: 'before', LogAttributes: { shop: 'one' } },
    { Timestamp: at(2), Body: 'long', LogAttributes: attributes },
    { Timestamp: at(3), Body: 'shorter', LogAttributes: fewer },
  ])
  const pages = await logPages('attributes', {})
  assert.deepEqual(
    pages.map(({ items }) => items.map(({ attributes: shown, body }) => [body, Object.keys(shown).length])),
    [[['shorter', 40]], [['long', 0]], [['before', 1]]],
  )
  assert.deepEqual(
    pages.map(({ warnings }) => warnings.length),
    [0, 1, 0],
  )
  assert.ok(pages[1]?.warnings[0]?.includes(formatInstant(at(2))), pages[1]?.warnings[0])
})

test('a span with more than 8 MiB of JSON is returned without its attributes and those of its events and links', async () => {
  const trace_id = 'e'.repeat(32)
  await insert('attributes', 'otel_traces', [
    {
      ...{ Timestamp: at(1), TraceId: trace_id, SpanAttributes: { shop: 'one' } },
      'Events.Timestamp': ['1763712000.0'],
      'Events.Name': ['event'],
      'Events.Attributes': [manyAttributes()],
      'Links.TraceId': [trace_id],
      'Links.SpanId': ['d'.repeat(16)],
      'Links.TraceState': [''],
      'Links.Attributes': [{ shop: 'one' }],
    },
  ])
  const { spans, warnings } = await readTrace(readerOf('attributes'), trace_id, { limit: 1 })
  assert.equal(warnings.length, 1)
  const [span] = spans
  assert.deepEqual(
    [span?.attributes, span?.events[0]?.name, span?.events[0]?.attributes, span?.links[0]?.attributes],
    [{}, 'event', {}, {}],
  )
})

test('a search that has used its share returns how far it has searched, and its cursor continues there', async () => {
  const rows = Array.from({ length: 2_000 }, (_, i) => ({
    Timestamp: at(i),
    Body: `row ${i} ${'z'.repeat(1_000)}`,
  }))
  await insert('share', 'otel_logs', rows)
  // Not enough memory for a whole search, enough for slices of a hundred records.
  const limits = {
    maxSeconds: 20,
    maxMemoryBytes: 512 * megabyte,
    pageBytes: 1,
    sliceBytes: 100_000,
    searchBytes: 500_000,
  }
  const starts: string[] = []
  const pages = await logPages(
    'share',
    { text: 'z', limit: 500 },
    { ...limits, maxMemoryBytes: 1 },
    () => {},
  ).catch((error: { code?: string }) => error.code)
  assert.equal(pages, 'query_too_expensive', 'not even lengths can be read in a byte')
  const none = await everyPage(
    (cursor) =>
      listLogs(
        readerOf('share', undefined, refusing(stores.engine)),
        { attribute: [], limit: 500, ...range, text: 'row 3 z', cursor } as LogQuery,
        at(3_600_000),
        limits,
      ),
    (page) => starts.push(page.searched.range_start),
  )
  assert.deepEqual(
    bodiesOf(none).map((body) => body.slice(0, 7)),
    ['row 3 z'],
  )
  assert.ok(none.filter(({ items }) => items.length === 0).length > 2, 'there are empty pages with a cursor')
  assert.ok(none[0]?.warnings[0]?.includes('next_cursor'))
  assert.equal(starts.at(-1), formatInstant(t0))
  assert.deepEqual(new Set(starts).size, starts.length, 'every page searches further than the one before')
})

/**
 * An engine on which every statement costs too much, except those that are read in blocks of a given size.
 */
function refusing(engine: TelemetryEngine): TelemetryEngine {
  return {
    ...delegate(engine),
    select: (statement, limits) =>
      engine.select(
        statement,
        limits?.maxResultBytes !== undefined && limits.maxBlockRows === undefined
          ? { ...limits, maxMemoryBytes: 1 }
          : limits,
      ),
  }
}

test('pages of any size, whole or in slices, are the whole list, also while rows arrive', async () => {
  let n = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({ ms: fc.integer({ min: 0, max: 20 }), length: fc.integer({ min: 0, max: 3_000 }) }),
        {
          minLength: 1,
          maxLength: 60,
        },
      ),
      fc.record({
        limit: fc.integer({ min: 1, max: 30 }),
        pageBytes: fc.integer({ min: 1, max: 20_000 }),
        sliceBytes: fc.integer({ min: 1, max: 30_000 }),
        searchBytes: fc.integer({ min: 1, max: 60_000 }),
        isSliced: fc.boolean(),
        isSearched: fc.boolean(),
      }),
      async (sizes, { isSearched, isSliced, limit, ...bytes }) => {
        const tenantId = `pages-${n++}`
        const rows = sizes.map(({ ms, length }, i) => ({
          Timestamp: at(ms * 1_000),
          TraceId: 'a'.repeat(32),
          Body: `early ${i % 50} ${'b'.repeat(length)}`,
          SpanName: `early ${i % 50} ${'b'.repeat(length)}`,
        }))
        const [logs, spans] = [
          rows.map(({ SpanName: _, ...row }) => row),
          rows.map(({ Body: _, ...row }) => row),
        ]
        await insert(tenantId, 'otel_logs', logs)
        await insert(tenantId, 'otel_traces', spans)
        const engine = isSliced ? refusing(stores.engine) : stores.engine
        const reader = readerOf(tenantId, undefined, engine)
        const limits = { maxSeconds: 20, maxMemoryBytes: 512 * megabyte, ...bytes }
        let arrived = 0
        const arrive = async () => {
          if (arrived++ > 2) return
          const late = { Timestamp: at(10_000), Body: `late ${arrived}` }
          await insert(tenantId, 'otel_logs', [late, { ...late, Timestamp: at(3_000_000) }])
        }
        const query = {
          attribute: [],
          limit,
          ...range,
          ...(isSearched && { text: 'early' }),
        } as unknown as LogQuery
        const found = await everyPage(async (cursor) => {
          if (cursor !== undefined) await arrive()
          return listLogs(reader, { ...query, cursor }, at(3_600_000), limits)
        })
        for (const page of found) {
          assert.ok(page.items.length <= limit)
          const json = page.items.reduce((sum, item) => sum + JSON.stringify(item).length + 1, 0)
          assert.ok(page.items.length <= 1 || json <= bytes.pageBytes)
        }
        const early = bodiesOf(found).filter((body) => body.startsWith('early'))
        assert.deepEqual(early.toSorted(), logs.map(({ Body }) => Body).toSorted())
        const times = found.flatMap(({ items }) => items.map(({ time }) => time))
        assert.deepEqual(times, times.toSorted().reverse())
        const trace = await everyPage(async (cursor) => {
          const { spans: items, ...rest } = await readTrace(reader, 'a'.repeat(32), { limit, cursor }, limits)
          return { items, ...rest }
        })
        const names = trace.flatMap(({ items }) => items.map(({ name }) => name))
        assert.deepEqual(names.toSorted(), spans.map(({ SpanName }) => SpanName).toSorted())
        const starts = trace.flatMap(({ items }) => items.map(({ time }) => time))
        assert.deepEqual(starts, starts.toSorted())
      },
    ),
    { numRuns: 8, verbose: 1 },
  )
})

test('spans and traces with long events are returned in pages of bytes, within the memory of a statement', async () => {
  const traceId = 'c'.repeat(32)
  const long = { stack: 's'.repeat(32_000) }
  const rows = Array.from({ length: 5 }, (_, i) => ({
    Timestamp: at(i),
    TraceId: traceId,
    SpanName: `span ${i}`,
    StatusCode: 'Error',
    'Events.Timestamp': Array.from({ length: 60 }, () => '1763712000.0'),
    'Events.Name': Array.from({ length: 60 }, () => 'exception'),
    'Events.Attributes': Array.from({ length: 60 }, () => long),
  }))
  const short = Array.from({ length: 500 }, (_, i) => ({
    Timestamp: at(i),
    TraceId: traceId,
    SpanName: `short ${i}`,
  }))
  await insert('events', 'otel_traces', [...rows, ...short])
  const limits = { maxSeconds: 20, maxMemoryBytes: 64 * megabyte }
  const reader = readerOf('events')
  const query = {
    attribute: [],
    min_duration_ms: 0,
    limit: 500,
    ...range,
    status: 'error',
  } as unknown as SpanQuery
  const spans = await everyPage(
    (cursor) => listSpans(reader, { ...query, cursor }, at(3_600_000), limits),
    (page) => assert.ok(JSON.stringify(page).length < 4 * megabyte + 1_000),
  )
  assert.deepEqual(
    spans.flatMap(({ items }) => items.map(({ name }) => name)),
    rows.map(({ SpanName }) => SpanName).reverse(),
  )
  const trace = await everyPage(async (cursor) => {
    const { spans: items, ...rest } = await readTrace(reader, traceId, { limit: 10_000, cursor }, limits)
    assert.equal(rest.truncated, rest.next_cursor !== null)
    return { items, ...rest }
  })
  assert.equal(new Set(trace.flatMap(({ items }) => items.map(({ name }) => name))).size, 505)
  assert.equal(trace.flatMap(({ items }) => items).length, 505)
})

test('a page that has taken long ends after its current slice, and a slice that was too slow to search is named', async () => {
  const rows = Array.from({ length: 40 }, (_, i) => ({
    Timestamp: at(i * 1_000),
    Body: `slow ${i} ${'t'.repeat(2_000)}`,
  }))
  await insert('slow', 'otel_logs', rows)
  let elapsedMs = 0
  let statements = 0
  const late = new AppError('query_too_expensive', { cause: new EngineError('late', { code: 159 }) })
  const slow: TelemetryEngine = {
    ...delegate(stores.engine),
    select: async (statement, limits) => {
      elapsedMs += 6_000
      if (limits?.maxBlockRows !== undefined && ++statements === 2) throw late
      return refusing(stores.engine).select(statement, limits) as never
    },
  }
  const pages = await everyPage((cursor) => {
    elapsedMs = 0
    return listLogs(
      readerOf('slow', undefined, slow),
      { attribute: [], limit: 50, ...range, text: 'slow', cursor } as never,
      at(3_600_000),
      { maxSeconds: 20, maxMemoryBytes: 512 * megabyte, sliceBytes: 15_000, elapsedMs: () => elapsedMs },
    )
  })
  const found = bodiesOf(pages).length
  const warnings = pages.flatMap((page) => page.warnings)
  assert.ok(pages.length > 3 && pages.every(({ items }) => items.length < 10))
  assert.ok(found < 40 && found > 30)
  assert.equal(warnings.filter((text) => text.includes('in time')).length, 1)
})

test('what is hidden between two statements of one page is not in its result', async () => {
  const rows = Array.from({ length: 20 }, (_, i) => ({
    Timestamp: at(i * 1_000),
    Body: `row ${i} ${'h'.repeat(1_000)}`,
  }))
  await insert('hidden', 'otel_logs', rows)
  const gate = new TelemetryGate()
  let answered = 0
  const hiding: TelemetryEngine = {
    ...delegate(stores.engine),
    select: async (statement, limits) => {
      const found = await refusing(stores.engine).select(statement, limits)
      if (++answered === 6)
        gate.hide('hidden', { id: 'del_1', signals, range: { startNs: null, endNs: at(18_000) } })
      return found as never
    },
  }
  const page = await listLogs(
    readerOf('hidden', gate, hiding),
    { attribute: [], limit: 50, ...range, text: 'row' } as never,
    at(3_600_000),
    { maxSeconds: 20, maxMemoryBytes: 512 * megabyte, sliceBytes: 1_000 },
  )
  assert.ok(answered > 6, 'the page takes several statements')
  assert.deepEqual(
    page.items.map(({ body }) => body.slice(0, 6)),
    ['row 19', 'row 18'],
  )
})

test('a record that can not be read even alone is left out, and the response says where', async () => {
  // A week each, so that each is in a part of its own.
  const week = 7 * 24 * 3_600_000
  await insert('unreadable', 'otel_logs', [
    { Timestamp: at(week), Body: 'one' },
    { Timestamp: at(2 * week), Body: 'u'.repeat(8 * megabyte) },
    { Timestamp: at(3 * week), Body: 'three' },
  ])
  const pages = await everyPage((cursor) =>
    listLogs(
      readerOf('unreadable'),
      { attribute: [], limit: 50, range_start: t0, range_end: at(4 * week), text: 'e', cursor } as never,
      at(4 * week),
      { maxSeconds: 20, maxMemoryBytes: 5 * megabyte, sliceBytes: 1_000 },
    ),
  )
  assert.deepEqual(bodiesOf(pages), ['three', 'one'])
  const warnings = pages.flatMap((page) => page.warnings)
  assert.equal(warnings.length, 1)
  const [from = 0n, to = 0n] = [.../\d{4}-\S+Z/g[Symbol.matchAll](warnings[0] ?? '')].map(([text]) => {
    const parsed = parseInstant(text)
    return 'ns' in parsed ? parsed.ns : undefined
  })
  assert.ok(from <= at(2 * week) && at(2 * week) < to, warnings[0])
})

test('other work of the event loop runs while a span with many attributes of events and links is converted', async () => {
  const keys = Array.from({ length: 100 }, (_, i) => [`key ${i}`, 'value'])
  const many = Array.from({ length: 500 }, () => Object.fromEntries(keys))
  const trace_id = 'c'.repeat(32)
  await insert('crowded', 'otel_traces', [
    {
      ...{ Timestamp: t0, TraceId: trace_id },
      'Events.Timestamp': many.map(() => '1763712000.0'),
      'Events.Name': many.map(() => 'event'),
      'Events.Attributes': many,
      'Links.TraceId': many.map(() => trace_id),
      'Links.SpanId': many.map(() => 'd'.repeat(16)),
      'Links.TraceState': many.map(() => ''),
      'Links.Attributes': many,
    },
  ])
  let turns = 0
  const turn = async () => void turns++
  const reader = new TenantReader(stores.engine, placeOf('crowded'), new TelemetryGate(), { turn })
  const { spans } = await readTrace(reader, trace_id, { limit: 1 })
  const [span] = spans
  assert.deepEqual([span?.events.length, span?.links.length], [500, 500])
  assert.deepEqual([span?.events[499]?.attributes, span?.links[499]?.attributes], [many[0], many[0]])
  // A page with one row, in one line of the result, would wait once at most.
  assert.ok(turns > 4, `${turns} turns`)
})
