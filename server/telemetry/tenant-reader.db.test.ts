// Reads for one organisation on the real engine, beside a neighbour in the same placement with the same rows.
// What is tested here is what an erasure promises from its start: nobody reads what is hidden, not even a
// read that began before.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { batchOf, delegate, insertRows, openStores, type Stores } from '../../tests/fixtures.ts'
import type { TimeRange } from '../core/time-range.ts'
import type { TelemetryEngine, TenantPlace } from './engine.ts'
import { type Selection, TelemetryGate } from './gate.ts'
import { NativeReader } from './native-reader.ts'
import type { Signal } from './schema/tables.ts'
import { raw, type Sql, sql } from './sql.ts'
import { type From, rangeCondition, TenantReader } from './tenant-reader.ts'

const secondNs = 1_000_000_000n
const startNs = 1_763_712_000n * secondNs
const times = Array.from({ length: 60 }, (_, i) => startNs + BigInt(i) * secondNs)
const own: TenantPlace = { tenantId: 'own', placement: 7 }
const neighbour: TenantPlace = { tenantId: 'neighbour', placement: 7 }

let stores: Stores
before(async () => {
  stores = await openStores()
  for (const place of [own, neighbour]) {
    await insertRows(stores.engine, place, batchOf('otel_logs', times, { Body: `said by ${place.tenantId}` }))
    await insertRows(stores.engine, place, batchOf('otel_traces', times))
  }
})
after(() => stores.close())

const readerOf = (place: TenantPlace, gate = new TelemetryGate(), engine: TelemetryEngine = stores.engine) =>
  new TenantReader(engine, place, gate)

const countLogs = (from: From) => sql`select count() as rows from ${from('otel_logs')}`
const count = async (reader: TenantReader, build = countLogs) =>
  Number((await reader.rows<{ rows: string }>(build))[0]?.rows)

const selection = (range: TimeRange, signals: Signal[] = ['logs'], id = 'del_1'): Selection => ({
  id,
  range,
  signals,
})

test('a reader sees all rows of its organisation and none of its neighbour’s', async () => {
  assert.equal(await count(readerOf(own)), times.length)
  const bodies = await readerOf(own).rows<{ Body: string }>(
    (from) => sql`select distinct Body from ${from('otel_logs')}`,
  )
  assert.deepEqual(bodies, [{ Body: 'said by own' }])
  assert.equal(await count(readerOf({ tenantId: 'nobody', placement: 7 })), 0)
  assert.equal(await count(readerOf({ ...own, placement: 8 })), 0)
})

test('a tenant id that looks like SQL is only a name', async () => {
  assert.equal(await count(readerOf({ tenantId: "own' or '1'='1", placement: 7 })), 0)
})

test('conditions restrict what is read, and an OR among them does not extend it', async () => {
  const build = (from: From) =>
    sql`select count() as rows from ${from('otel_logs', rangeCondition('Timestamp', { startNs, endNs: startNs + 5n * secondNs }))}`
  assert.equal(await count(readerOf(own), build), 5)
  const widened = (from: From) =>
    sql`select count() as rows from ${from('otel_logs', sql`0 or TenantId != ''`)}`
  assert.equal(await count(readerOf(own), widened), times.length)
})

test('a whole select reads the visible rows of its organisation, whatever the names of its aliases', async () => {
  const gate = new TelemetryGate()
  gate.hide('own', selection({ startNs: null, endNs: startNs + 20n * secondNs }))
  const names = ['Timestamp', 'TenantId', 'Placement', '`TenantId`', 'tenant']
  for (const reader of [readerOf(own, gate), readerOf(own).until(startNs + 40n * secondNs)]) {
    for (const name of names) {
      for (const value of ["'neighbour'", "'own'", '7', "toDateTime64('2100-01-01 00:00:00', 9, 'UTC')"]) {
        const rows = await reader.rows<{ Body: string }>((from) =>
          from.select('otel_logs', { columns: raw(`Body, ${value} AS ${name}`), conditions: [] }),
        )
        assert.equal(rows.length, 40, `${value} AS ${name}`)
        assert.ok(rows.every(({ Body }) => Body === 'said by own'))
      }
    }
  }
})

test('a whole select groups, limits and looks along a window', async () => {
  const within = rangeCondition('Timestamp', { startNs, endNs: startNs + 6n * secondNs })
  const rows = await readerOf(own).rows((from) => {
    const second = sql`toUInt8(toUnixTimestamp(Timestamp) % 3)`
    const grouped = from.select('otel_logs', {
      columns: sql`${second} AS second, toUInt8(count()) AS n`,
      conditions: [within],
      groupBy: raw('second'),
    })
    return sql`SELECT * FROM (${grouped}) ORDER BY second`
  })
  assert.deepEqual(
    rows,
    [0, 1, 2].map((second) => ({ second, n: 2 })),
  )
  const steps = await readerOf(own).rows<{ step: number }>((from) =>
    from.select('otel_logs', {
      columns: raw(
        'toUInt8(toUnixTimestamp(Timestamp) - lagInFrame(toUnixTimestamp(Timestamp)) OVER w) AS step',
      ),
      conditions: [within],
      window: raw('ORDER BY Timestamp ROWS BETWEEN 1 PRECEDING AND CURRENT ROW'),
      limit: 6,
    }),
  )
  assert.deepEqual(
    steps.slice(1),
    Array.from({ length: 5 }, () => ({ step: 1 })),
  )
})

test('a statement that names a table in its text, or reads from elsewhere, is refused before it reaches the engine', async () => {
  let asked = 0
  const counting: TelemetryEngine = {
    ...delegate(stores.engine),
    select: (statement, limits) => {
      asked++
      return stores.engine.select(statement, limits)
    },
  }
  const reader = readerOf(own, new TelemetryGate(), counting)
  const refused: ((from: From) => Sql)[] = [
    () => sql`select count() from otel_logs`,
    () => sql`select count() from OTEL_LOGS`,
    () => raw('select count() from default.otel_logs'),
    () => raw('select count() from `otel_traces`'),
    () => sql`select count() from ${raw('otel_logs')}`,
    (from) => sql`select count() from ${from('otel_logs')} union all select count() from otel_logs`,
    (from) => sql`select count() from ${from('otel_logs', sql`Body in (select Body from otel_logs)`)}`,
    (from) =>
      from.select('otel_logs', { columns: raw('(select count() from otel_logs) AS n'), conditions: [] }),
    (from) =>
      from.select('otel_logs', { columns: raw('1'), conditions: [raw('1 in (select 1 from otel_logs)')] }),
    (from) =>
      from.select('otel_logs', {
        columns: raw('1'),
        conditions: [],
        groupBy: raw('1 UNION ALL SELECT 1 FROM otel_logs'),
      }),
    (from) =>
      from.select('otel_logs', {
        columns: raw('1'),
        conditions: [],
        window: raw(') UNION ALL SELECT 1 FROM otel_logs'),
      }),
    () => sql`select * from otel.otel_logs`,
    () => sql`select * from "otel" . "otel_logs"`,
    () => sql`select * from system.tables`,
    () => sql`select * from system . parts`,
    () => sql`select * from merge('default', '^otel')`,
    () => sql`select * from file('/etc/passwd')`,
    () => sql`select * from url ('http://example.com')`,
    () => sql`select * from remote('127.0.0.1', 'default', 'x')`,
  ]
  for (const build of refused) {
    await assert.rejects(reader.rows(build), /names its tables through from/, build.toString())
  }
  assert.equal(asked, 0)
})

test('values may contain anything, also the names of tables', async () => {
  const [row] = await readerOf(own).rows<{ text: string }>(
    (from) => sql`select ${'otel_logs system.tables'} as text from ${from('otel_logs')} limit 1`,
  )
  assert.equal(row?.text, 'otel_logs system.tables')
})

test('exactly the rows inside a hidden range are hidden, whatever the range', async () => {
  const bound = fc.option(fc.bigInt({ min: startNs - secondNs, max: startNs + 61n * secondNs }), {
    nil: null,
  })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(bound, bound), { minLength: 1, maxLength: 3 }), async (bounds) => {
      const gate = new TelemetryGate()
      const ranges = bounds.map(([a, b]) =>
        a !== null && b !== null && a > b ? { startNs: b, endNs: a } : { startNs: a, endNs: b },
      )
      for (const [i, range] of ranges.entries()) gate.hide('own', selection(range, ['logs'], `del_${i}`))
      const visible = times.filter(
        (ns) =>
          !ranges.some(
            (range) =>
              (range.startNs === null || ns >= range.startNs) && (range.endNs === null || ns < range.endNs),
          ),
      )
      assert.equal(await count(readerOf(own, gate)), visible.length)
    }),
    { numRuns: 40 },
  )
})

test('hiding applies to its organisation and signals, and ends when it is undone', async () => {
  const gate = new TelemetryGate()
  gate.hide('own', selection({ startNs: null, endNs: null }))
  const countSpans = (from: From) => sql`select count() as rows from ${from('otel_traces')}`
  assert.equal(await count(readerOf(own, gate)), 0)
  assert.equal(await count(readerOf(own, gate), countSpans), times.length)
  assert.equal(await count(readerOf(neighbour, gate)), times.length)
  gate.unhide('own', 'del_1')
  assert.equal(await count(readerOf(own, gate)), times.length)
})

test('both sides of a join are the organisation’s own rows without hidden ones', async () => {
  const gate = new TelemetryGate()
  gate.hide('own', selection({ startNs: null, endNs: startNs + 10n * secondNs }))
  const joined = (from: From) =>
    sql`select count() as rows from ${from('otel_traces')} as t inner join ${from('otel_logs')} as l on l.Timestamp = t.Timestamp`
  assert.equal(await count(readerOf(own, gate), joined), times.length - 10)
})

/** The real engine, with a callback that runs while the nth result is being read. */
function interrupted(meanwhile: (nth: number) => void): { engine: TelemetryEngine; reads: () => number } {
  let reads = 0
  const engine: TelemetryEngine = {
    ...delegate(stores.engine),
    async select<T>(statement: Sql): Promise<T[]> {
      const rows = await stores.engine.select<T>(statement)
      meanwhile(++reads)
      return rows
    },
    async bytes(statement: Sql): Promise<Uint8Array> {
      const rows = await stores.engine.bytes(statement)
      meanwhile(++reads)
      return rows
    },
  }
  return { engine, reads: () => reads }
}

test('a read is repeated where something is hidden while it runs, and its result excludes it', async () => {
  const gate = new TelemetryGate()
  const { engine, reads } = interrupted((nth) => {
    if (nth === 1) gate.hide('own', selection({ startNs: null, endNs: startNs + 20n * secondNs }))
    if (nth === 2)
      gate.hide('own', selection({ startNs: startNs + 50n * secondNs, endNs: null }, ['logs'], 'del_2'))
  })
  assert.equal(await count(readerOf(own, gate, engine)), 30)
  assert.equal(reads(), 3)
})

test('bytes contain no row of a neighbour and no hidden one, and are read again when something is hidden meanwhile', async () => {
  const seconds = (from: From) =>
    from.select('otel_logs', { columns: raw('toUInt8(toUnixTimestamp(Timestamp) % 60)'), conditions: [] })
  const gate = new TelemetryGate()
  const { engine, reads } = interrupted((nth) => {
    if (nth === 1) gate.hide('own', selection({ startNs: startNs + 20n * secondNs, endNs: null }))
  })
  const found: number[] = []
  const native = new NativeReader(await readerOf(own, gate, engine).bytes(seconds))
  while (!native.isDone) {
    native.block()
    found.push(...native.uint8s())
  }
  const first = Number((startNs / secondNs) % 60n)
  assert.deepEqual(
    found.sort((a, b) => a - b),
    times
      .slice(0, 20)
      .map((_, i) => (first + i) % 60)
      .sort((a, b) => a - b),
  )
  assert.equal(reads(), 2)
  const names = (from: From) =>
    from.select('otel_logs', { columns: raw(`'neighbour' AS TenantId, Body`), conditions: [] })
  const text = Buffer.from(await readerOf(own).bytes(names)).toString()
  assert.equal(text.split('said by own').length - 1, times.length)
  assert.ok(!text.includes('said by neighbour'))
})

test('a read is repeated even where what was hidden meanwhile is visible again', async () => {
  const gate = new TelemetryGate()
  const { engine, reads } = interrupted((nth) => {
    if (nth > 1) return
    gate.hide('own', selection({ startNs: null, endNs: null }))
    gate.unhide('own', 'del_1')
  })
  assert.equal(await count(readerOf(own, gate, engine)), times.length)
  assert.equal(reads(), 2)
})

test('hiding something of a neighbour repeats no read', async () => {
  const gate = new TelemetryGate()
  const { engine, reads } = interrupted(() =>
    gate.hide('neighbour', selection({ startNs: null, endNs: null })),
  )
  assert.equal(await count(readerOf(own, gate, engine)), times.length)
  assert.equal(reads(), 1)
})

test('reads of an organisation that erases without a pause end with a refusal, also inside one another', async () => {
  const gate = new TelemetryGate()
  const { engine, reads } = interrupted(() => gate.hide('own', selection({ startNs, endNs: startNs + 1n })))
  const reader = readerOf(own, gate, engine)
  await assert.rejects(
    reader.together(() => reader.together(() => count(reader))),
    { code: 'erasing', retryAfterSeconds: 1 },
  )
  assert.equal(reads(), 6)
  assert.equal(await count(readerOf(neighbour, gate, engine)), times.length)
})

test('a body that was read before something was hidden is refused when it is sent', async () => {
  const gate = new TelemetryGate()
  const [mine, theirs] = [readerOf(own, gate), readerOf(neighbour, gate)]
  const answers = await Promise.all([mine, theirs].map((reader) => reader.answer(() => count(reader))))
  for (const { body, requireCurrent } of answers) {
    assert.equal(body, times.length)
    requireCurrent()
  }
  gate.hide('own', selection({ startNs: null, endNs: null }))
  assert.throws(() => answers[0]?.requireCurrent(), { code: 'erasing' })
  answers[1]?.requireCurrent()
  const again = await mine.answer(() => count(mine))
  again.requireCurrent()
  assert.equal(again.body, 0)
})

test('a body is outdated only where something that it contains was hidden, also after the erasure has ended', async () => {
  const gate = new TelemetryGate()
  const reader = readerOf(own, gate)
  const range = { startNs, endNs: startNs + 20n * secondNs }
  const answerOf = (signals: Signal[]) =>
    reader.answer(() => count(reader), { coverageOf: () => ({ signals, range }) })
  const [{ requireCurrent }, other] = [await answerOf(['logs', 'traces']), await answerOf(['metrics'])]
  gate.hide('own', selection({ startNs: range.endNs, endNs: null }))
  gate.hide('neighbour', selection({ startNs: null, endNs: null }))
  requireCurrent()
  gate.hide('own', selection({ startNs: null, endNs: startNs + 1n }, ['logs'], 'del_2'))
  gate.unhide('own', 'del_2')
  assert.throws(requireCurrent, { code: 'erasing' })
  other.requireCurrent()
})

test('after more hidings than are known one by one a body is outdated', async () => {
  const gate = new TelemetryGate()
  const reader = readerOf(own, gate)
  const { requireCurrent } = await reader.answer(() => count(reader), {
    coverageOf: () => ({ signals: [], range: { startNs: null, endNs: null } }),
  })
  for (let i = 0; i < 500; i++) gate.hide('own', selection({ startNs: null, endNs: null }))
  requireCurrent()
  gate.hide('own', selection({ startNs: null, endNs: null }))
  assert.throws(requireCurrent, { code: 'erasing' })
})

test('reads of an answer are repeated where something is hidden while it waits for something else', async () => {
  const gate = new TelemetryGate()
  const reader = readerOf(own, gate)
  const seen: number[] = []
  const { body } = await reader.answer(async () => {
    seen.push(await count(reader))
    await Promise.resolve()
    if (seen.length === 1) gate.hide('own', selection({ startNs: null, endNs: startNs + 20n * secondNs }))
    return seen.at(-1)
  })
  assert.deepEqual([body, seen], [40, [60, 40]])
})
