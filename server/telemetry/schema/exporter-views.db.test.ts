// The exporter's tables as other tools read them: its columns, types, order and values for any attributes, at
// every start, with nothing left of views that were recreated.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { delegate, tableSpec, temporaryFolders, withEngine } from '../../../tests/fixtures.ts'
import { EngineError, type TelemetryEngine } from '../engine.ts'
import { type AttributeMap, type Cell, type FixtureRow, insertFixture } from '../row-fixture.ts'
import { raw, render, sql } from '../sql.ts'
import { createSchema } from './create-schema.ts'
import { exporterDatabase } from './exporter-views.ts'
import { buildWithMaps } from './older-tables-fixture.ts'
import { type ColumnSpec, type TableSpec, tables } from './tables.ts'

const newFolder = temporaryFolders()

const place = { tenantId: 'acme', placement: 1 }
const monday = 1_767_571_200_000_000_000n
const viewOf = ({ name }: { name: string }) => `${exporterDatabase}.${name}`

const maps: readonly AttributeMap[] = [
  {},
  { a: '1' },
  { '': 'of no name', empty: '', 'k\u0000': '\'\\\n"' },
  { '': '' },
  { 'ünï code': '\u00fe\u00ff🙂', '\\xfe': '\\xff', long: 'v'.repeat(300) },
]

/** Sets of attributes by row: one map after the other, and lists of none, one and two of them. */
function attributesOf(table: TableSpec, row: number): Record<string, AttributeMap | AttributeMap[]> {
  const listOf = (at: number) =>
    Array.from({ length: row % 3 }, (_, i) => maps[(row + at + i) % maps.length] ?? {})
  return Object.fromEntries(
    table.columns.flatMap(({ map }, at) => {
      if (map === undefined) return []
      return [[map.name, map.isList ? listOf(at) : (maps[(row + at) % maps.length] ?? {})]]
    }),
  )
}

/** Lists in one row have the same length. */
function rowOf(table: TableSpec, row: number): FixtureRow {
  const beside = table.columns.flatMap(({ name, type, map }) => {
    if (map !== undefined || !/^(?:Exemplars|Events|Links)\./.test(name)) return []
    const item: Cell = type.includes('String')
      ? `t${row}`
      : type.includes('Float')
        ? row / 2
        : `${row}.000000005`
    return [[name, Array<Cell>(row % 3).fill(item)] as const]
  })
  return {
    ...Object.fromEntries(beside),
    ...attributesOf(table, row),
    ServiceName: 'shop',
    [table.timeColumn]: monday + BigInt(row),
  }
}

async function assertAnswers(engine: TelemetryEngine, table: TableSpec): Promise<void> {
  const found = await engine.select<Record<string, Cell>>(
    raw(`SELECT * FROM ${viewOf(table)} ORDER BY ${table.timeColumn}`),
  )
  const stored = await engine.select<Record<string, Cell>>(
    raw(`SELECT * FROM ${table.name} ORDER BY ${table.timeColumn}`),
  )
  assert.equal(found.length, maps.length)
  for (const [i, row] of found.entries()) {
    const expected = table.columns.map(({ name, map }) =>
      map === undefined ? [name, stored[i]?.[name]] : [map.name, attributesOf(table, i)[map.name]],
    )
    const placed = { Placement: place.placement, TenantId: place.tenantId }
    assert.deepEqual(row, { ...placed, ...Object.fromEntries(expected) }, `${table.name} row ${i}`)
  }
}

/** An engine that also records its commands. */
function listeningEngine(engine: TelemetryEngine) {
  const [said, asked]: [string[], string[]] = [[], []]
  const listening: TelemetryEngine = {
    ...delegate(engine),
    select: (statement, limits) => {
      asked.push(render(statement))
      return engine.select(statement, limits)
    },
    command: (statement) => {
      said.push(render(statement))
      return engine.command(statement)
    },
  }
  return { listening, said, asked }
}

/** What a start executes besides creating tables, and what it reads about views. */
async function startAgain(engine: TelemetryEngine): Promise<{ said: string[]; asked: string[] }> {
  const { listening, said, asked } = listeningEngine(engine)
  await createSchema(listening, { syncFiles: false })
  return {
    said: said.filter((text) => !text.startsWith('CREATE TABLE IF NOT EXISTS ')),
    asked: asked.filter((text) => text.includes(`'${exporterDatabase}'`)),
  }
}

const filesIn = (folder: string) => readdirSync(join(folder, 'engine'), { recursive: true }).length

test('each view has the columns, types and order of the exporter’s table', async () => {
  await withEngine(newFolder(), async (engine) => {
    const names = await engine.select<{ name: string }>(
      sql`SELECT name FROM system.tables WHERE database = ${exporterDatabase} AND engine = 'View' ORDER BY name`,
    )
    assert.deepEqual(
      names.map(({ name }) => name),
      tables.map(({ name }) => name).toSorted(),
    )
    for (const older of buildWithMaps.tables) {
      await engine.command(raw(buildWithMaps.textOf(older).replace(older.name, 'older')))
      const columnsOf = (database: string, table: string) =>
        engine.select<Pick<ColumnSpec, 'name' | 'type'>>(
          sql`SELECT position, name, type FROM system.columns WHERE database = ${database} AND table = ${table} ORDER BY position`,
        )
      const columns = await columnsOf(exporterDatabase, older.name)
      assert.deepEqual(columns, await columnsOf('default', 'older'))
      assert.deepEqual(
        columns.flatMap(({ name, type }) => (type.includes('Map') ? [name] : [])),
        tableSpec(older.name).columns.flatMap(({ map }) => (map === undefined ? [] : [map.name])),
      )
      await engine.command(raw('DROP TABLE older SYNC'))
    }
  })
})

test('SELECT * returns the rows of the exporter, with maps, for any keys and values, and after a restart', async () => {
  const folder = newFolder()
  await withEngine(folder, async (engine) => {
    for (const table of tables) {
      const rows = maps.map((_, row) => rowOf(table, row))
      await insertFixture(engine, place, table.name, rows)
      await assertAnswers(engine, table)
    }
  })
  await withEngine(folder, async (engine) => {
    for (const table of tables) await assertAnswers(engine, table)
    assert.deepEqual((await startAgain(engine)).said, [])
  })
})

test('a statement can read one value of a map, and finds through the view what it finds in the table', async () => {
  await withEngine(newFolder(), async (engine) => {
    const logs = tableSpec('otel_logs')
    const bodies = (tenantId: string) =>
      maps.map((LogAttributes, i) => ({ Timestamp: monday + BigInt(i), Body: tenantId, LogAttributes }))
    await insertFixture(engine, place, logs.name, bodies('ours'))
    await insertFixture(engine, { tenantId: 'other', placement: 2 }, logs.name, bodies('theirs'))
    const own = "TenantId = 'acme' AND Placement = 1"
    const one = `SELECT Body FROM ${viewOf(logs)} WHERE ${own} AND LogAttributes['ünï code'] = '\u00fe\u00ff🙂'`
    assert.deepEqual(await engine.select(raw(one)), [{ Body: 'ours' }])
    const plan = await engine.select<{ explain: string }>(raw(`EXPLAIN indexes = 1, header = 1 ${one}`))
    const text = plan.map(({ explain }) => explain).join('\n')
    assert.match(text, /Parts: 1\/2/)
    assert.match(text, /PrimaryKey\s+Keys:\s+TenantId/)
    assert.doesNotMatch(text, /ResourceAttributesPairs/)
  })
})

test('views return what is in their tables and nothing else', async () => {
  await withEngine(newFolder(), async (engine) => {
    for (const table of tables) {
      await insertFixture(engine, place, table.name, [rowOf(table, 0)])
      assert.equal((await engine.select(raw(`SELECT 1 FROM ${viewOf(table)}`))).length, 1)
      await engine.command(raw(`ALTER TABLE ${table.name} DROP PARTITION ID '1-20260105'`))
      assert.deepEqual(await engine.select(raw(`SELECT * FROM ${viewOf(table)}`)), [])
      await assert.rejects(engine.command(raw(`INSERT INTO ${viewOf(table)} SELECT * FROM ${viewOf(table)}`)))
    }
  })
})

test('a start with nothing to do reads about views once; missing and outdated views are created', async () => {
  const folder = newFolder()
  await withEngine(folder, async (engine) => {
    const rows = maps.map((_, row) => rowOf(tableSpec('otel_traces'), row))
    await insertFixture(engine, place, 'otel_traces', rows)
    const { said, asked } = await startAgain(engine)
    assert.deepEqual([said, asked.length], [[], 1])

    // Dropping the first view creates a folder for dropped objects.
    const files: number[] = []
    for (let round = 0; round < 5; round++) {
      await engine.command(raw(`DROP VIEW ${exporterDatabase}.otel_traces SYNC`))
      await engine.command(
        raw(
          `CREATE VIEW ${exporterDatabase}.otel_traces AS SELECT TraceId FROM default.otel_traces COMMENT 'earlier'`,
        ),
      )
      const made = (await startAgain(engine)).said.map((text) => /^\w+ \w+/.exec(text)?.[0])
      assert.deepEqual(made, ['CREATE DATABASE', 'DROP VIEW', 'CREATE VIEW'])
      files.push(filesIn(folder))
      await assertAnswers(engine, tableSpec('otel_traces'))
    }
    await engine.command(raw(`DROP VIEW ${exporterDatabase}.otel_traces SYNC`))
    assert.equal((await startAgain(engine)).said.length, 3)
    await assertAnswers(engine, tableSpec('otel_traces'))
    assert.deepEqual(new Set([...files, filesIn(folder)]), new Set([files[0]]))

    await engine.command(raw(`DROP DATABASE ${exporterDatabase} SYNC`))
  })
  await withEngine(folder, (engine) => assertAnswers(engine, tableSpec('otel_traces')))
})

test('a foreign table with the name of a view is left unchanged, and the start is refused', async () => {
  await withEngine(newFolder(), async (engine) => {
    await engine.command(raw(`DROP VIEW ${exporterDatabase}.otel_logs SYNC`))
    await engine.command(
      raw(`CREATE TABLE ${exporterDatabase}.otel_logs (own String) ENGINE = MergeTree ORDER BY ()`),
    )
    await engine.command(raw(`INSERT INTO ${exporterDatabase}.otel_logs VALUES ('kept')`))
    await assert.rejects(startAgain(engine), EngineError)
    assert.deepEqual(await engine.select(raw(`SELECT * FROM ${exporterDatabase}.otel_logs`)), [
      { own: 'kept' },
    ])
  })
})
