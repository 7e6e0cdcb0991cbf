// Group commits on the real engine, with a manual clock. Where a test needs the engine to fail or to be slow,
// a thin wrapper does that and passes everything else to the real one.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import {
  batchOf,
  type CellRows,
  delegate,
  encodeRows,
  openStores,
  type Stores,
  silent,
} from '../../../tests/fixtures.ts'
import { placedRows } from '../../../tests/otlp/named-cells.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { MemoryPlacementLocks } from '../../telemetry/placement-locks.ts'
import { exporterDatabase } from '../../telemetry/schema/exporter-views.ts'
import type { TableName } from '../../telemetry/schema/tables.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { IngestWriter } from './writer.ts'

const commitDelayMs = 200
const startNs = 1_767_571_200_000_000_000n

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

let organisations = 0
const newPlace = (placement = 1): TenantPlace => ({ tenantId: `org-${++organisations}`, placement })

const logs = (count: number, body = ''): readonly CellRows[] => [
  batchOf(
    'otel_logs',
    Array.from({ length: count }, (_, i) => startNs + BigInt(i)),
    { Body: body },
  ),
]

async function count(place: TenantPlace, table: TableName = 'otel_logs'): Promise<number> {
  const [row] = await stores.engine.select<{ rows: string }>(
    sql`select count() as rows from ${raw(table)} where TenantId = ${place.tenantId}`,
  )
  return Number(row?.rows)
}

/** The rows of one insert. */
interface Insert {
  readonly table: string
  readonly rows: number
  readonly placements: ReadonlySet<number>
}

interface SceneOptions {
  readonly areCoresShort?: () => boolean
  readonly bufferBytes?: number
  /** Runs before the nth insert reaches the engine; may throw instead. */
  readonly beforeInsert?: (nth: number) => Promise<void>
  /** The same before the sync. */
  readonly beforeSync?: () => Promise<void>
}

function scene(options: SceneOptions = {}) {
  const {
    areCoresShort = () => false,
    bufferBytes = 2 ** 24,
    beforeInsert = async () => {},
    beforeSync = async () => {},
  } = options
  const clock = new ManualClock(1_767_600_000_000)
  const [gate, locks] = [new TelemetryGate(), new MemoryPlacementLocks()]
  const inserts: Insert[] = []
  const engine: TelemetryEngine = {
    ...delegate(stores.engine),
    async insert(table, columns, buffers) {
      const rows = placedRows(table as TableName, Buffer.concat(buffers))
      inserts.push({
        table,
        rows: rows.length,
        placements: new Set(rows.map((row) => Number(row.Placement))),
      })
      await beforeInsert(inserts.length)
      await stores.engine.insert(table, columns, buffers)
    },
  }
  const sync = async () => {
    await beforeSync()
    await stores.files.sync()
  }
  const stands = { engine, sync, gate, locks, clock, logger: silent }
  const writer = new IngestWriter({ ...stands, areCoresShort, commitDelayMs, bufferBytes })
  return { clock, gate, inserts, locks, writer }
}

const commit = (writer: IngestWriter, place: TenantPlace, rows: readonly CellRows[]) =>
  writer.commit(place, encodeRows(place, rows))

/** Advances the clock until the promises have settled; besides the clock they wait for real work. */
async function runUntil<T>(
  clock: ManualClock,
  promises: readonly Promise<T>[],
): Promise<PromiseSettledResult<T>[]> {
  const beganMs = clock.nowMs()
  let isSettled = false
  const settled = Promise.allSettled(promises).finally(() => {
    isSettled = true
  })
  while (!isSettled) {
    await turn()
    if (clock.waiting > 0) {
      await clock.advance(commitDelayMs)
      assert.ok(clock.nowMs() - beganMs < 1000 * commitDelayMs, 'a batch waits and waits')
    }
  }
  return settled
}

async function commitNow(
  scene: { clock: ManualClock; writer: IngestWriter },
  place: TenantPlace,
  batch: readonly CellRows[],
) {
  const [result] = await runUntil(scene.clock, [commit(scene.writer, place, batch)])
  if (result?.status === 'rejected') throw result.reason
}

/** A promise that the test settles. */
function door() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, passed }
}

describe('acknowledging', () => {
  test('what is acknowledged is readable, all of it, in every table of the batch', async () => {
    const here = scene()
    const place = newPlace()
    const batch = [
      ...logs(3),
      batchOf('otel_traces', [startNs, startNs + 1n]),
      batchOf('otel_metrics_gauge', [startNs]),
      ...logs(2),
    ]
    await commitNow(here, place, batch)
    assert.deepEqual(
      [await count(place), await count(place, 'otel_traces'), await count(place, 'otel_metrics_gauge')],
      [5, 2, 1],
    )
    assert.deepEqual(here.writer.totals, { rows: 8, commits: 1, failedCommits: 0 })
    assert.equal(here.writer.bufferedBytes, 0)
  })

  test('nothing is acknowledged before the engine has committed it', async () => {
    const engineDoor = door()
    const { clock, writer, inserts } = scene({ beforeInsert: () => engineDoor.passed })
    const place = newPlace()
    let isAcknowledged = false
    const committed = commit(writer, place, logs(1)).then(() => {
      isAcknowledged = true
    })
    while (inserts.length === 0) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(isAcknowledged, false)
    assert.equal(await count(place), 0)
    assert.ok(writer.bufferedBytes > 0)
    engineDoor.open()
    await committed
    assert.equal(await count(place), 1)
  })

  test('nothing is acknowledged before the disk has it, and its placement is occupied until then', async () => {
    const disk = door()
    let isAsked = false
    const here = scene({
      beforeSync: () => {
        isAsked = true
        return disk.passed
      },
    })
    const place = newPlace(3)
    let isAcknowledged = false
    const committed = commitNow(here, place, logs(1)).then(() => {
      isAcknowledged = true
    })
    while (!isAsked) await turn()
    assert.equal(await count(place), 1)
    let isErasing = false
    const erasing = here.locks.exclusively([3], async () => {
      isErasing = true
    })
    for (let i = 0; i < 20; i++) await turn()
    assert.deepEqual([isAcknowledged, isErasing], [false, false])
    disk.open()
    await Promise.all([committed, erasing])
  })

  test('an empty batch is acknowledged at once and costs no commit', async () => {
    const { writer } = scene()
    await commit(writer, newPlace(), [])
    await commit(writer, newPlace(), logs(0))
    assert.equal(writer.totals.commits, 0)
  })

  test('rows that are written for one organisation are never committed for another', async () => {
    const { writer } = scene()
    const [own, neighbour] = [newPlace(), newPlace()]
    await assert.rejects(writer.commit(own, encodeRows(neighbour, logs(1))), /another organisation/)
    await assert.rejects(
      writer.commit(own, encodeRows({ ...own, placement: 2 }, logs(1))),
      /another organisation/,
    )
    assert.deepEqual([await count(own), await count(neighbour)], [0, 0])
  })

  test('texts are stored unchanged, whatever they contain', async () => {
    const here = scene()
    const place = newPlace()
    const texts = [
      'line\nbreak',
      '"],["',
      '\\',
      '\u2028\u2029',
      '👋',
      '\0',
      "'); drop table otel_logs",
      '\ufffd',
    ]
    const rows = texts.map((Body) =>
      batchOf('otel_logs', [startNs], { Body, LogAttributes: { [Body]: Body } }),
    )
    await commitNow(here, place, rows)
    const found = await stores.engine.select<{ Body: string; attributes: Record<string, string> }>(
      sql`select Body, LogAttributes as attributes from ${raw(exporterDatabase)}.otel_logs where TenantId = ${place.tenantId}`,
    )
    assert.deepEqual(new Set(found.map(({ Body }) => Body)), new Set(texts))
    for (const { Body, attributes } of found) assert.deepEqual(attributes, { [Body]: Body })
  })
})

describe('grouping', () => {
  test('rows that arrive for a placement within the delay are inserted together', async () => {
    const { clock, writer, inserts } = scene()
    const places = Array.from({ length: 10 }, () => newPlace(5))
    const committed = places.map((place) => commit(writer, place, logs(2)))
    await runUntil(clock, committed)
    assert.equal(writer.totals.commits, 1)
    assert.deepEqual(inserts, [{ table: 'otel_logs', rows: 20, placements: new Set([5]) }])
    for (const place of places) assert.equal(await count(place), 2)
  })

  test('nothing waits longer than the delay, and not shorter either', async () => {
    const { clock, writer } = scene()
    const committed = commit(writer, newPlace(), logs(1))
    while (clock.waiting === 0) await turn()
    await clock.advance(commitDelayMs - 1)
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(writer.totals.commits, 0)
    await clock.advance(1)
    await committed
    assert.equal(writer.totals.commits, 1)
  })

  test('a commit has at most eight placements, and all get their turn', async () => {
    const { clock, writer, inserts } = scene()
    const places = Array.from({ length: 20 }, (_, i) => newPlace(i))
    await runUntil(
      clock,
      places.map((place) => commit(writer, place, logs(1))),
    )
    assert.deepEqual(
      inserts.map(({ placements }) => placements.size),
      [8, 8, 4],
    )
    assert.equal(writer.totals.commits, 3)
    for (const place of places) assert.equal(await count(place), 1)
  })

  test('two commits of different placements run at once, and no third', async () => {
    const engineDoor = door()
    const { clock, inserts, writer } = scene({ beforeInsert: () => engineDoor.passed })
    const places = Array.from({ length: 50 }, (_, i) => newPlace(i))
    const committed = places.map((place) => commit(writer, place, logs(1)))
    for (let i = 0; i < 20; i++) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    assert.equal(inserts.length, 2)
    const [first, second] = inserts.map(({ placements }) => placements)
    assert.ok(first !== undefined && second !== undefined && first.isDisjointFrom(second))
    engineDoor.open()
    await runUntil(clock, committed)
    assert.equal(
      inserts.reduce((sum, { placements }) => sum + placements.size, 0),
      50,
    )
    for (const place of places) assert.equal(await count(place), 1)
  })

  test('rows that arrive for a placement during its commit wait for its end', async () => {
    const engineDoor = door()
    const { clock, inserts, writer } = scene({ beforeInsert: () => engineDoor.passed })
    const place = newPlace()
    const committed = [commit(writer, place, logs(1))]
    while (inserts.length === 0) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    committed.push(commit(writer, place, logs(2)))
    for (let i = 0; i < 20; i++) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    assert.equal(inserts.length, 1)
    engineDoor.open()
    await runUntil(clock, committed)
    assert.deepEqual(
      inserts.map(({ rows }) => rows),
      [1, 2],
    )
    assert.equal(await count(place), 3)
  })

  test('many rows don’t wait for the delay', async () => {
    const { writer, clock } = scene({ bufferBytes: 2 ** 26 })
    const place = newPlace()
    const large = logs(300, 'x'.repeat(100_000))
    await commit(writer, place, large)
    assert.equal(clock.nowMs(), 1_767_600_000_000)
    assert.equal(await count(place), 300)
  })

  test('many rows of one table are inserted in two parts, and acknowledged when both are in', async () => {
    const doors = [door(), door()]
    const begun = door()
    const { clock, inserts, writer } = scene({
      bufferBytes: 2 ** 26,
      beforeInsert: async (nth) => {
        if (nth === 2) begun.open()
        await doors[nth - 1]?.passed
      },
    })
    const place = newPlace()
    const large = 'x'.repeat(1000)
    const commits = Array.from({ length: 5 }, () => commit(writer, place, logs(4000, large)))
    await clock.advance(commitDelayMs)
    await begun.passed
    assert.deepEqual(
      inserts.map(({ rows }) => rows),
      [12_000, 8000],
    )
    doors[1]?.open()
    while ((await count(place)) < 8000) await turn()
    assert.equal(writer.totals.rows, 0)
    doors[0]?.open()
    await Promise.all(commits)
    assert.equal(await count(place), 20_000)
    assert.equal(writer.totals.rows, 20_000)
  })

  test('one sender after the other is served, also without a pause between them', async () => {
    const { clock, writer } = scene()
    const place = newPlace()
    const oneByOne = async () => {
      for (let i = 0; i < 20; i++) await commit(writer, place, logs(1))
    }
    await runUntil(clock, [oneByOne()])
    assert.equal(await count(place), 20)
  })

  test('after a wall clock that goes back nothing waits longer than the delay', async () => {
    // Sleeping uses the monotonic clock of the machine; only the time of day goes back.
    const steady = new ManualClock(1_767_600_000_000)
    let offsetMs = 0
    const clock = {
      nowMs: () => steady.nowMs() + offsetMs,
      nowNs: () => steady.nowNs() + BigInt(offsetMs) * 1_000_000n,
      steady: () => steady.steady(),
      elapsedMs: () => steady.elapsedMs(),
      sleep: (ms: number, signal?: AbortSignal) => steady.sleep(ms, signal),
    }
    const writer = new IngestWriter({
      engine: stores.engine,
      sync: () => stores.files.sync(),
      gate: new TelemetryGate(),
      locks: new MemoryPlacementLocks(),
      clock,
      logger: silent,
      commitDelayMs,
      bufferBytes: 2 ** 20,
    })
    const committed = commit(writer, newPlace(), logs(1))
    while (steady.waiting === 0) await turn()
    offsetMs = -3_600_000
    await runUntil(steady, [committed])
    assert.ok(steady.nowMs() - 1_767_600_000_000 <= 2 * commitDelayMs, `${steady.nowMs()}`)
  })
})

describe('the buffer', () => {
  test('above the limit new batches are refused to be retried, and accepted ones are not lost', async () => {
    const here = scene({ bufferBytes: 20_000 })
    const { clock, writer } = here
    const [accepted, refused] = [newPlace(), newPlace()]
    const committed = commit(writer, accepted, logs(10, 'x'.repeat(1000)))
    await assert.rejects(commit(writer, refused, logs(10, 'x'.repeat(1000))), {
      code: 'overloaded',
      status: 503,
      retryAfterSeconds: 1,
    })
    await runUntil(clock, [committed])
    assert.deepEqual([await count(accepted), await count(refused)], [10, 0])
    assert.equal(writer.bufferedBytes, 0)
    await commitNow(here, refused, logs(10, 'x'.repeat(1000)))
    assert.equal(await count(refused), 10)
  })

  test('the newest rows of an organisation that fills the buffer give way to another organisation', async () => {
    const here = scene({ bufferBytes: 100_000 })
    const { clock, writer } = here
    const [flood, calm] = [newPlace(1), newPlace(2)]
    const sent = Array.from({ length: 9 }, () => commit(writer, flood, logs(10, 'x'.repeat(1000))))
    await assert.rejects(commit(writer, flood, logs(10, 'x'.repeat(1000))), { code: 'overloaded' })
    const calmly = commit(writer, calm, logs(10, 'x'.repeat(1000)))
    await assert.rejects(sent.pop() ?? assert.fail(), { code: 'overloaded', retryAfterSeconds: 1 })
    await runUntil(clock, [...sent, calmly])
    await Promise.all([...sent, calmly])
    assert.deepEqual([await count(flood), await count(calm)], [80, 10])
    assert.equal(writer.bufferedBytes, 0)
  })

  test('rows that are being committed are not dropped', async () => {
    const engineDoor = door()
    const here = scene({ bufferBytes: 15_000, beforeInsert: () => engineDoor.passed })
    const { clock, inserts, writer } = here
    const [flood, calm] = [newPlace(1), newPlace(2)]
    const sent = commit(writer, flood, logs(10, 'x'.repeat(1000)))
    while (inserts.length === 0) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    await assert.rejects(commit(writer, calm, logs(8, 'x'.repeat(1000))), { code: 'overloaded' })
    engineDoor.open()
    await runUntil(clock, [sent])
    assert.deepEqual([await count(flood), await count(calm)], [10, 0])
  })

  test('a commit has a part of the rows of an organisation that sends most, and a neighbour’s rows beside it', async () => {
    const here = scene({ bufferBytes: 2 ** 27 })
    const { clock, inserts, writer } = here
    const [flood, calm] = [newPlace(), newPlace()]
    const large = () => logs(12, 'x'.repeat(2 ** 20))
    const sent = [large(), large(), large(), large()].map((rows) => commit(writer, flood, rows))
    const calmly = commit(writer, calm, logs(7))
    await runUntil(clock, [calmly])
    assert.equal(inserts[0]?.rows, 6 + 7)
    await runUntil(clock, sent)
    assert.deepEqual([await count(flood), await count(calm)], [48, 7])
  })

  test('a flood pauses after each commit while cores are short, and a neighbour does not', async () => {
    const here = scene({ bufferBytes: 2 ** 27, areCoresShort: () => true })
    const { clock, inserts, writer } = here
    const [flood, calm] = [newPlace(1), newPlace(2)]
    await commitNow(here, calm, logs(7))
    await clock.advance(1000)
    const sent = [1, 2, 3].map(() => commit(writer, flood, logs(7, 'x'.repeat(2 ** 20))))
    await runUntil(clock, sent.slice(0, 1))
    const endedMs = clock.nowMs()
    await runUntil(clock, [commit(writer, calm, logs(7))])
    await runUntil(clock, sent)
    assert.deepEqual(
      inserts.flatMap(({ placements }) => [...placements]),
      [2, 1, 2, 1, 1],
    )
    // Each has 7 MiB, and the limit was 80 % of the 21 MiB that arrived in a second.
    assert.ok(clock.nowMs() - endedMs >= 2 * 400)
    assert.deepEqual([await count(flood), await count(calm)], [21, 14])
  })

  test('rows that an erasure of their placement keeps waiting have no pause after it, however many', async () => {
    const here = scene({ bufferBytes: 2 ** 27, areCoresShort: () => true })
    const { clock, locks, writer } = here
    const [own, calm] = [newPlace(1), newPlace(2)]
    await commitNow(here, calm, logs(7))
    await clock.advance(1000)
    const erasing = door()
    const erased = locks.exclusively([own.placement], () => erasing.passed)
    await turn()
    const sent = [1, 2, 3].map(() => commit(writer, own, logs(7, 'x'.repeat(2 ** 20))))
    await turn()
    erasing.open()
    await erased
    const beganMs = clock.nowMs()
    await runUntil(clock, sent)
    assert.ok(clock.nowMs() - beganMs < 400, `${clock.nowMs() - beganMs} ms`)
    assert.equal(await count(own), 21)
  })

  test('the rows of a large request are committed in slices, beside a neighbour’s rows', async () => {
    const here = scene({ bufferBytes: 2 ** 27 })
    const { clock, inserts, writer } = here
    const [large, calm] = [newPlace(), newPlace()]
    await commitNow(here, calm, logs(7))
    const sent = commit(writer, large, [...logs(20, 'x'.repeat(2 ** 20)), batchOf('otel_traces', [startNs])])
    await runUntil(clock, [commit(writer, calm, logs(7))])
    assert.equal(writer.bufferedBytes > 20 * 2 ** 20, true, 'the memory of a request is one')
    await runUntil(clock, [sent])
    await sent
    assert.deepEqual(
      inserts.map(({ table, rows }) => [table, rows]),
      [
        ['otel_logs', 7],
        ['otel_logs', 6 + 7],
        ['otel_logs', 6],
        ['otel_logs', 6],
        ['otel_logs', 2],
        ['otel_traces', 1],
      ],
    )
    assert.deepEqual([await count(large), await count(large, 'otel_traces'), await count(calm)], [20, 1, 14])
    assert.deepEqual([writer.totals.rows, writer.bufferedBytes], [35, 0])
  })

  test('a large request of an organisation that is alone is one commit', async () => {
    const here = scene({ bufferBytes: 2 ** 27 })
    const place = newPlace()
    await commitNow(here, place, logs(20, 'x'.repeat(2 ** 20)))
    assert.equal(here.writer.totals.commits, 1)
    assert.equal(await count(place), 20)
  })

  test('a large request of which a slice fails is refused to be retried, and the rest is not committed', async () => {
    const here = scene({
      bufferBytes: 2 ** 27,
      beforeInsert: async (nth) => {
        if (nth === 3) throw new Error('the second slice fails')
      },
    })
    const { clock, inserts, writer } = here
    const [large, calm] = [newPlace(1), newPlace(2)]
    await commitNow(here, calm, logs(7))
    const sent = commit(writer, large, logs(20, 'x'.repeat(2 ** 20)))
    const [result] = await runUntil(clock, [sent])
    assert.equal(result?.status === 'rejected' && result.reason.code, 'overloaded')
    await commitNow(here, large, logs(1))
    assert.deepEqual(
      inserts.map(({ rows }) => rows),
      [7, 6, 6, 1],
    )
    assert.deepEqual([await count(large), writer.bufferedBytes], [6 + 1, 0])
  })

  test('a large request of which a slice is committed does not give way to another organisation', async () => {
    const engineDoor = door()
    const { clock, inserts, writer } = scene({
      bufferBytes: 21 * 2 ** 20,
      beforeInsert: async (nth) => (nth === 2 ? engineDoor.passed : undefined),
    })
    const [large, calm] = [newPlace(1), newPlace(2)]
    await runUntil(clock, [commit(writer, calm, logs(7))])
    const sent = commit(writer, large, logs(20, 'x'.repeat(2 ** 20)))
    while (inserts.length < 2) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    await assert.rejects(commit(writer, calm, logs(3, 'x'.repeat(2 ** 20))), { code: 'overloaded' })
    engineDoor.open()
    await runUntil(clock, [sent])
    await sent
    assert.equal(await count(large), 20)
  })

  test('a placement with few rows does not wait for the commit of one with many', async () => {
    const floodDoor = door()
    const { clock, inserts, writer } = scene({
      beforeInsert: async () => {
        if (inserts.at(-1)?.placements.has(1)) await floodDoor.passed
      },
    })
    const [flood, calm, other] = [newPlace(1), newPlace(2), newPlace(3)]
    const sent = commit(writer, flood, logs(4, 'x'.repeat(2 ** 20)))
    await runUntil(clock, [commit(writer, calm, logs(7)), commit(writer, other, logs(9))])
    assert.deepEqual(
      inserts.map(({ placements }) => [...placements]),
      [[1], [2, 3]],
    )
    floodDoor.open()
    await runUntil(clock, [sent])
    assert.deepEqual([await count(flood), await count(calm), await count(other)], [4, 7, 9])
  })

  test('requests with ever other weeks are no long commit, and a neighbour waits for none of them', async () => {
    const engineDoor = door()
    const here = scene({ beforeInsert: async (nth) => (nth === 1 ? engineDoor.passed : undefined) })
    const [one, other, neighbour] = [newPlace(41), newPlace(42), newPlace(43)]
    const weeks = (from: number) =>
      Array.from({ length: 50 }, (_, week) => startNs - BigInt(from + week) * 604_800_000_000_000n)
    const many = [one, other].flatMap((place) =>
      [0, 50, 100].map((from) => commit(here.writer, place, [batchOf('otel_logs', weeks(from))])),
    )
    while (here.inserts.length === 0) {
      await turn()
      if (here.clock.waiting > 0) await here.clock.advance(commitDelayMs)
    }
    await commitNow(here, neighbour, logs(1))
    const sizes = () => here.inserts.map(({ rows, placements }) => [...placements, rows])
    assert.deepEqual(sizes(), [
      [41, 100],
      [43, 1],
    ])
    engineDoor.open()
    await runUntil(here.clock, many)
    assert.deepEqual(sizes().slice(2), [
      [42, 100],
      [41, 42, 100],
    ])
    assert.deepEqual([await count(one), await count(other), await count(neighbour)], [150, 150, 1])
  })

  test('the rest of a placement waits behind all that came meanwhile', async () => {
    const engineDoors = [door(), door(), door(), door()]
    const { clock, inserts, writer } = scene({
      bufferBytes: 2 ** 27,
      beforeInsert: async (nth) => engineDoors[nth - 1]?.passed,
    })
    const step = async () => {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    const [one, two, late] = [newPlace(1), newPlace(2), newPlace(3)]
    const large = (place: TenantPlace) =>
      [1, 2].map(() => commit(writer, place, logs(20, 'x'.repeat(2 ** 20))))
    const sent = [...large(one), ...large(two)]
    for (let i = 0; i < 20; i++) await step()
    const lately = commit(writer, late, logs(5))
    await clock.advance(commitDelayMs)
    for (let i = 0; i < 20; i++) await step()
    assert.equal(inserts.length, 2, 'a third commit was begun')
    engineDoors[0]?.open()
    while (inserts.length < 3) await step()
    assert.deepEqual([...(inserts[2]?.placements ?? [])], [3])
    for (const each of engineDoors) each.open()
    await runUntil(clock, [...sent, lately])
    assert.deepEqual([await count(one), await count(two), await count(late)], [40, 40, 5])
  })

  test('a batch larger than the whole buffer is accepted when the buffer is empty, otherwise it never could be', async () => {
    const here = scene({ bufferBytes: 1000 })
    const place = newPlace()
    const committed = commit(here.writer, place, logs(5, 'x'.repeat(1000)))
    assert.throws(() => here.writer.requireRoom(place), { code: 'overloaded', retryAfterSeconds: 1 })
    here.writer.requireRoom(newPlace())
    await runUntil(here.clock, [committed])
    here.writer.requireRoom(place)
    assert.equal(await count(place), 5)
  })
})

describe('fences', () => {
  const during = { startNs, endNs: startNs + 100n }

  test('rows inside a fence are refused to be retried; outside and beside it work continues', async () => {
    const here = scene()
    const [own, neighbour] = [newPlace(), newPlace()]
    here.gate.fence(own.tenantId, { id: 'del_1', signals: ['logs'], range: during })
    await assert.rejects(commit(here.writer, own, logs(1)), {
      code: 'erasing',
      status: 503,
      retryAfterSeconds: 1,
    })
    await commitNow(here, own, [batchOf('otel_logs', [startNs - 1n, startNs - 2n])])
    await commitNow(here, own, [batchOf('otel_traces', [startNs])])
    await commitNow(here, neighbour, logs(1))
    assert.deepEqual([await count(own), await count(own, 'otel_traces'), await count(neighbour)], [2, 1, 1])
    here.gate.unfence(own.tenantId, 'del_1')
    await commitNow(here, own, logs(1))
    assert.equal(await count(own), 3)
  })

  test('a batch accepted before the fence is what draining waits for', async () => {
    const { clock, gate, writer } = scene()
    const place = newPlace()
    const committed = commit(writer, place, logs(2))
    gate.fence(place.tenantId, { id: 'del_1', signals: ['logs'], range: during })
    let isDrained = false
    const drained = gate.drain(place.tenantId, { signals: ['logs'], range: during }).then(() => {
      isDrained = true
    })
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(isDrained, false)
    await runUntil(clock, [committed, drained])
    assert.equal(await count(place), 2)
  })

  test('a commit waits during exclusive work on its placement', async () => {
    const { clock, locks, writer } = scene()
    const place = newPlace(9)
    const erasure = door()
    const erasing = locks.exclusively([9], () => erasure.passed)
    const committed = commit(writer, place, logs(1))
    while (clock.waiting === 0) await turn()
    await clock.advance(commitDelayMs)
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(await count(place), 0)
    erasure.open()
    await erasing
    await runUntil(clock, [committed])
    assert.equal(await count(place), 1)
  })

  test('exclusive work on a placement delays no other placement', async () => {
    const here = scene()
    const [closed, free] = [newPlace(10), newPlace(11)]
    const erasure = door()
    const erasing = here.locks.exclusively([10], () => erasure.passed)
    const waiting = commit(here.writer, closed, logs(1))
    await commitNow(here, free, logs(2))
    assert.deepEqual([await count(closed), await count(free)], [0, 2])
    erasure.open()
    await erasing
    await runUntil(here.clock, [waiting])
    assert.equal(await count(closed), 1)
  })

  test('rows that wait for a placement are committed between two steps of an erasure, also beside long commits', async () => {
    const slow = door()
    const here = scene({ beforeInsert: async (nth) => (nth <= 2 ? slow.passed : undefined) })
    const places = [newPlace(14), newPlace(15), newPlace(16)]
    const lasting: Promise<void>[] = []
    for (const place of places.slice(0, 2)) {
      lasting.push(commit(here.writer, place, logs(1)))
      while (here.clock.waiting === 0) await turn()
      await here.clock.advance(commitDelayMs)
      while (here.inserts.length < lasting.length) await turn()
    }
    const [first, own] = [door(), places[2] ?? assert.fail()]
    const erasing = [here.locks.exclusively([16], () => first.passed)]
    const waiting = commit(here.writer, own, logs(1))
    while (here.clock.waiting === 0) await turn()
    await here.clock.advance(commitDelayMs)
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(await count(own), 0)
    let rowsAtNextStep = -1
    const next = here.locks.exclusively([16], async () => {
      rowsAtNextStep = await count(own)
    })
    first.open()
    await Promise.all([...erasing, next, waiting])
    assert.equal(rowsAtNextStep, 1)
    slow.open()
    await runUntil(here.clock, lasting)
  })

  test('a batch that was accepted before its placement was closed is refused, and its neighbours are committed', async () => {
    const here = scene()
    const [closed, open] = [newPlace(12), newPlace(13)]
    const commits = [commit(here.writer, closed, logs(1)), commit(here.writer, open, logs(1))]
    here.gate.closePlacement(12)
    const [refused, taken] = await runUntil(here.clock, commits)
    assert.equal(refused?.status === 'rejected' && refused.reason.code, 'erasing')
    assert.equal(taken?.status, 'fulfilled')
    assert.deepEqual([await count(closed), await count(open)], [0, 1])
  })
})

describe('failing and closing', () => {
  test('two years of history in one batch are accepted: many partitions are no mistake of the sender', async () => {
    const here = scene()
    const place = newPlace(14)
    const weekNs = 7n * 24n * 3_600_000_000_000n
    const times = Array.from({ length: 120 }, (_, week) => 1_600_000_000_000_000_000n + BigInt(week) * weekNs)
    await commitNow(here, place, [batchOf('otel_logs', times)])
    assert.equal(await count(place), 120)
  })

  test('an engine that fails refuses the whole group to be retried, and the next group is committed', async () => {
    const here = scene({
      beforeInsert: async (nth) => {
        if (nth === 1) throw new Error('no space left on /var/lib/lethe')
      },
    })
    const places = [newPlace(1), newPlace(1), newPlace(2)]
    const results = await runUntil(
      here.clock,
      places.map((place) => commit(here.writer, place, logs(1))),
    )
    for (const result of results) {
      assert.equal(result.status, 'rejected')
      assert.deepEqual(
        [result.reason.code, result.reason.status, result.reason.retryAfterSeconds],
        ['overloaded', 503, 1],
      )
      assert.doesNotMatch(result.reason.message, /no space left|\/var/)
    }
    assert.deepEqual(here.writer.totals, { rows: 0, commits: 0, failedCommits: 1 })
    assert.equal(here.writer.bufferedBytes, 0)
    for (const place of places) await commitNow(here, place, logs(1))
    for (const place of places) assert.equal(await count(place), 1)
  })

  test('where the disk fails the batch is not acknowledged, although the engine has it', async () => {
    let isFailing = true
    const here = scene({
      beforeSync: async () => {
        if (isFailing) throw new Error('the file system could not be synced')
      },
    })
    const place = newPlace()
    await assert.rejects(commitNow(here, place, logs(1)), { code: 'overloaded' })
    assert.equal(here.writer.totals.failedCommits, 1)
    assert.equal(await count(place), 1)
    isFailing = false
    await commitNow(here, place, logs(1))
    assert.equal(await count(place), 2)
  })

  test('where a later table fails the batch is not acknowledged, although the earlier one is in', async () => {
    const here = scene({
      beforeInsert: async (nth) => {
        if (nth === 2) throw new Error('the second table fails')
      },
    })
    const place = newPlace()
    const batch = [...logs(1), batchOf('otel_traces', [startNs])]
    await assert.rejects(commitNow(here, place, batch), { code: 'overloaded' })
    assert.equal((await count(place)) + (await count(place, 'otel_traces')), 1)
  })

  test('where one table fails the placement is occupied until the others have ended too', async () => {
    const engineDoor = door()
    const here = scene({
      beforeInsert: async (nth) => {
        if (nth === 1) throw new Error('the first table fails')
        await engineDoor.passed
      },
    })
    const place = newPlace(15)
    const batch = [...logs(1), batchOf('otel_traces', [startNs])]
    const refused = assert.rejects(commitNow(here, place, batch), { code: 'overloaded' })
    while (here.inserts.length < 2) await turn()
    let isErasing = false
    const erasing = here.locks.exclusively([15], async () => {
      isErasing = true
    })
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(isErasing, false)
    engineDoor.open()
    await Promise.all([refused, erasing])
    assert.equal((await count(place)) + (await count(place, 'otel_traces')), 1)
  })

  test('closing commits what waits without waiting for the delay, and accepts nothing more', async () => {
    const { clock, writer } = scene()
    const places = Array.from({ length: 12 }, (_, i) => newPlace(i))
    const committed = places.map((place) => commit(writer, place, logs(1)))
    while (clock.waiting === 0) await turn()
    await writer.close()
    await Promise.all(committed)
    await assert.rejects(commit(writer, newPlace(), logs(1)), { code: 'not_ready', retryAfterSeconds: 1 })
    for (const place of places) assert.equal(await count(place), 1)
    assert.equal(clock.nowMs(), 1_767_600_000_000)
    await writer.close()
  })

  test('closing waits for the running commit', async () => {
    const engineDoor = door()
    const { clock, writer, inserts } = scene({ beforeInsert: () => engineDoor.passed })
    const place = newPlace()
    const committed = commit(writer, place, logs(1))
    while (inserts.length === 0) {
      await turn()
      if (clock.waiting > 0) await clock.advance(commitDelayMs)
    }
    let isClosed = false
    const closed = writer.close().then(() => {
      isClosed = true
    })
    for (let i = 0; i < 5; i++) await turn()
    assert.equal(isClosed, false)
    engineDoor.open()
    await Promise.all([closed, committed])
    assert.equal(await count(place), 1)
  })
})
