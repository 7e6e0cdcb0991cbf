// Rewriting a table by a copy, stopped at each of its steps: who waits, what others change meanwhile, what
// older snapshots see, what a lost connection leaves, and that everything but the rows stays as it was.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import { programOf, role, runFolder } from '../../../tests/postgres-server.ts'
import { waitFor } from '../../../tests/wait-for.ts'
import { AppError } from '../../core/app-error.ts'
import { dropTables } from '../copy.ts'
import type { Control } from '../database.ts'
import { derivedCopies, derivedTables } from '../derived-tables.ts'
import { dialectOf } from '../dialect.ts'
import { ErasedBytesKept } from '../erased-flush.ts'
import { migrate } from '../migrate.ts'
import { transact } from '../transaction.ts'
import { flushErased } from './erased-rows.ts'
import type { RewritingStep } from './table-copy.ts'

const [plane, ordinary] = [await openSharedPostgresPlane(), await openSharedPostgresPlane(false)]
const control = plane.another()
const other = plane.another()
const watcher = plane.another()
after(async () => {
  await plane.close()
  await ordinary.close()
})

const newCanary = () => randomBytes(24).toString('hex')

/** Flushes anomalies by a copy, and runs `work` the first time that the step is reached. */
async function flush(of: Control = control, step?: RewritingStep, work = async () => {}): Promise<void> {
  let isReached = false
  await flushErased(of, ['anomalies'], {
    copiedFromBytes: 0,
    async at(reached) {
      if (reached !== step || isReached) return
      isReached = true
      await work()
    },
  })
  assert.equal(isReached, step !== undefined, 'the step is reached')
}

function keptBecause(reason: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof ErasedBytesKept && reason.test(error.message)
}

async function insertAnomaly(of: Control, id: string, reason: string): Promise<void> {
  const time = { started_at_ns: '1', seen_until_ns: '2', peak_at_ns: '1', created_at_ms: 1, updated_at_ms: 1 }
  const row = { id, tenant_id: 'acme', detector_id: 'det_1', group_key: '{}', metric_key: 'load' }
  await of
    .insertInto('anomalies')
    .values({ ...row, ...time, signal: 'metrics', score: 2, reason })
    .execute()
}

async function changeReason(of: Control, id: string, reason: string): Promise<void> {
  await of.updateTable('anomalies').set({ reason }).where('id', '=', id).execute()
}

const remove = (of: Control, id: string) => of.deleteFrom('anomalies').where('id', '=', id).execute()

async function reasons(of: Control): Promise<string[]> {
  const rows = await of.selectFrom('anomalies').select(['id', 'reason']).orderBy('id').execute()
  return rows.map(({ id, reason }) => `${id} ${reason}`)
}

beforeEach(async () => {
  await control.deleteFrom('anomalies').execute()
  for (const id of ['a', 'b', 'c']) await insertAnomaly(control, id, 'as planted')
})

async function askNumber(text: string): Promise<number> {
  const { rows } = await sql<{ found: number }>`select (${sql.raw(text)}) as found`.execute(watcher)
  return Number(rows[0]?.found)
}

const tableId = (table: string) => askNumber(`'${table}'::regclass::oid::bigint`)
const waitingForAnomalies = () =>
  askNumber(`select count(*) from pg_locks where relation = 'anomalies'::regclass and not granted`)
const copies = () =>
  askNumber(`select count(*) from pg_class where relname like 'rewritten%' and relkind in ('r', 'i')`)

const planted = ['a as planted', 'b as planted', 'c as planted']

test('while the copy is filled others read and write, and the table has what they wrote', async () => {
  await flush(control, 'filled', async () => {
    assert.deepEqual(await reasons(other), planted)
    await insertAnomaly(other, 'd', 'inserted')
    await changeReason(other, 'a', 'changed')
    await remove(other, 'b')
  })
  assert.deepEqual(await reasons(other), ['a changed', 'c as planted', 'd inserted'])
  await flush(control, 'copied', async () => {
    await remove(other, 'd')
    await insertAnomaly(other, 'd', 'inserted again')
    await remove(other, 'c')
    await insertAnomaly(other, 'e', 'inserted')
  })
  assert.deepEqual(await reasons(other), ['a changed', 'd inserted again', 'e inserted'])
})

test('what a transaction began to write before the copy and commits after it is in the table', async () => {
  const [began, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const writing = transact(other, async (trx) => {
    await changeReason(trx, 'a', 'changed early')
    await remove(trx, 'b')
    began.resolve()
    await commit.promise
  })
  await began.promise
  // The flush waits for older transactions two seconds, and refuses to copy beside them.
  await assert.rejects(flush(), keptBecause(/a transaction or snapshot that is older/))
  commit.resolve()
  await writing
  await flush()
  assert.deepEqual(await reasons(other), ['a changed early', 'c as planted'])
})

test('while the copy is brought up to date readers are served, and writers wait and then succeed', async () => {
  let writing: Promise<void> = Promise.resolve()
  await flush(control, 'writers wait', async () => {
    assert.deepEqual(await reasons(other), planted)
    writing = changeReason(plane.control, 'a', 'written after waiting')
    await waitFor(waitingForAnomalies, (count) => count === 1)
    assert.deepEqual(await reasons(other), planted)
  })
  await writing
  assert.deepEqual(await reasons(other), ['a written after waiting', 'b as planted', 'c as planted'])
})

test('a statement that waits until the table is replaced reads and writes the new one', async () => {
  let reading: Promise<string[]> = Promise.resolve([])
  let writing: Promise<void> = Promise.resolve()
  await flush(control, 'replaced', async () => {
    reading = reasons(plane.control)
    writing = changeReason(other, 'c', 'changed')
    await waitFor(waitingForAnomalies, (count) => count === 2)
  })
  await writing
  assert.equal((await reading).length, 3)
  assert.deepEqual(await reasons(other), ['a as planted', 'b as planted', 'c changed'])
})

test('a transaction that has read and then writes is not ended, and the table is replaced after it', async () => {
  const [read, write] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let tries = 0
  const reader = transact(other, async (trx) => {
    tries++
    await reasons(trx)
    read.resolve()
    await write.promise
    await changeReason(trx, 'a', 'read before')
  })
  await read.promise
  await flush(control, 'writers wait', async () => {
    write.resolve()
    await waitFor(waitingForAnomalies, (count) => count === 1)
  })
  await reader
  assert.equal(tries, 1)
  assert.deepEqual(await reasons(other), ['a read before', 'b as planted', 'c as planted'])
})

test('a reader that does not end leaves the table as it was, and no copy', async () => {
  const before = await tableId('anomalies')
  await transact(other, async (trx) => {
    await reasons(trx)
    await assert.rejects(flush(), keptBecause(/is busy: somebody else uses the tables/))
  })
  assert.deepEqual([await tableId('anomalies'), await copies()], [before, 0])
  await flush()
  assert.notEqual(await tableId('anomalies'), before)
})

test('no snapshot sees an empty table: an older one delays the flush, a later one reads the copy', async () => {
  const { snapshot } = dialectOf(control)
  const older = plane.another()
  await snapshot(older, async (seen) => {
    await sql`select 1`.execute(seen)
    await assert.rejects(flush(), keptBecause(/a transaction or snapshot that is older/))
    assert.deepEqual(await reasons(seen), planted)
  })
  for (const [step, isKept] of [
    ['filled', true],
    ['writers wait', false],
    ['replaced', false],
  ] as const) {
    const [began, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let reading: Promise<string[]> = Promise.resolve([])
    const flushing = flush(control, step, async () => {
      reading = snapshot(older, async (seen) => {
        await sql`select 1`.execute(seen)
        began.resolve()
        await read.promise
        return reasons(seen)
      })
      await began.promise
    })
    if (isKept) await assert.rejects(flushing, keptBecause(/a transaction or snapshot that is older/))
    else await flushing
    read.resolve()
    assert.deepEqual(await reading, planted, step)
  }
})

test('no file has what was deleted or overwritten before a flush, and other rows stay', async () => {
  const [deleted, overwritten, kept] = [newCanary(), newCanary(), newCanary()]
  await insertAnomaly(control, 'd', deleted)
  await insertAnomaly(control, 'e', overwritten)
  await insertAnomaly(control, 'f', kept)
  await remove(control, 'd')
  await changeReason(control, 'e', 'redacted')
  for (const canary of [deleted, overwritten]) assert.notDeepEqual(plane.filesWith(canary), [])
  // A session that has used the files keeps them open.
  await reasons(other)
  await flush()
  for (const canary of [deleted, overwritten]) assert.deepEqual(plane.filesWith(canary), [])
  assert.notDeepEqual(plane.filesWith(kept), [])
})

test('a connection that ends at any step leaves the table whole, and the next flush removes the copy', async () => {
  const canary = newCanary()
  await insertAnomaly(control, 'd', canary)
  const before = await tableId('anomalies')
  const holders = `select pid from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())`
  const flushEnds = () => askNumber(`select count(*) from (${holders}) holding`)
  const indexes = await askNumber(`select count(*) from pg_index where indrelid = 'anomalies'::regclass`)
  for (const [step, left] of [
    ['filled', 0],
    ['copied', 1 + indexes],
    ['writers wait', 1 + indexes],
    ['replaced', 1 + indexes],
  ] as const) {
    const flushing = flush(control, step, async () => {
      await askNumber(`select count(pg_terminate_backend(pid)) from (${holders}) holding`)
      await waitFor(flushEnds, (count) => count === 0)
    })
    await assert.rejects(
      flushing,
      (error) => error instanceof AppError && error.code === 'storage_unavailable',
    )
    assert.deepEqual([await tableId('anomalies'), await copies()], [before, left], step)
    assert.deepEqual(await reasons(other), [...planted, `d ${canary}`])
  }
  await remove(control, 'd')
  assert.ok(plane.filesWith(canary).length > 1, 'the table and the copy')
  await dialectOf(control).flushErased(control, ['detectors'])
  assert.equal(await copies(), 0, 'also a flush of other tables, and of small ones')
  await flush()
  assert.deepEqual(plane.filesWith(canary), [])
})

test('one connection is enough', async () => {
  const one = plane.withOneConnection()
  const before = await tableId('anomalies')
  await flush(one)
  assert.notEqual(await tableId('anomalies'), before)
  assert.deepEqual(await reasons(one), planted)
})

test('of two flushes at once one does it, and the other one is to be repeated', async () => {
  for (const step of ['filled', 'copied', 'writers wait'] as const) {
    await flush(control, step, () =>
      assert.rejects(flush(other), keptBecause(/is busy: somebody else uses the tables/)).then(() => {}),
    )
  }
  await flush(other)
  assert.deepEqual(await reasons(other), planted)
})

test('a role that owns nothing but its tables copies them, sees snapshots of other roles, and may lack the right to copy', async () => {
  const service = ordinary.as(`copies_${process.pid}`)
  const run = (text: string) => sql.raw(`${text} copies_${process.pid}`).execute(ordinary.control)
  for (const text of ['create user', 'grant create on schema public to']) await run(text)
  await migrate(service)
  await insertAnomaly(service, 'a', 'as planted')
  const fileOf = async () => (await sql`select 'anomalies'::regclass::oid::bigint`.execute(service)).rows[0]
  const before = await fileOf()
  await dialectOf(service).snapshot(ordinary.control, async (seen) => {
    await sql`select 1`.execute(seen)
    await assert.rejects(flush(service), keptBecause(/a transaction or snapshot that is older/))
    assert.deepEqual(await reasons(seen), ['a as planted'])
  })
  assert.deepEqual(await fileOf(), before)
  await flush(service)
  const later = await fileOf()
  assert.notDeepEqual(later, before)
  await run('revoke create on schema public from')
  await flush(service)
  assert.deepEqual([await fileOf(), await reasons(service)], [later, ['a as planted']])
})

/** What `pg_dump` says of the derived tables without their rows. */
function schemaText(): string {
  const tables = derivedTables.flatMap((table) => ['-t', table])
  const words = ['-h', runFolder(), '-U', role, '-d', plane.database, '-s', ...tables]
  const dumped = spawnSync(programOf('pg_dump'), words, { encoding: 'utf8' })
  assert.equal(dumped.status, 0, dumped.stderr)
  // A line with a random key protects psql from what a dump contains.
  return dumped.stdout.replaceAll(/^\\(?:un)?restrict .*$/gm, '')
}

test('names, grants, statistics, indexes, constraints and triggers stay as they were', async () => {
  await sql.raw(`create role reads_${process.pid}`).execute(control)
  await sql
    .raw(`grant select, update on anomalies to reads_${process.pid} with grant option`)
    .execute(control)
  await sql`grant select on held_anomaly_versions to public`.execute(control)
  await sql`alter table anomalies alter column tenant_id set statistics 500`.execute(control)
  await sql`alter table anomalies alter column reason set storage external`.execute(control)
  await sql`comment on column anomalies.reason is 'What a person reads'`.execute(control)
  await sql`alter table anomalies add constraint scored unique (id, score)`.execute(control)
  const [before, ids] = [schemaText(), await Promise.all(derivedTables.map(tableId))]
  for (const name of ['anomalies_pkey', 'held_anomalies_stay', `reads_${process.pid}`, 'STATISTICS 500']) {
    assert.ok(before.includes(name), name)
  }
  for (let round = 0; round < 2; round++) {
    await flushErased(control, derivedTables, { copiedFromBytes: 0, at: async () => {} })
    assert.equal(schemaText(), before)
  }
  const later = await Promise.all(derivedTables.map(tableId))
  assert.deepEqual(
    later.map((id, at) => id === ids[at]),
    [false, false, true],
    'detectors refer to organisations',
  )
  const { rows } = await sql`
    select attname from pg_stats where tablename = 'anomalies' and attname in ('reason', 'id')`.execute(
    control,
  )
  assert.deepEqual(rows, [{ attname: 'id' }])
})

test('a table on which something depends, or that a copy would not equal, is rewritten in place', async () => {
  const isInPlace = async () => {
    const before = await tableId('anomalies')
    await flush()
    assert.equal(await copies(), 0)
    return (await tableId('anomalies')) === before
  }
  const canary = newCanary()
  await insertAnomaly(control, 'd', canary)
  assert.equal(await isInPlace(), false)
  for (const [create, drop] of [
    ['create view seen as select id from anomalies', 'drop view seen'],
    ['create table linked (id text references anomalies (id))', 'drop table linked'],
    [
      'create function one(anomalies) returns int language sql as $$ select 1 $$',
      'drop function one(anomalies)',
    ],
    ['create publication changes for table anomalies', 'drop publication changes'],
    ['alter table anomalies set (fillfactor = 50)', 'alter table anomalies reset (fillfactor)'],
    [
      'alter table anomalies alter column score set (n_distinct = 5)',
      'alter table anomalies alter column score reset (n_distinct)',
    ],
    ['revoke delete on anomalies from current_user', 'grant delete on anomalies to current_user'],
  ] as const) {
    await sql.raw(create).execute(control)
    const described = schemaText()
    assert.equal(await isInPlace(), true, create)
    assert.equal(schemaText(), described)
    await sql.raw(drop).execute(control)
  }
  await sql`alter table anomalies cluster on anomalies_by_tenant`.execute(control)
  await remove(control, 'd')
  assert.notDeepEqual(plane.filesWith(canary), [])
  assert.equal(await isInPlace(), true)
  assert.deepEqual(plane.filesWith(canary), [])
  await sql`alter table anomalies set without cluster`.execute(control)
  assert.equal(await isInPlace(), false)
})

test('what locks or drops all tables leaves no copy and waits for none', async () => {
  await flush(control, 'copied', () =>
    transact(other, async (trx) => {
      await dialectOf(trx).lockAll(trx)
      const { rows } = await sql`
        select relation::regclass::text as name from pg_locks
        where pid = pg_backend_pid() and locktype = 'relation' and mode = 'ExclusiveLock'
          and relation::regclass::text in ('anomalies', 'rewritten_anomalies')`.execute(trx)
      assert.deepEqual(rows, [{ name: 'anomalies' }])
    }),
  )
  for (const name of derivedCopies) await sql`create table ${sql.table(name)} (id text)`.execute(control)
  await transact(control, dropTables)
  assert.equal(await copies(), 0)
})
