// Rewriting tables of SQLite in slices: what others change between two slices, what a crash leaves at each of
// them, two processes that rewrite at once, and that everything but the pages stays as it was.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { sql } from 'kysely'
import { withTurns } from '../../../tests/with-turns.ts'
import { Pace } from '../../core/turns/pace.ts'
import { controlTables, dropTables } from '../copy.ts'
import type { Control } from '../database.ts'
import { derivedTables } from '../derived-tables.ts'
import { ErasedBytesKept } from '../erased-flush.ts'
import { copyToFile } from '../file-copy.ts'
import { migrate } from '../migrate.ts'
import { openUsable } from '../open.ts'
import { transact } from '../transaction.ts'
import { flushInSlices } from './dialect.ts'
import { everyStep, filesWith, openTwice } from './two-handles-fixture.ts'

let folder: string
let path: string
let control: Control
let other: Control

beforeEach(async () => {
  ;({ folder, path, control, other } = await openTwice())
})
afterEach(async () => {
  await control.destroy()
  await other.destroy()
  rmSync(folder, { recursive: true, force: true })
})

/** With few rows, and with so many that indexes are filled row by row. */
const sizes = [20_000, 0]

function flush(bulkRows = 20_000, turn: () => Promise<unknown> = async () => {}, of = control) {
  return flushInSlices(of, ['anomalies'], null, { pace: everyStep(turn), bulkRows })
}

const idOf = (i: number) => `ano_${String(i).padStart(6, '0')}`

async function insert(of: Control, i: number, tenantId: string, reason = `${tenantId} found ${i}`) {
  const time = { started_at_ns: String(i), seen_until_ns: '2', peak_at_ns: '1' }
  const row = { id: idOf(i), tenant_id: tenantId, detector_id: 'det_1', group_key: '{}', metric_key: 'load' }
  await of
    .insertInto('anomalies')
    .values({ ...row, ...time, signal: 'metrics', score: 2, reason, created_at_ms: 1, updated_at_ms: 1 })
    .execute()
}

/** Anomalies of two organisations by turns. */
async function fill(count: number): Promise<void> {
  await transact(control, async (trx) => {
    for (let i = 0; i < count; i++) await insert(trx, i, i % 2 === 0 ? 'acme' : 'globex')
  })
}

const rowsOf = (of: Control) => of.selectFrom('anomalies').selectAll().orderBy('id').execute()

async function ask(of: Control, text: string): Promise<unknown[]> {
  const { rows } = await sql<Record<string, unknown>>`${sql.raw(text)}`.execute(of)
  return rows.map((row) => ({ ...row }))
}

const schemaOf = (of: Control) => ask(of, 'select type, name, tbl_name, sql from sqlite_schema order by name')
const rootOf = (table: string) => ask(control, `select rootpage from sqlite_schema where name = '${table}'`)

async function assertSound(of: Control): Promise<void> {
  assert.deepEqual(await ask(of, 'pragma integrity_check'), [{ integrity_check: 'ok' }])
  assert.deepEqual(await ask(of, 'pragma foreign_key_check'), [])
}

const leftOvers = async (of: Control) =>
  (await ask(of, `select name from sqlite_schema where name like 'rewritten%'`)).length

test('every table can be rewritten: its rows, indexes, triggers and references stay, also for other processes', async () => {
  await fill(500)
  await control
    .insertInto('organisations')
    .values({ tenant_id: 'acme', name: 'Acme', placement: 1, created_at_ms: 0 })
    .execute()
  const [schema, rows] = [await schemaOf(control), await rowsOf(control)]
  for (const bulkRows of sizes) {
    await control
      .updateTable('organisations')
      .set({ name: `Acme ${bulkRows}` })
      .execute()
    const roots = await rootOf('organisations')
    await flushInSlices(control, [...controlTables, 'control_moves'], null, { pace: new Pace(), bulkRows })
    assert.notDeepEqual(await rootOf('organisations'), roots)
    for (const handle of [control, other]) {
      await assertSound(handle)
      assert.deepEqual(await schemaOf(handle), schema)
      assert.deepEqual(await rowsOf(handle), rows)
    }
  }
  await assert.rejects(
    sql`insert into deletion_steps (request_id, ordinal, store, action, rows, bytes)
      values ('none', 1, '', '', 0, 0)`.execute(other),
    /FOREIGN KEY/,
  )
  await control
    .insertInto('audit_entries')
    .values({ tenant_id: 'a', seq: 1, entry: '{}', hash: '' })
    .execute()
  await assert.rejects(control.deleteFrom('audit_entries').execute(), /append-only/)
  await assert.rejects(insert(other, 0, 'acme'), /UNIQUE/)
})

for (const bulkRows of sizes) {
  const how = bulkRows === 0 ? 'row by row' : 'as a whole'

  test(`what others change between slices is in the table, where indexes are filled ${how}`, async () => {
    await fill(1000)
    let [i, turns] = [1000, 0]
    const change = async () => {
      const of = turns++ % 2 === 0 ? control : other
      // Rows that are copied by now, that are not, and the last ones.
      for (const at of [turns * 37, 999 - turns, i - 1]) {
        await of
          .updateTable('anomalies')
          .set({ reason: `changed ${turns}` })
          .where('id', '=', idOf(at))
          .execute()
        await of
          .deleteFrom('anomalies')
          .where('id', 'in', [idOf(at + 1), idOf(i - 1)])
          .execute()
      }
      await insert(of, i++, 'globex')
      await insert(of, i++, 'globex')
    }
    const expected = new Map<string, unknown>()
    await flush(bulkRows, async () => {
      await change()
      expected.clear()
      for (const row of await rowsOf(other)) expected.set(row.id, row)
    })
    assert.ok(turns > 9, `${turns} turns`)
    assert.deepEqual(await rowsOf(control), [...expected.values()])
    await assertSound(other)
    assert.equal(await leftOvers(control), 0)
  })

  test(`a crash at any slice leaves a usable control plane, and the next flush finishes, ${how}`, async () => {
    await fill(600)
    const schema = await schemaOf(control)
    let [hadCopy, isKilled] = [0, true]
    for (let last = 0; isKilled; last++) {
      await insert(control, 2000 + last, 'acme', `canary ${last}`)
      await control
        .deleteFrom('anomalies')
        .where('id', '=', idOf(2000 + last))
        .execute()
      let turns = 0
      const crash = async () => {
        if (turns++ === last) throw new Error('killed')
      }
      isKilled = await flush(bulkRows, crash).then(
        () => false,
        (error: unknown) => error instanceof Error && error.message === 'killed',
      )
      await control.destroy()
      control = await openUsable({ kind: 'sqlite', path })
      hadCopy += Math.sign(await leftOvers(control))
      const rows = await rowsOf(control)
      await insert(control, 3000, 'acme', 'after the crash')
      await control.deleteFrom('anomalies').where('id', '=', idOf(3000)).execute()
      await flush(bulkRows)
      assert.deepEqual(filesWith(folder, 'canary'), [])
      assert.deepEqual(filesWith(folder, 'after the crash'), [])
      assert.deepEqual(await rowsOf(control), rows)
      assert.deepEqual(await schemaOf(control), schema)
    }
    assert.ok(hadCopy > 3, `${hadCopy}`)
    await assertSound(control)
    assert.notDeepEqual(filesWith(folder, 'globex found'), [])
  })
}

/** Leaves a copy of anomalies with its triggers. */
async function leaveCopy(): Promise<void> {
  await fill(600)
  let turns = 0
  const crash = async () => {
    if (turns++ === 3) throw new Error('killed')
  }
  await assert.rejects(flush(20_000, crash), /killed/)
  assert.ok((await leftOvers(control)) > 3)
}

test('a copy that a crash left is in the way of neither backup, migration, organisation nor move', async () => {
  await leaveCopy()
  const copied = join(folder, 'copy.db')
  await copyToFile(control, copied)
  const restored = await openUsable({ kind: 'sqlite', path: copied })
  try {
    assert.deepEqual(await rowsOf(restored), await rowsOf(control))
    await flushInSlices(restored, derivedTables)
    assert.equal(await leftOvers(restored), 0)
  } finally {
    await restored.destroy()
  }
  await control.deleteFrom('anomalies').where('tenant_id', '=', 'acme').execute()
  await sql`delete from kysely_migration where name = '0021-full-erasures'`.execute(control)
  await sql`drop index deletion_requests_full`.execute(control)
  await migrate(control)
  assert.equal(await leftOvers(control), 0, 'a migration may drop a column that a trigger names')
  assert.equal((await rowsOf(control)).length, 300)
})

test('the tables of a control plane with a copy that a crash left can be dropped', async () => {
  await leaveCopy()
  await transact(control, dropTables)
  assert.deepEqual(await ask(control, 'select name from sqlite_schema'), [])
})

function mustBeKept(error: unknown): void {
  if (!(error instanceof ErasedBytesKept)) throw error
}

test('of two processes that rewrite a table at once none loses a row, and a later flush finishes', async () => {
  for (const bulkRows of sizes) {
    await control.deleteFrom('anomalies').execute()
    await fill(300)
    let [i, expected] = [5000, 300]
    // The other one begins at each slice in turn, and its rewriting ends before the next slice.
    for (let at = 0; at < 20; at += 2) {
      await insert(control, i, 'acme', 'canary')
      await control.deleteFrom('anomalies').where('id', '=', idOf(i++)).execute()
      let turns = 0
      const turn = async () => {
        if (turns++ !== at) return
        await flush(bulkRows, undefined, other)
        await insert(other, i++, 'globex')
        expected++
      }
      await flush(bulkRows, turn).catch(mustBeKept)
      const rows = await rowsOf(other)
      assert.equal(rows.length, expected, `at ${at}`)
      await flush(bulkRows)
      assert.deepEqual(filesWith(folder, 'canary'), [])
      assert.deepEqual(await rowsOf(control), rows)
      assert.equal(await leftOvers(control), 0)
    }
    await assertSound(control)
  }
})

test('a process that removes its copy does not touch the one that another process fills meanwhile', async () => {
  await fill(300)
  for (const bulkRows of sizes) {
    for (const [at, theirLast] of [
      [4, 2],
      [8, 2],
      [9, 9],
      [11, 7],
      [13, 9],
      [14, 6],
    ] as const) {
      await control.updateTable('anomalies').set({ muted: at }).execute()
      let rows = await rowsOf(control)
      const [paused, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      let [theirTurns, turns] = [0, 0]
      let theirs = Promise.resolve()
      const theirTurn = async () => {
        if (++theirTurns !== theirLast) return
        paused.resolve()
        await resumed.promise
      }
      await flush(bulkRows, async () => {
        if (turns++ < at) return
        if (turns === at + 1) {
          theirs = flush(bulkRows, theirTurn, other)
          await Promise.race([paused.promise, theirs])
        }
        await control.updateTable('anomalies').set({ muted: turns }).where('id', '=', idOf(1)).execute()
        rows = await rowsOf(control)
      }).catch(mustBeKept)
      resumed.resolve()
      await theirs.catch(mustBeKept)
      assert.deepEqual(await rowsOf(control), rows, `at ${at}`)
    }
  }
})

test('while another process writes the loop goes on, and the flush continues after it', async () => {
  await fill(10)
  const { turns } = await withTurns(async () => {
    const flushed = await other.connection().execute(async (connection) => {
      await sql`begin immediate`.execute(connection)
      const flushing = flush()
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
      await sql`commit`.execute(connection)
      return { flushing }
    })
    await flushed.flushing
  })
  assert.ok(turns >= 20)
  assert.equal(await leftOvers(control), 0)
})
