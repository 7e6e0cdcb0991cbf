// Which organisations count as having lost rows of a table: after changes of this and of another process, in
// transactions, during a flush, and after one that failed.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, test } from 'node:test'
import { sql } from 'kysely'
import type { Control } from '../database.ts'
import { dialectOf } from '../dialect.ts'
import { transact } from '../transaction.ts'
import { flushInSlices } from './dialect.ts'
import { everyStep, filesWith, openTwice } from './two-handles-fixture.ts'

let folder: string
let control: Control
let other: Control

beforeEach(async () => {
  ;({ folder, control, other } = await openTwice())
})
afterEach(async () => {
  await control.destroy()
  await other.destroy()
  rmSync(folder, { recursive: true, force: true })
})

function flush(tenantIds: readonly string[] | null, turn: () => Promise<unknown> = async () => {}) {
  const ofWhom = tenantIds && new Set(tenantIds)
  return flushInSlices(control, ['anomalies'], ofWhom, { pace: everyStep(turn), bulkRows: 20_000 })
}

async function insert(id: string, tenantId: string): Promise<void> {
  const time = { started_at_ns: '1', seen_until_ns: '2', peak_at_ns: '1', created_at_ms: 1, updated_at_ms: 1 }
  const found = { detector_id: 'det_1', group_key: '{}', metric_key: 'load', signal: 'metrics', score: 2 }
  await control
    .insertInto('anomalies')
    .values({ id, tenant_id: tenantId, reason: `${id} found`, ...found, ...time })
    .execute()
}

/** Ten anomalies of each of two organisations, in pages that they share, and nothing that was lost. */
async function fill(): Promise<void> {
  for (let i = 0; i < 20; i++) await insert(`ano_${i}`, i % 2 === 0 ? 'acme' : 'globex')
  await flush(null)
}

const remove = (of: Control, id: string) => of.deleteFrom('anomalies').where('id', '=', id).execute()
const change = (of: Control, id: string) =>
  of.updateTable('anomalies').set({ reason: 'changed' }).where('id', '=', id).execute()

async function rootPage(): Promise<number | undefined> {
  const { rows } = await sql<{ rootpage: number }>`
    select rootpage from sqlite_schema where name = 'anomalies'`.execute(control)
  return rows[0]?.rootpage
}

/** Whether a flush for these organisations, null for all, rewrites the table. */
async function isRewritten(tenantIds: readonly string[] | null): Promise<boolean> {
  const before = await rootPage()
  await flush(tenantIds)
  return (await rootPage()) !== before
}

const isClean = (tenantId: string) => dialectOf(control).isClean(control, ['anomalies'], tenantId)

test('a table is rewritten only where something of it was removed or changed since the last time', async () => {
  await fill()
  assert.equal(await isRewritten(null), false)
  await insert('ano_100', 'acme')
  assert.equal(await isRewritten(null), false)
  await change(control, 'none')
  assert.equal(await isRewritten(null), false)
  await control.deleteFrom('sessions').execute()
  assert.equal(await isRewritten(null), false)
  await change(control, 'ano_1')
  assert.equal(await isRewritten(null), true)
  await remove(control, 'ano_2')
  assert.equal(await isRewritten(null), true)
  await change(other, 'ano_3')
  assert.equal(await isRewritten(null), true)
  await sql`insert or replace into anomalies select * from anomalies where id = 'ano_3'`.execute(control)
  assert.equal(await isRewritten(null), true)
  await sql`delete from anomalies returning id`.execute(control)
  assert.equal(await isRewritten(null), true)
  assert.equal(await isRewritten(null), false)
})

test('an organisation whose rows stayed as they are needs no rewriting because of another', async () => {
  assert.equal(isClean('acme'), false, 'nothing is known at the start')
  await fill()
  assert.equal(isClean('acme'), true)
  await remove(control, 'ano_2')
  await change(control, 'ano_4')
  assert.deepEqual([isClean('acme'), isClean('globex')], [false, true])
  assert.equal(await isRewritten(['globex']), false)
  assert.equal(isClean('acme'), false, 'the flush of another has not rewritten the table')
  assert.notDeepEqual(filesWith(folder, 'globex'), [])
  assert.equal(await isRewritten(['initech', 'acme']), true)
  assert.deepEqual(filesWith(folder, 'ano_2 found'), [])
  assert.deepEqual(filesWith(folder, 'ano_4 found'), [])
  assert.notDeepEqual(filesWith(folder, 'ano_6 found'), [])
  assert.equal(isClean('acme'), true)
})

test('a write of another process makes the rows of all organisations count as lost', async () => {
  await fill()
  await other.insertInto('instance').values({ key: 'x', value: 'y' }).execute()
  assert.deepEqual([isClean('acme'), isClean('globex')], [false, false])
  assert.equal(await isRewritten(['globex']), true)
  assert.equal(isClean('acme'), true)
})

test('in a snapshot nothing counts as clean, because others may have written since it began', async () => {
  await fill()
  await dialectOf(control).snapshot(control, async () => assert.equal(isClean('acme'), false))
  assert.equal(isClean('acme'), true)
})

test('what a transaction removes is lost, and what a trigger removes', async () => {
  await fill()
  await transact(control, async (trx) => {
    await trx.deleteFrom('anomalies').where('tenant_id', '=', 'globex').execute()
  })
  assert.deepEqual([isClean('acme'), isClean('globex')], [true, false])
  await flush(['globex'])
  await sql`create trigger removing after insert on instance
    begin delete from anomalies where id = 'ano_2'; end`.execute(control)
  await control.insertInto('instance').values({ key: 'x', value: 'y' }).execute()
  assert.equal(isClean('acme'), false)
})

test('an organisation is clean only when the flush that rewrites its table has ended', async () => {
  await fill()
  await remove(control, 'ano_2')
  const seen: boolean[] = []
  await flush(['acme'], async () => seen.push(isClean('acme'), isClean('globex')))
  assert.ok(seen.length > 10)
  assert.ok(seen.every((clean, i) => clean === (i % 2 === 1)))
  assert.equal(isClean('acme'), true)
})

test('what is lost while a table is rewritten makes the next flush rewrite it', async () => {
  await fill()
  await remove(control, 'ano_2')
  let turns = 0
  await flush(['acme'], async () => {
    if (turns++ === 4) await remove(control, 'ano_1')
  })
  assert.deepEqual([isClean('acme'), isClean('globex')], [true, false])
  assert.equal(await isRewritten(['acme']), false)
  assert.equal(await isRewritten(['globex']), true)
  assert.deepEqual(filesWith(folder, 'ano_1 found'), [])
})

test('after a flush that failed the rows of all count as lost until one succeeds', async () => {
  await fill()
  for (let last = 0, hasFailed = true; hasFailed; last++) {
    await insert('ano_50', 'acme')
    await remove(control, 'ano_50')
    let turns = 0
    hasFailed = await flush(['acme'], async () => {
      if (turns++ === last) throw new Error('interrupted')
    }).then(
      () => false,
      () => true,
    )
    assert.equal(isClean('acme'), !hasFailed, `${last}`)
    // Before the rewriting has begun only those are lost that were so.
    if (hasFailed && last > 1) assert.equal(isClean('globex'), false, `${last}`)
  }
  assert.deepEqual(filesWith(folder, 'ano_50 found'), [])
})

test('where the log can not be emptied, the next flush does it without rewriting the table again', async () => {
  await fill()
  await remove(control, 'ano_2')
  const reading = await other.connection().execute(async (connection) => {
    await sql`begin deferred`.execute(connection)
    await sql`select count(*) from instance`.execute(connection)
    await assert.rejects(flush(['acme']), /could not be emptied/)
    await sql`commit`.execute(connection)
    return isClean('acme')
  })
  assert.equal(reading, false)
  assert.equal(await isRewritten(['acme']), false)
  assert.equal(isClean('acme'), true)
  assert.deepEqual(filesWith(folder, 'ano_2 found'), [])
})

test('a table that was created again counts as lost by all', async () => {
  await fill()
  const { rows } = await sql<{ sql: string }>`
    select sql from sqlite_schema where name = 'anomalies'`.execute(control)
  await sql`drop table anomalies`.execute(control)
  await sql.raw(rows[0]?.sql ?? '').execute(control)
  assert.equal(await isRewritten(['acme']), true)
  await insert('ano_1', 'acme')
  await remove(control, 'ano_1')
  assert.equal(isClean('acme'), false)
})
