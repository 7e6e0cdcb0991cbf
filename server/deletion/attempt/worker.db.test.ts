// Erasure on the real engine and the real control plane. Every case has two organisations with identical
// rows, proves that the rows were there before, and counts the neighbour's afterwards, in a placement of its
// own and in a shared one.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { findBreak } from '../../audit/chain.ts'
import { readChain } from '../../audit/log.ts'
import { ErasedBytesKept } from '../../control/erased-flush.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { systemClock } from '../../core/clock.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { type TelemetryEngine, type TenantPlace, usualLimits } from '../../telemetry/engine.ts'
import { tables } from '../../telemetry/schema/tables.ts'
import { Bound, raw, render, sql } from '../../telemetry/sql.ts'
import { LeaseLost } from '../../worker/lease.ts'
import {
  all,
  assertRows,
  between,
  hourNs,
  monday,
  type Scene,
  type SceneOptions,
  sceneOf,
  times,
  weekNs,
} from '../deletion-fixture.ts'
import { FailingEngine } from '../governed-fixture.ts'
import { attemptsMax, openOfPersonMax } from '../requests/states.ts'
import { activeParts, isUnchanged } from './pieces.ts'
import { waitUntilRemoved } from './removed-parts.ts'
import { copyName, sideTables } from './side-tables.ts'
import type { LinkRule } from './survivor-copy.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const scene = (options?: SceneOptions) => sceneOf(stores, options)

async function assertNothingLeftOnDisk(): Promise<void> {
  const side = await sideTables(stores.engine)
  assert.deepEqual(side, [])
  const folders = await stores.files.tableFolders(tables.map(({ name }) => name))
  for (const [name, folder] of folders) {
    const parts = readdirSync(folder).filter((entry) => /^\d+-\d{8}_/.test(entry))
    const listed = await stores.engine.select<{ part: string }>(
      sql`select name as part from system.parts where table = ${name}`,
    )
    const known = new Set(listed.map(({ part }) => part))
    for (const part of parts) {
      const isKnown = known.has(part) || !existsSync(`${folder}/${part}`)
      assert.ok(isKnown, `${name}: ${part} is on disk but unknown to the engine`)
    }
    assert.deepEqual(readdirSync(`${folder}/detached`), [], `${name}: nothing is detached`)
    assert.deepEqual(
      readdirSync(folder).filter((entry) => entry.startsWith('mutation_')),
      [],
      `${name}: no mutation file`,
    )
  }
}

const placements = [
  { name: 'a placement of its own', isShared: false },
  { name: 'a placement shared with the neighbour', isShared: true },
]

for (const where of placements) {
  describe(`in ${where.name}`, () => {
    test('a full erasure removes every row of every table and none of the neighbour', async () => {
      const erasing = await scene({ ...where, tables: tables.map(({ name }) => name) })
      await assertRows(erasing, times.length)
      const { request } = await erasing.request(all)
      assert.equal(request.status, 'running')
      await erasing.round()
      const done = await erasing.status(request.request_id)
      assert.equal(done.status, 'completed')
      assert.ok(done.hidden_at && done.removed_at && done.verified_at && done.finished_at)
      assert.equal(done.detail.rows_erased, times.length * tables.length)
      assert.equal(done.detail.partitions_rewritten, 0, 'none of its rows is left in any of them')
      await assertRows(erasing, 0)
      await assertNothingLeftOnDisk()
    })

    test('a range with edges inside weeks removes exactly its rows, to the nanosecond', async () => {
      const erasing = await scene(where)
      await assertRows(erasing, times.length)
      const startNs = monday + 10n * hourNs
      const endNs = monday + weekNs + 5n * hourNs + 1n
      const { request } = await erasing.request(between(startNs, endNs))
      await erasing.round()
      assert.equal((await erasing.status(request.request_id)).status, 'completed')
      const selected = times.filter((time) => time >= startNs && time < endNs).length
      await assertRows(erasing, times.length - selected)
      const [edges] = await stores.engine.select<{ before: string; at_end: string }>(
        sql`select countIf(toUnixTimestamp64Nano(Timestamp) < ${raw(String(startNs))}) as before,
                   countIf(toUnixTimestamp64Nano(Timestamp) >= ${raw(String(endNs))}) as at_end
            from otel_logs where TenantId = ${erasing.own.tenantId}`,
      )
      assert.deepEqual([Number(edges?.before), Number(edges?.at_end)], [10, times.length - selected - 10])
      await assertNothingLeftOnDisk()
    })

    test('a range of whole weeks up to an instant removes the first week and keeps the second', async () => {
      const erasing = await scene(where)
      const { request } = await erasing.request(between(null, monday + weekNs))
      await erasing.round()
      const done = await erasing.status(request.request_id)
      assert.equal(done.detail.partitions_dropped, erasing.tables.length)
      await assertRows(erasing, times.length / 2)
    })

    test('a deletion of logs alone leaves metrics and traces', async () => {
      const erasing = await scene(where)
      await erasing.request({ ...all, signals: ['logs'] })
      await erasing.round()
      assert.equal(await erasing.count(erasing.own, 'otel_logs'), 0)
      assert.equal(await erasing.count(erasing.own, 'otel_traces'), times.length)
      assert.equal(await erasing.count(erasing.own, 'otel_metrics_gauge'), times.length)
      assert.equal(await erasing.count(erasing.neighbour, 'otel_logs'), times.length)
    })

    for (const point of [
      'fenced',
      'planned',
      ...(where.isShared ? ['survivors copied ahead'] : []),
      'before partition step',
      where.isShared ? 'survivors copied' : 'partition dropped',
      ...(where.isShared ? ['swap promised', 'partition replaced'] : []),
      'step recorded',
      'removed from disk',
      'before read-back',
    ]) {
      test(`an attempt that ends at "${point}" stays hidden and reports it, and the next one completes with the right counts`, async () => {
        const ahead = point === 'survivors copied ahead' ? { fewRows: 0, linkRule: linkAll } : {}
        const erasing = await scene({ ...where, ...ahead })
        const { request } = await erasing.request(all)
        erasing.faults.failOnceAt(point)
        await erasing.round()
        const ended = await erasing.status(request.request_id)
        assert.equal(ended.status, 'incomplete')
        assert.ok(ended.detail.blocked_reason)
        assert.equal(ended.verified_at, null)
        assert.equal(await erasing.visible(erasing.own, 'otel_logs'), 0)
        await resume(erasing, request.request_id)
        const done = await erasing.status(request.request_id)
        assert.equal(done.status, 'completed')
        assert.equal(done.detail.rows_erased, times.length * erasing.tables.length)
        await assertRows(erasing, 0)
        await assertNothingLeftOnDisk()
      })
    }
  })
}

/** Makes the retry due, then runs the next round. */
async function resume(scene: Scene, requestId: string): Promise<void> {
  await stores.control
    .updateTable('deletion_requests')
    .set({ retry_at_ms: null })
    .where('request_id', '=', requestId)
    .execute()
  await scene.round()
}

/** The engine as on a machine so busy that the time of the first read of each text is over at once. */
function starved(): TelemetryEngine {
  const { engine } = stores
  const read = new Set<string>()
  return {
    select(statement, limits, share) {
      const text = render(statement)
      const isFirst = !read.has(text)
      read.add(text)
      return engine.select(statement, isFirst ? { ...usualLimits, maxSeconds: 0.000_001 } : limits, share)
    },
    bytes: (...some) => engine.bytes(...some),
    command: (statement) => engine.command(statement),
    insert: (...some) => engine.insert(...some),
    close: async () => {},
  }
}

test('a swap that a crash interrupted is repeated before anything else, without a duplicated or lost row, also where reads are too slow at first', async () => {
  const erasing = await scene({ isShared: true })
  const { request } = await erasing.request(all)
  erasing.faults.failOnceAt('swap promised')
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete')
  // The state after a kill inside REPLACE PARTITION, as measured: the old part and the survivors side by
  // side.
  const [promised] = await sideTables(stores.engine)
  assert.ok(promised)
  const table = tables.find(({ name }) => promised.name.endsWith(name))?.name ?? assert.fail()
  await stores.engine.command(raw(`INSERT INTO ${table} SELECT * FROM ${promised.name}`))
  const survivors = times.length / 2
  assert.equal(await erasing.count(erasing.neighbour, table), times.length + survivors)

  await erasing.restarted(starved()).worker.restore()
  assert.equal(await erasing.count(erasing.neighbour, table), times.length)
  assert.equal(await erasing.count(erasing.own, table), survivors)
  await resume(erasing, request.request_id)
  await assertRows(erasing, 0)
  await assertNothingLeftOnDisk()
})

test('survivors of a small partition are copied under the lock alone', async () => {
  const erasing = await scene({ isShared: true })
  await erasing.request({ ...between(null, monday + weekNs / 2n), signals: ['logs'] })
  await erasing.round()
  assert.deepEqual(
    erasing.faults.points.filter((point) => point.startsWith('survivors')),
    ['survivors copied'],
  )
  assert.equal(await erasing.count(erasing.own, 'otel_logs'), (times.length * 3) / 4)
  assert.equal(await erasing.count(erasing.neighbour, 'otel_logs'), times.length)
})

/** Links each part without a selected row, as the service does with large ones. */
const linkAll: LinkRule = { fromMs: 0, perPartMs: 0 }

for (const [means, rule] of [
  ['copied', {}],
  ['copied, or linked where no row of a part is selected,', { linkRule: linkAll }],
  ['copied in slices of some rows', { sliceMsOf: () => 0.1 }],
] as const)
  describe(`survivors that are ${means} before the placement is locked`, () => {
    /** The first half of the first week of log records; the rest of that week is copied. */
    const half = { ...between(null, monday + weekNs / 2n), signals: ['logs' as const] }
    const kept = (times.length * 3) / 4

    /** An erasure of a shared partition, and what can be done to it meanwhile. */
    async function copying() {
      const engine = new FailingEngine(stores.engine)
      const erasing = await sceneOf({ ...stores, engine }, { isShared: true, fewRows: 0, ...rule })
      const { request } = await erasing.request(half)
      const { neighbour, own } = erasing
      const ahead = () => erasing.faults.points.filter((point) => point === 'survivors copied ahead').length
      /** The parts of the copy after the first pass, and those of them that are swapped in. */
      const parts = { ahead: [] as string[], swapped: [] as string[] }
      const inCopy = async () => {
        const name = copyName(own.placement, 'otel_logs')
        const found = await stores.engine.select<{ name: string }>(
          sql`SELECT name FROM system.parts WHERE table = ${name} AND active ORDER BY name`,
        )
        return found.map((part) => part.name)
      }
      let [isLinked, isSliced] = [false, false]
      const hooks: { firstAhead: () => Promise<void>; before: (text: string) => Promise<void> } = {
        firstAhead: async () => {},
        before: async () => {},
      }
      erasing.faults.runAt('survivors copied ahead', async () => {
        if (ahead() > 1) return
        parts.ahead = await inCopy()
        await hooks.firstAhead()
      })
      engine.before = async (text) => {
        if (text.includes('ATTACH PARTITION')) isLinked = true
        if (text.includes('_part_offset')) isSliced = true
        if (text.startsWith('RENAME TABLE erasure_copy_'))
          parts.swapped = (await inCopy()).filter((name) => parts.ahead.includes(name))
        await hooks.before(text)
      }
      let commits = 0
      return {
        erasing,
        hooks,
        parts,
        ahead,
        /** A commit of each organisation: rows that survive, and one that is selected. */
        async commit() {
          commits++
          const [early, late] = [monday + BigInt(commits), monday + weekNs - BigInt(commits)]
          await insertRows(stores.engine, neighbour, batchOf('otel_logs', [early, late]))
          await insertRows(stores.engine, own, batchOf('otel_logs', [early, late]))
        },
        /** Merges all parts of the week into one. */
        merge: () =>
          stores.engine.command(
            raw(`OPTIMIZE TABLE otel_logs PARTITION ID '${own.placement}-20260105' FINAL`),
          ),
        /** Asserts that every row that survives is stored once, also those that were committed later. */
        async assertExact() {
          const { detail, status } = await erasing.status(request.request_id)
          assert.deepEqual([status, detail.rows_erased], ['completed', times.length / 4 + commits])
          assert.deepEqual([isLinked, isSliced], ['linkRule' in rule, 'sliceMsOf' in rule])
          const found = await stores.engine.select(sql`
          SELECT TenantId AS of, toString(count()) AS rows, toString(uniqExact(Timestamp)) AS instants FROM otel_logs
          WHERE TenantId IN ${new Bound('Array(String)', [neighbour.tenantId, own.tenantId])} GROUP BY of ORDER BY of`)
          const [all, left] = [times.length + 2 * commits, kept + commits].map(String)
          assert.deepEqual(found, [
            { of: neighbour.tenantId, rows: all, instants: all },
            { of: own.tenantId, rows: left, instants: left },
          ])
          await assertNothingLeftOnDisk()
        },
      }
    }

    test('leave it to commits: those that come while they are copied are stored and survive once, and end the passes however many come', async () => {
      const { ahead, assertExact, commit, erasing, hooks } = await copying()
      const { writes } = erasing.locks
      hooks.before = async (text) => {
        if (!text.startsWith('INSERT INTO erasure_copy_') || writes.isTaken(erasing.own.placement)) return
        // Two at a time are more than what may be left to the lock.
        for (let i = 0; i < 2; i++) await writes.exclusively([erasing.own.placement], commit)
      }
      await erasing.round()
      assert.equal(ahead(), 4)
      await assertExact()
    })

    test('are completed under the lock by what was committed since', async () => {
      const { ahead, assertExact, commit, erasing, hooks, parts } = await copying()
      hooks.firstAhead = commit
      await erasing.round()
      assert.equal(ahead(), 1)
      assert.ok(parts.ahead.length > 0)
      assert.deepEqual(parts.swapped, parts.ahead)
      await assertExact()
    })

    test('are not copied again where a merge rewrites only what was copied', async () => {
      const { assertExact, commit, erasing, hooks, merge, parts } = await copying()
      hooks.firstAhead = async () => {
        await merge()
        await commit()
      }
      await erasing.round()
      assert.ok(parts.ahead.length > 0)
      assert.deepEqual(parts.swapped, parts.ahead)
      await assertExact()
    })

    test('are copied again where a merge mixes them with others while they are copied', async () => {
      const { assertExact, commit, erasing, hooks, merge } = await copying()
      let copies = 0
      hooks.before = async (text) => {
        if (!text.startsWith('INSERT INTO erasure_copy_') || ++copies !== ('sliceMsOf' in rule ? 2 : 1))
          return
        await commit()
        await merge()
      }
      await erasing.round()
      assert.ok(copies > 1)
      await assertExact()
    })

    for (const [moment, text] of [
      ['before the lock', null],
      ['under the lock, before the others are counted', /^\s*SELECT toString\(multiIf\(NOT /],
      ['under the lock, before the others are copied', /^INSERT INTO erasure_copy_.*NOT \(\(toInt64/s],
    ] as const) {
      test(`are copied again where a merge mixes them with others ${moment}`, async () => {
        const { ahead, assertExact, commit, erasing, hooks, merge, parts } = await copying()
        let merges = 0
        hooks.firstAhead = async () => {
          await commit()
          if (text === null && ++merges === 1) await merge()
        }
        hooks.before = async (statement) => {
          if (text?.test(statement) && ++merges === 1) await merge()
        }
        await erasing.round()
        assert.ok(merges > 0)
        assert.equal(ahead(), 1)
        assert.deepEqual(parts.swapped, [])
        await assertExact()
      })
    }

    test('are copied again as often as it takes to have no row too many, the last time as a whole', async () => {
      const { assertExact, commit, erasing, hooks, parts } = await copying()
      const copy = copyName(erasing.own.placement, 'otel_logs')
      hooks.firstAhead = commit
      let copies = 0
      hooks.before = async (text) => {
        if (!text.startsWith('INSERT INTO erasure_copy_')) return
        if (!erasing.locks.writes.isTaken(erasing.own.placement) || ++copies === 3) return
        const one = sql`TenantId = ${erasing.neighbour.tenantId} LIMIT 1`
        await stores.engine.command(sql`INSERT INTO ${raw(copy)} SELECT * FROM otel_logs WHERE ${one}`)
      }
      await erasing.round()
      assert.equal(copies, 3)
      assert.deepEqual(parts.swapped, [])
      await assertExact()
    })

    test('are not what they were when something has changed a part', async () => {
      const run = (text: string) => stores.engine.command(raw(text))
      await run(`CREATE TABLE changed (id UInt8, n UInt8) ENGINE = MergeTree PARTITION BY id ORDER BY id`)
      const parts = () => activeParts(stores.engine, 'changed', '1')
      await run('INSERT INTO changed VALUES (1, 1), (1, 2)')
      const [piece = assert.fail(), ...others] = await parts()
      assert.deepEqual([piece.first, piece.last, piece.rows, piece.mutation, others], [1, 1, 2, 0, []])
      await run('INSERT INTO changed VALUES (2, 1), (1, 3)')
      assert.ok(isUnchanged(piece, await parts()))
      await run('ALTER TABLE changed UPDATE n = n + 1 WHERE 1 SETTINGS mutations_sync = 2')
      assert.ok(!isUnchanged(piece, await parts()))
      await run('DROP TABLE changed SYNC')
    })
  })

test('a part without a selected row has the same files afterwards where it is large, and no link to a selected row is left', async () => {
  const erasing = await scene({ isShared: true, fewRows: 0, linkRule: linkAll, tables: ['otel_logs'] })
  const week = `${erasing.own.placement}-20260105`
  const contents = async () =>
    (await activeParts(stores.engine, 'otel_logs', week)).map((part) => part.contents)
  const inodes = async () => {
    const [found] = await stores.engine.select<{ paths: string[] }>(
      sql`SELECT groupArray(path) AS paths FROM system.parts WHERE table = 'otel_logs' AND active AND partition_id = ${week}`,
    )
    return (found?.paths ?? []).flatMap((path) =>
      readdirSync(path, { withFileTypes: true }).map((file) => statSync(join(path, file.name)).ino),
    )
  }
  const before = { contents: await contents(), inodes: new Set(await inodes()) }
  assert.equal(before.contents.length, 2, 'a part of each organisation')
  await erasing.request({ ...between(null, monday + weekNs / 2n), signals: ['logs'] })
  await erasing.round()
  const kept = (await contents()).filter((one) => before.contents.includes(one))
  assert.equal(kept.length, 1, 'the part of the neighbour')
  assert.ok(
    (await inodes()).some((inode) => before.inodes.has(inode)),
    'its files are the same',
  )
  assert.equal(await erasing.count(erasing.own, 'otel_logs'), (times.length * 3) / 4)
  assert.equal(await erasing.count(erasing.neighbour, 'otel_logs'), times.length)
  await assertNothingLeftOnDisk()
})

test('the selection is hidden from the organisation at once, and the rest stays readable', async () => {
  const erasing = await scene({ isShared: true })
  assert.equal(await erasing.visible(erasing.own, 'otel_traces'), times.length)
  await erasing.request(between(null, monday + weekNs))
  assert.equal(await erasing.visible(erasing.own, 'otel_traces'), times.length / 2)
  assert.equal(await erasing.count(erasing.own, 'otel_traces'), times.length)
  assert.equal(await erasing.visible(erasing.neighbour, 'otel_traces'), times.length)
})

test('a request whose read-back still finds rows stays incomplete and hidden, never completed', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  // A row of the organisation in a placement of another: only a count by tenant finds it.
  const stray: TenantPlace = { tenantId: erasing.own.tenantId, placement: 999 }
  await insertRows(stores.engine, stray, batchOf('otel_logs', [monday]))
  await erasing.round()
  const left = await erasing.status(request.request_id)
  assert.equal(left.status, 'incomplete')
  assert.deepEqual((left.detail.left_over as Record<string, number>).otel_logs, 1)
  assert.equal(left.verified_at, null)
  await stores.engine.command(raw("alter table otel_logs drop partition id '999-20260105'"))
  await resume(erasing, request.request_id)
  assert.equal((await erasing.status(request.request_id)).status, 'completed')
})

test('a request during which the process ended more than three times fails, and its selection stays hidden', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  for (let crash = 0; crash < 4; crash++) {
    await stores.control
      .updateTable('deletion_requests')
      .set({ attempts: crash + 1, status: 'running' })
      .where('request_id', '=', request.request_id)
      .execute()
    await erasing.worker.restore()
    // A restart without an attempt in between does not count as a crash of the erasure.
    await erasing.worker.restore()
  }
  await erasing.round()
  const failed = await erasing.status(request.request_id)
  assert.equal(failed.status, 'failed')
  assert.match(String(failed.detail.blocked_reason), /4 times/)
  assert.ok(failed.finished_at)
  assert.equal(await erasing.visible(erasing.own, 'otel_logs'), 0)
  assert.equal(await erasing.count(erasing.own, 'otel_logs'), times.length)

  const again = await erasing.request(all)
  assert.notEqual(again.request.request_id, request.request_id)
  await erasing.round()
  assert.equal((await erasing.status(again.request.request_id)).status, 'completed')
  assert.equal((await erasing.status(request.request_id)).status, 'completed')
  await insertRows(stores.engine, erasing.own, batchOf('otel_logs', [monday]))
  assert.equal(
    await erasing.visible(erasing.own, 'otel_logs'),
    1,
    'rows that arrive afterwards are new and visible',
  )
})

/** What an erasure waits for, and the reason that it names. */
const obstacles: readonly (readonly [Error, RegExp])[] = [
  [Object.assign(new Error('no room'), { code: 'ENOSPC' }), /^The disk is full/],
  [new ErasedBytesKept('A dump keeps erased rows'), /^A dump keeps erased rows$/],
  [new AppError('storage_unavailable'), /^The control-plane database did not answer$/],
  [new AppError('overloaded'), /^The control-plane database was busy/],
]

/** Attempts that fail while another process has the database locked, so that their end can't be stored. */
async function loseEnds(erasing: Scene, requestId: string, attempts: number): Promise<void> {
  const { own, faults, requests } = erasing
  await stores.plane.waitAtMost(stores.control, 1)
  for (let attempt = 0; attempt < attempts; attempt++) {
    const locked = Promise.withResolvers<void>()
    const unlock = Promise.withResolvers<void>()
    let locking: Promise<void> | undefined
    faults.runAt('planned', async () => {
      locking = stores.plane.whileLocked(async () => {
        locked.resolve()
        await unlock.promise
      })
      await locked.promise
      throw new Error('failed when the database was away')
    })
    await erasing.round()
    unlock.resolve()
    await locking
    const { status, attempts: counted, attemptsForgiven } = await requests.stored(own.tenantId, requestId)
    assert.deepEqual([status, counted - attemptsForgiven], ['running', 1], 'only the last one counts yet')
  }
  await stores.plane.waitAtMost(stores.control, usualWaitMs)
}

/** How long a statement of the service waits for another process. */
const usualWaitMs = 5000

test('an erasure waits for the disk and the control-plane database with that reason, never fails for it, and completes afterwards', async () => {
  const clock = new ManualClock(Number(monday / 1_000_000n) + 90 * 86_400_000)
  const erasing = await scene({ clock })
  const { request } = await erasing.request(all)
  let obstacle: Error | undefined
  erasing.faults.runAt('planned', () => {
    if (obstacle !== undefined) throw obstacle
  })
  for (const [error, reason] of Array.from({ length: 4 }, () => obstacles).flat()) {
    obstacle = error
    await erasing.round()
    const { status, detail, verified_at } = await erasing.status(request.request_id)
    assert.deepEqual([status, verified_at], ['incomplete', null])
    assert.match(String(detail.blocked_reason), reason)
    await clock.advance(300_000)
  }
  assert.equal(await erasing.visible(erasing.own, 'otel_logs'), 0)
  assert.equal(await erasing.count(erasing.own, 'otel_logs'), times.length)
  await loseEnds(erasing, request.request_id, attemptsMax + 1)
  obstacle = undefined
  erasing.faults.runAt('planned', () => {})
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'completed')
  assert.equal(await erasing.count(erasing.own, 'otel_logs'), 0)
  assert.equal(await erasing.count(erasing.neighbour, 'otel_logs'), times.length)
})

test('an identical active request is returned, and during a full erasure another selection is refused', async () => {
  const erasing = await scene()
  const first = await erasing.request(all)
  const second = await erasing.request(all)
  assert.deepEqual([first.isNew, second.isNew], [true, false])
  assert.equal(second.request.request_id, first.request.request_id)
  await assert.rejects(erasing.request(between(null, monday)), { code: 'deletion_conflict' })
  await erasing.round()
  assert.ok((await erasing.request(between(null, monday))).isNew)
})

test('every move is in the ledger, the chain is valid, and neither contains what was erased', async () => {
  const erasing = await scene({ isShared: true })
  const note = 'written by a person'
  const { request } = await erasing.request({ ...between(null, monday + weekNs), note })
  await erasing.round()
  const chain = await readChain(stores.control, 'ledger_entries', erasing.own.tenantId)
  assert.equal(findBreak(chain), null)
  const entries = chain.map(({ text }) => JSON.parse(text))
  assert.deepEqual(
    entries.map((entry) => [entry.kind, entry.request_id, entry.from_status, entry.to_status]),
    [
      ['data_deletion_request', request.request_id, null, 'running'],
      ['data_deletion_request', request.request_id, 'running', 'verifying'],
      ['data_deletion_request', request.request_id, 'verifying', 'completed'],
    ],
  )
  assert.ok(!chain.some(({ text }) => text.includes(note)))
  const audit = await readChain(stores.control, 'audit_entries', erasing.own.tenantId)
  assert.equal(findBreak(audit), null)
  assert.deepEqual(
    audit.map(({ text }) => JSON.parse(text).action),
    ['deletion.requested', 'deletion.completed'],
  )
})

test('the selection can neither be read nor written to, from the request until the erasure is completed', async () => {
  const erasing = await scene()
  const late = [batchOf('otel_logs', [monday])]
  assert.equal(erasing.gate.refuses(erasing.own, late), false)
  const { request } = await erasing.request(all)
  assert.equal(erasing.gate.refuses(erasing.own, late), true)
  assert.equal(erasing.gate.refuses(erasing.neighbour, late), false)
  erasing.faults.failOnceAt('planned')
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete')
  assert.equal(erasing.gate.refuses(erasing.own, late), true, 'also between two attempts')
  await resume(erasing, request.request_id)
  assert.equal(erasing.gate.refuses(erasing.own, late), false)
})

test('a swap that fails closes its own placement and no other, until it succeeds', async () => {
  const erasing = await scene({ isShared: true })
  const { request } = await erasing.request(all)
  erasing.faults.failOnceAt('swap promised')
  await erasing.round()
  const rows = [batchOf('otel_logs', [monday])]
  assert.equal(erasing.gate.refuses(erasing.neighbour, rows), true)
  assert.equal(erasing.gate.refuses({ tenantId: 'elsewhere', placement: 999 }, rows), false)
  await erasing.round()
  assert.equal(erasing.gate.refuses(erasing.neighbour, rows), false, 'the next round makes the swap')
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete', 'before the retry is due')
  await resume(erasing, request.request_id)
  await assertRows(erasing, 0)
})

test('an erasure does not wait for a running merge of other rows, however long it takes', {
  timeout: 60_000,
}, async () => {
  // A table of its own: a projection of the others would have to be removed from the parts of all scenes.
  const table = 'paused_logs'
  const place: TenantPlace = { tenantId: 'paused', placement: 901 }
  const pause = 'merge_task_projection_stage_pause'
  const week = `${place.placement}-20260119`
  const run = (statement: string) => stores.engine.command(raw(statement))
  await run(`CREATE TABLE ${table} AS otel_logs`)
  // A failpoint of the engine pauses a merge at a projection.
  await run(`ALTER TABLE ${table} ADD PROJECTION paused (SELECT Timestamp ORDER BY Timestamp)`)
  for (const ns of [0n, 1n])
    await run(`INSERT INTO ${table} (Placement, TenantId, Timestamp) SELECT ${place.placement}, '${place.tenantId}',
      fromUnixTimestamp64Nano(toInt64(${monday + 2n * weekNs + ns}), 'UTC')`)
  await run(`SYSTEM ENABLE FAILPOINT ${pause}`)
  const merging = run(`OPTIMIZE TABLE ${table} PARTITION ID '${week}' FINAL`)
  const merges = () => stores.engine.select(sql`select 1 from system.merges where partition_id = ${week}`)
  const deps = { engine: stores.engine, files: stores.files, clock: systemClock }
  try {
    while ((await merges()).length === 0) await new Promise((resolve) => setImmediate(resolve))
    const removal = { tables: [table], changed: new Set([table]) }
    await waitUntilRemoved(deps, place, removal, new AbortController().signal)
    assert.equal((await merges()).length, 1, 'the merge is still running')
  } finally {
    await run(`SYSTEM DISABLE FAILPOINT ${pause}`)
    await merging.catch(() => {})
    await run(`DROP TABLE ${table} SYNC`)
  }
})

test('an attempt that a stop of the service ends does not count as failed and continues at once', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  await erasing.worker.round(AbortSignal.abort())
  assert.equal((await erasing.status(request.request_id)).status, 'running')
  const stopping = new AbortController()
  erasing.faults.runAt('step recorded', () => stopping.abort())
  await erasing.worker.round(stopping.signal)
  const stopped = await erasing.status(request.request_id)
  assert.deepEqual([stopped.status, stopped.detail.attempts], ['incomplete', 1])
  assert.equal((await erasing.requests.stored(erasing.own.tenantId, request.request_id)).attemptsForgiven, 1)
  assert.equal(stopped.detail.next_attempt_at, null)
  await erasing.round()
  assert.equal((await erasing.status(request.request_id)).status, 'completed')
})

test('an attempt whose process loses its lease stops between two steps, reports it, and continues where the lease is', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  const lease = new AbortController()
  erasing.faults.runAt('step recorded', () => lease.abort(new LeaseLost('deletion')))
  await erasing.worker.round(lease.signal)
  const stopped = await erasing.status(request.request_id)
  assert.deepEqual([stopped.status, stopped.detail.attempts], ['incomplete', 1])
  assert.match(String(stopped.detail.blocked_reason), /lost the lease on erasures/)
  assert.equal((await erasing.requests.stored(erasing.own.tenantId, request.request_id)).attemptsForgiven, 1)
  assert.equal(erasing.faults.points.filter((point) => point === 'partition dropped').length, 1)
  await erasing.restarted().worker.round(new AbortController().signal)
  assert.equal((await erasing.status(request.request_id)).status, 'completed')
  await assertRows(erasing, 0)
})

for (const point of [
  'survivors copied ahead',
  'before partition step',
  'survivors copied',
  'swap promised',
]) {
  test(`an attempt that loses its lease at "${point}" changes no table afterwards, and the next one completes`, async () => {
    const erasing = await scene({ isShared: true, fewRows: 0, linkRule: linkAll })
    const half = monday + weekNs / 2n
    const { request } = await erasing.request(between(null, half))
    const lease = new AbortController()
    erasing.faults.runAt(point, () => lease.abort(new LeaseLost('deletion')))
    await erasing.worker.round(lease.signal)
    assert.equal(erasing.faults.points.at(-1), point, 'nothing follows it')
    const stopped = await erasing.status(request.request_id)
    assert.equal(stopped.status, 'incomplete')
    assert.match(String(stopped.detail.blocked_reason), /lost the lease on erasures/)
    assert.equal(
      (await erasing.requests.stored(erasing.own.tenantId, request.request_id)).attemptsForgiven,
      1,
    )
    await assertRows(erasing, times.length)
    const next = erasing.restarted()
    await next.worker.restore()
    await next.worker.round(new AbortController().signal)
    assert.equal((await erasing.status(request.request_id)).status, 'completed')
    await assertRows(erasing, (times.length * 3) / 4)
  })
}

test('a step that has begun is finished when the service is stopped', async () => {
  const erasing = await scene({ isShared: true })
  await erasing.request(all)
  const stopping = new AbortController()
  erasing.faults.runAt('survivors copied', () => stopping.abort())
  await erasing.worker.round(stopping.signal)
  assert.equal(erasing.faults.points.filter((point) => point === 'partition replaced').length, 1)
})

test('no attempt acts while a backup is taken', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  const copied = Promise.withResolvers<void>()
  const copying = erasing.locks.attempts.exclusively([erasing.own.placement], () => copied.promise)
  const round = erasing.round()
  // More statements than an attempt needs until its first step.
  for (let i = 0; i < 30; i++) await erasing.count(erasing.own, 'otel_logs')
  assert.deepEqual(erasing.faults.points, [])
  assert.equal(await erasing.visible(erasing.own, 'otel_logs'), 0)
  copied.resolve()
  await Promise.all([copying, round])
  assert.equal((await erasing.status(request.request_id)).status, 'completed')
})

test('the number of open deletions of an organisation is limited', async () => {
  const erasing = await scene()
  for (let hour = 1; hour <= openOfPersonMax; hour++) {
    await erasing.request(between(null, monday + BigInt(hour) * hourNs))
  }
  await assert.rejects(erasing.request(all), { code: 'too_many_requests' })
})

test('of two concurrent moves from the same state one succeeds and the other writes nothing', async () => {
  const erasing = await scene()
  const { request } = await erasing.request(all)
  const seen = (await erasing.requests.inStatus(['running'])).find(
    (found) => found.requestId === request.request_id,
  )
  assert.ok(seen)
  const moves = await Promise.all([
    erasing.requestStore.move(seen, 'interrupt', { actor: tokenNamed('one') }),
    erasing.requestStore.move(seen, 'give_up', { actor: tokenNamed('other') }),
  ])
  assert.deepEqual(
    moves.map((moved) => moved?.status ?? null),
    ['incomplete', null],
  )
  const chain = await readChain(stores.control, 'ledger_entries', erasing.own.tenantId)
  assert.deepEqual(
    chain.map(({ text }) => JSON.parse(text).actor),
    ['token:owner (tok_owner)', 'token:one (tok_one)'],
  )
  assert.equal((await erasing.status(request.request_id)).status, 'incomplete')
})

test('two deletions that overlap count each row once', async () => {
  const erasing = await scene()
  const first = await erasing.request(between(null, monday + weekNs))
  erasing.faults.failOnceAt('planned')
  await erasing.round()
  const second = await erasing.request(all)
  await erasing.round()
  await resume(erasing, first.request.request_id)
  const claimed = await Promise.all(
    [first, second].map(async ({ request }) =>
      Number((await erasing.status(request.request_id)).detail.rows_erased),
    ),
  )
  assert.deepEqual(claimed, [0, times.length * erasing.tables.length])
})

test('an organisation without telemetry completes at once with zero rows', async () => {
  const erasing = await scene()
  await erasing.request(all)
  await erasing.round()
  const { request } = await erasing.request(all)
  await erasing.round()
  const done = await erasing.status(request.request_id)
  assert.deepEqual([done.status, done.detail.rows_erased], ['completed', 0])
})
