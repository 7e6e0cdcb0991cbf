// What a flush removes from the files of PostgreSQL, what prevents it, and which rights it needs. Values are
// random, because PostgreSQL compresses long texts and a search of its files would miss them.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import type { Control } from '../database.ts'
import { derivedTables } from '../derived-tables.ts'
import { dialectOf } from '../dialect.ts'
import { ErasedBytesKept } from '../erased-flush.ts'
import { migrate } from '../migrate.ts'
import { transact } from '../transaction.ts'

const planes = {
  shared: await openSharedPostgresPlane(),
  /** Its tables belong to a role without other rights. */
  ordinary: await openSharedPostgresPlane(false),
}
const { shared: plane, ordinary } = planes
const { control } = plane
after(async () => {
  await plane.close()
  await ordinary.close()
})

const newCanary = () => randomBytes(24).toString('hex')
const flush = (of: Control, tables = derivedTables) => dialectOf(of).flushErased(of, tables)
const run = (of: Control, statement: string) => sql.raw(statement).execute(of)

function keptBecause(reason: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof ErasedBytesKept && reason.test(error.message)
}

/** A version of an anomaly for each organisation, so many that statistics of the column have their texts. */
async function insertVersions(of: Control, tenantId: string, record: string): Promise<void> {
  const versions = Array.from({ length: 20 }, (_, version) => ({
    anomaly_id: `anm_${tenantId}`,
    version,
    tenant_id: tenantId,
    detector_id: 'det_1',
    holds: '[]',
    record,
    replaced_at_ms: 1,
    replaced_by_kind: 'system' as const,
    replaced_by_id: 'detection',
    replaced_by_name: 'detection',
  }))
  await of.insertInto('held_anomaly_versions').values(versions).execute()
}

const eraseVersions = (of: Control, tenantId: string) =>
  of.deleteFrom('held_anomaly_versions').where('tenant_id', '=', tenantId).execute()

/** As PostgreSQL does by itself after some time, and as a database of an earlier version let it. */
async function collectStatistics(of: Control): Promise<void> {
  await run(of, 'alter table held_anomaly_versions alter column record set statistics -1')
  await run(of, 'analyze held_anomaly_versions')
}

test('a flush fails while a snapshot that never read the table keeps its deleted rows, and succeeds after it', async () => {
  const canary = newCanary()
  await dialectOf(control).snapshot(plane.another(), async (older) => {
    await sql`select 1`.execute(older)
    await insertVersions(control, 'acme', canary)
    assert.notDeepEqual(plane.filesWith(canary), [])
    await eraseVersions(control, 'acme')
    await assert.rejects(flush(control), keptBecause(/may still contain erased rows: a transaction/))
    assert.notDeepEqual(plane.filesWith(canary), [])
  })
  await flush(control)
  assert.deepEqual(plane.filesWith(canary), [])
})

test('a flush ends with an error where another transaction uses a table', async () => {
  await transact(plane.another(), async (reader) => {
    await reader.selectFrom('anomalies').select('id').execute()
    await assert.rejects(flush(control), keptBecause(/is busy: somebody else uses the tables/))
  })
  await flush(control)
})

test('a table that was not named is not rewritten', async () => {
  const fileOf = async (table: string) => {
    const { rows } = await sql<{
      file: number
    }>`select pg_relation_filenode(${table}::text::regclass) as file`.execute(control)
    return rows[0]?.file
  }
  const [instance, anomalies] = [await fileOf('instance'), await fileOf('anomalies')]
  await flush(control, ['anomalies'])
  assert.equal(await fileOf('instance'), instance)
  assert.notEqual(await fileOf('anomalies'), anomalies)
})

test('the planner collects no values of derived columns, in a new database and in one of an earlier version', async () => {
  const collected = async () => {
    const { rows } = await sql<{ column: string }>`
      select attname as column from pg_stats where tablename = 'held_anomaly_versions' order by attname`.execute(
      control,
    )
    return rows.map(({ column }) => column)
  }
  const ids = ['anomaly_id', 'detector_id', 'replaced_by_id', 'tenant_id']
  const [erased, kept] = [newCanary(), newCanary()]
  await insertVersions(control, 'acme', erased)
  await insertVersions(control, 'globex', kept)
  await run(control, 'analyze')
  assert.deepEqual(await collected(), ids)

  await collectStatistics(control)
  assert.deepEqual(await collected(), [...ids, 'record'].toSorted())
  await eraseVersions(control, 'acme')
  await run(control, 'vacuum full held_anomaly_versions')
  assert.notDeepEqual(plane.filesWith(erased), [], 'the statistics have it although the table has not')
  await flush(control)
  assert.deepEqual(plane.filesWith(erased), [])
  assert.notDeepEqual(plane.filesWith(kept), [], 'the row of the neighbour')
  assert.deepEqual(await collected(), ids)
  await run(control, 'analyze')
  assert.deepEqual(await collected(), ids)
})

test('a role that owns nothing but its tables can flush them, and the error names a missing right', async () => {
  const role = `ordinary_${process.pid}`
  await run(ordinary.control, `create role ${role} login`)
  await run(ordinary.control, `grant create on schema public to ${role}`)
  const service = ordinary.as(role)
  await migrate(service)
  const [erased, kept] = [newCanary(), newCanary()]
  await insertVersions(service, 'acme', erased)
  await insertVersions(service, 'globex', kept)
  await run(ordinary.control, 'analyze')
  assert.notDeepEqual(ordinary.filesWith(erased), [])
  await eraseVersions(service, 'acme')
  await flush(service)
  assert.deepEqual(ordinary.filesWith(erased), [])
  assert.notDeepEqual(ordinary.filesWith(kept), [], 'the row of the neighbour')

  await collectStatistics(service)
  await eraseVersions(service, 'globex')
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(flush(service), keptBecause(/only the owner of the database can remove/))
  }
  await run(ordinary.control, `alter database ${ordinary.database} owner to ${role}`)
  await flush(service)
  assert.deepEqual(ordinary.filesWith(kept), [])

  await run(ordinary.control, `alter table anomalies owner to current_user`)
  await assert.rejects(flush(service), keptBecause(new RegExp(`alter table anomalies owner to "${role}"`)))
})
