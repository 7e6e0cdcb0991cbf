// Data folders of earlier builds, opened by this build: every row is read as before, new rows belong to the
// same series, and an opening that was interrupted at any point is completed by the next.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { delegate, tableSpec, temporaryFolders, withEngine } from '../../../tests/fixtures.ts'
import { seriesIdOf } from '../../../tests/otlp/series-id-model.ts'
import { attribute, hasAttribute } from '../attribute.ts'
import type { TelemetryEngine } from '../engine.ts'
import type { LocalEngine } from '../engine-files.ts'
import { TelemetryGate } from '../gate.ts'
import { type AttributeMap, type Cell, type FixtureRow, insertFixture } from '../row-fixture.ts'
import { raw, render, type Sql, sql } from '../sql.ts'
import { TenantReader } from '../tenant-reader.ts'
import { mapColumnExpression } from './attribute-pairs.ts'
import { bringUpToDate } from './bring-up-to-date.ts'
import { type FoundColumn, foundColumns } from './column-text.ts'
import { createSchema } from './create-schema.ts'
import { exporterDatabase } from './exporter-views.ts'
import { type OlderBuild, olderBuilds, olderValue } from './older-tables-fixture.ts'
import { type ColumnSpec, placeColumns, type TableName, type TableSpec, tables } from './tables.ts'

const place = { tenantId: 'acme', placement: 1 }
const monday = 1_767_571_200_000_000_000n
const partition = '1-20260105'
const swapTable = 'erasure_swap_1_otel_metrics_sum'
const swapped = tableSpec('otel_metrics_sum')

const maps: readonly AttributeMap[] = [
  {},
  { '': 'of no name', empty: '', both: '1' },
  { '': '' },
  { both: '2', pod: 'b', 'ünï code': '\u00fe\u00ff🙂', long: 'v'.repeat(300) },
  { 'k\u0000': "'\\\n" },
]

const newFolder = temporaryFolders()

const list = (columns: readonly string[]) => columns.map((name) => `\`${name}\``).join(', ')
const mapsOf = (table: TableSpec) =>
  table.columns.flatMap(({ map, name }) => (map === undefined ? [] : [{ ...map, pairs: name }]))

/**
 * Rows that take their attributes from {@link maps} in turn, one pair of maps for each row, with lists of up
 * to two items.
 */
function rowsOf(table: TableSpec): Record<string, Cell | bigint>[] {
  return maps.map((_, row) => {
    const cellOf = ({ name, type, map }: ColumnSpec, at: number): Cell | undefined => {
      const items = <T>(make: (item: number) => T) => Array.from({ length: row % 3 }, (_none, i) => make(i))
      if (map?.isList) return items((i) => maps[(row + at + i) % maps.length] ?? {})
      if (map !== undefined) return maps[(row + at) % maps.length]
      if (!/^(?:Exemplars|Events|Links)\./.test(name)) return undefined
      return items((i) => (type.includes('String') ? `t${i}` : type.includes('Float') ? i / 2 : `${i}.5`))
    }
    const cells = table.columns.flatMap((column, at) => {
      const cell = cellOf(column, at)
      return cell === undefined ? [] : [[column.map?.name ?? column.name, cell] as const]
    })
    const named = table.signal === 'metrics' ? { MetricName: 'm', ScopeName: 'meter' } : {}
    return {
      ...Object.fromEntries(cells),
      ...named,
      ServiceName: 'shop',
      [table.timeColumn]: monday + BigInt(row),
    }
  })
}

/** Creates a table of an earlier build under a name, with the rows of a table of this build, in two parts. */
async function makeOlder(
  engine: TelemetryEngine,
  { build, older }: { build: OlderBuild; older: TableSpec },
  name: string,
  source: string,
): Promise<void> {
  await engine.command(raw(build.textOf(older).replace(older.name, name)))
  const columns = [...placeColumns, ...older.columns]
  const names = list(columns.map((column) => column.name))
  const values = columns.map((column) => olderValue(older.name, column)).join(', ')
  for (const part of [`= ${at(0)}`, `> ${at(0)}`])
    await engine.command(
      raw(`INSERT INTO ${name} (${names}) SELECT ${values} FROM ${source} WHERE ${older.timeColumn} ${part}`),
    )
  const maps = mapsOf(tableSpec(older.name)).map((map) => map.name)
  const kinds = new Map((await columnsOf(engine, name)).map((column) => [column.name, column.kind]))
  for (const map of maps) assert.equal(kinds.get(map), isStoringMaps(build) ? '' : 'ALIAS')
  assert.deepEqual(await mapsOnDisk(engine, name, older), isStoringMaps(build) ? maps.sort() : [])
}

const isStoringMaps = ({ tables: older }: OlderBuild) =>
  older.some(({ columns }) => columns.some(({ type }) => type.startsWith('Map')))

const at = (row: number) => `fromUnixTimestamp64Nano(toInt64(${monday + BigInt(row)}), 'UTC')`

/**
 * Creates a folder of an earlier build, with rows in some of its tables and with the side tables of an
 * erasure.
 */
async function olderFolder(
  build: OlderBuild,
  isIn: (table: TableSpec) => boolean = () => true,
): Promise<string> {
  const folder = newFolder()
  await withEngine(folder, async (engine) => {
    for (const older of build.tables.filter(isIn)) {
      await insertFixture(engine, place, older.name, rowsOf(tableSpec(older.name)))
      await engine.command(raw(`RENAME TABLE ${older.name} TO newer`))
      await makeOlder(engine, { build, older }, older.name, 'newer')
      await engine.command(raw('DROP TABLE newer SYNC'))
    }
    await engine.command(raw(`CREATE TABLE ${swapTable} AS ${swapped.name}`))
    await engine.command(
      raw(`INSERT INTO ${swapTable} SELECT * FROM ${swapped.name} WHERE TimeUnix > ${at(0)}`),
    )
  })
  return folder
}

/** Names of maps whose files are in a part that is read. */
async function mapsOnDisk(
  engine: TelemetryEngine,
  name: string,
  { name: like }: TableSpec,
): Promise<string[]> {
  const found = await engine.select<{ column: string }>(
    sql`SELECT DISTINCT column FROM system.parts_columns WHERE database = currentDatabase() AND table = ${name} AND active ORDER BY column`,
  )
  const names = new Set(mapsOf(tableSpec(like)).map((map) => map.name))
  return found.flatMap(({ column }) => (names.has(column) ? [column] : []))
}

/**
 * Returns all rows of a table, in the order of {@link rowsOf}, as far as that names the columns; from its
 * view where it has one.
 */
async function storedRows(engine: TelemetryEngine, name: string, table: TableSpec): Promise<FixtureRow[]> {
  const hasView = name === table.name
  const columns = mapsOf(table).map((map) =>
    hasView ? `\`${map.name}\`` : `${mapColumnExpression(map, `\`${map.pairs}\``)} AS \`${map.name}\``,
  )
  const others = table.columns
    .map((column) => column.name)
    .filter((column) => /^(?:Exemplars|Events|Links)\./.test(column) && !/Attributes/.test(column))
  return engine.select<FixtureRow>(
    raw(
      `SELECT ${[...columns, list(others)].filter((text) => text !== '').join(', ')} FROM ${hasView ? `${exporterDatabase}.` : ''}${name} ORDER BY ${table.timeColumn}`,
    ),
  )
}

async function assertUpToDate(engine: LocalEngine, name: string, table: TableSpec): Promise<void> {
  const rows = rowsOf(table)
  const found = await storedRows(engine, name, table)
  assert.equal(found.length, rows.length, name)
  for (const [i, row] of found.entries())
    for (const [column, cell] of Object.entries(row))
      if (/Attributes/.test(column))
        assert.deepEqual(cell, rows[i]?.[column], `${name} ${column} of row ${i}`)
      else assert.equal((cell as Cell[]).length, i % 3)
  if (table.signal === 'metrics') {
    const series = await engine.select<{ id: string }>(
      raw(`SELECT SeriesId AS id FROM ${name} ORDER BY TimeUnix`),
    )
    const expected = rows.map(identityOf)
    assert.equal(new Set(expected).size, maps.length)
    assert.deepEqual(
      series.map(({ id }) => id),
      expected,
      name,
    )
  }
  await assertNoMapsOnDisk(engine, name, table)
}

const identityOf = (row: FixtureRow) => seriesIdOf(row as Readonly<Record<string, Cell>>)

/** What a reader returns for an attribute, of the record or its resource, and which rows it finds by it. */
async function assertFilters(engine: TelemetryEngine, table: TableSpec): Promise<void> {
  const own = mapsOf(table).find(({ isList, name }) => !isList && !/^(?:Resource|Scope)/.test(name))
  assert.ok(own)
  const reader = new TenantReader(engine, place, new TelemetryGate())
  const rows = rowsOf(table)
  const meantBy = (row: FixtureRow, key: string) => {
    const [mine, theirs] = [row[own.name], row.ResourceAttributes] as [AttributeMap, AttributeMap]
    return mine[key] ?? theirs[key] ?? ''
  }
  const ask = (columns: Sql, ...conditions: Sql[]) =>
    reader.rows<{ value: string }>(
      (from) =>
        sql`SELECT ${columns} AS value FROM ${from(table.name, ...conditions)} ORDER BY ${raw(table.timeColumn)}`,
    )
  for (const key of ['', 'empty', 'both', 'pod', 'ünï code', 'absent']) {
    const values = rows.map((row) => meantBy(row, key))
    const read = await ask(attribute(own.pairs, key))
    assert.deepEqual(
      read.map(({ value }) => value),
      values,
      `${table.name} ${key}`,
    )
    for (const value of new Set(values)) {
      const found = await ask(
        sql`toString(toUnixTimestamp64Nano(${raw(table.timeColumn)}))`,
        hasAttribute(own.pairs, key, value),
      )
      const expected = values.flatMap((one, i) => (one === value ? [String(monday + BigInt(i))] : []))
      assert.deepEqual(
        found.map((one) => one.value),
        expected,
        `${table.name} ${key}=${value}`,
      )
    }
  }
}

/**
 * Waits until an interrupted removal of columns has ended, which continues in the background, and until the
 * old files are gone.
 */
async function assertNoMapsOnDisk(engine: LocalEngine, name: string, table: TableSpec): Promise<void> {
  const until = async (isSo: () => Promise<boolean>) => {
    for (let poll = 0; !(await isSo()); poll++) assert.ok(poll < 10_000, `${name} still has files of before`)
  }
  await until(
    async () =>
      (await openMutations(engine, name)) === 0 && (await mapsOnDisk(engine, name, table)).length === 0,
  )
  // Dropping a partition, also one that does not exist, makes the engine remove all old files at once. Not
  // earlier, because it interrupts running changes, which begin again later each time.
  await engine.command(raw(`ALTER TABLE ${name} DROP PARTITION ID '0-00000000'`))
  await until(async () => {
    const active = await engine.select<{ part: string }>(
      sql`SELECT name AS part FROM system.parts WHERE table = ${name} AND active`,
    )
    const names = new Set(active.map(({ part }) => part))
    const parts = ((await engine.files.partNames([name])).get(name)?.parts ?? []).filter((entry) =>
      /^\d+-\d{8}_/.test(entry),
    )
    assert.ok(parts.length > 0)
    return parts.every((part) => names.has(part))
  })
  assert.deepEqual(await mapsOnDisk(engine, name, table), [])
}

/**
 * An engine that accepts a number of changes and then behaves as if the process had ended, with the next
 * change recorded and not carried out, or not even begun. Merges of that table then stop; `begun` waits for
 * them.
 */
function failingEngine(engine: TelemetryEngine, changes: number, isNextBegun: boolean) {
  let left = changes
  const said: string[] = []
  const begun: Promise<void>[] = []
  const failing: TelemetryEngine = {
    ...delegate(engine),
    async command(statement) {
      const text = render(statement)
      if (!text.startsWith('ALTER')) return engine.command(statement)
      said.push(text)
      if (left-- > 0) return engine.command(statement)
      if (isNextBegun) {
        const table = /^ALTER TABLE (\w+)/.exec(text)?.[1] ?? assert.fail()
        await engine.command(raw(`SYSTEM STOP MERGES ${table}`))
        const change = engine.command(statement)
        begun.push(change)
        // A change that fails, or has nothing to wait for, would never be seen as open.
        const ended = change.then(() => assert.fail(`Nothing delayed ${text}`))
        ended.catch(() => undefined)
        while ((await openMutations(engine, table)) === 0) await Promise.race([ended, undefined])
      }
      throw new Error('The process ended')
    },
  }
  return { failing, said, begun }
}

async function openMutations(engine: TelemetryEngine, table: string): Promise<number> {
  const found = await engine.select(
    sql`SELECT 1 FROM system.mutations WHERE table = ${table} AND NOT is_done`,
  )
  return found.length
}

/**
 * Copies the folder as it would be if the process were killed at this moment. The engine continues to remove
 * old parts, so a copy that has missed one is begun again: after a kill a part is whole or has another name.
 */
async function imageOf(folder: string): Promise<string> {
  for (let copies = 1; ; copies++) {
    const image = newFolder()
    try {
      // The synchronous twin ends the process where a folder disappears that it is about to enter; no catch
      // prevents that. Links are copied unchanged, or they would lead from the copy into the folder.
      await cp(folder, image, { recursive: true, verbatimSymlinks: true })
      return image
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || copies === 100) throw error
      rmSync(image, { recursive: true })
    }
  }
}

async function definitionsOf(engine: TelemetryEngine): Promise<unknown[]> {
  return engine.select(
    sql`SELECT table, position, name, type, default_kind, default_expression, compression_codec FROM system.columns
      WHERE database = currentDatabase() AND startsWith(table, 'otel_') ORDER BY table, position`,
  )
}

/** Its tables need every change that those of another build with maps need, and more. */
const oldest = olderBuilds.at(-1)

for (const build of olderBuilds) {
  describe(`a folder of a build with ${build.name}`, () => {
    test('returns the same, has the columns of a new one, and is changed once', async () => {
      await withEngine(await olderFolder(build), async (engine) => {
        for (const table of tables) {
          await assertUpToDate(engine, table.name, table)
          await assertFilters(engine, table)
        }
        const whole = await storedRows(engine, swapped.name, swapped)
        assert.deepEqual(await storedRows(engine, swapTable, swapped), whole.slice(1))
        assert.deepEqual(await columnsOf(engine, swapTable), await columnsOf(engine, swapped.name))
        const changed = await definitionsOf(engine)
        const { failing, said } = failingEngine(engine, 0, false)
        await createSchema(failing, { syncFiles: false })
        assert.deepEqual(said, [])
        for (const { name } of tables) await engine.command(raw(`DROP TABLE ${name} SYNC`))
        await createSchema(engine, { syncFiles: false })
        assert.deepEqual(changed, await definitionsOf(engine))
      })
    })

    test('accepts new rows of the same series, and swaps of an erasure that was prepared before', async () => {
      const rows = rowsOf(swapped)
      const ids = rows.map(identityOf)
      const found = async (engine: TelemetryEngine) => {
        const series = await engine.select<{ id: string; points: string }>(
          raw('SELECT SeriesId AS id, count() AS points FROM otel_metrics_sum GROUP BY id'),
        )
        return new Map(series.map(({ id, points }) => [id, Number(points)]))
      }
      const folder = await olderFolder(build, (table) => table.name === swapped.name)
      await withEngine(folder, async (engine) => {
        await insertFixture(engine, place, swapped.name, rows)
        await engine.command(raw(`OPTIMIZE TABLE ${swapped.name} FINAL`))
        assert.deepEqual(await found(engine), new Map(ids.map((id) => [id, 2])))
        await engine.command(
          raw(`ALTER TABLE ${swapped.name} REPLACE PARTITION ID '${partition}' FROM ${swapTable}`),
        )
        const left = await storedRows(engine, swapped.name, swapped)
        assert.deepEqual(
          left.map(({ Attributes }) => Attributes),
          rows.slice(1).map(({ Attributes }) => Attributes),
        )
        assert.deepEqual(await found(engine), new Map(ids.slice(1).map((id) => [id, 1])))
      })
    })

    if (isStoringMaps(build) && build !== oldest) return

    test('is brought up to date by the next opening where one was interrupted before any change', async () => {
      const folder = newFolder()
      const cases: Case[] = []
      await withEngine(folder, async (engine) => {
        for (const name of ['otel_metrics_sum', 'otel_traces'] as const) {
          await insertFixture(engine, place, name, rowsOf(tableSpec(name)))
          for (let changes = 0, isDone = false; !isDone; changes++) {
            assert.ok(changes < 10)
            const one = await cutShort(engine, build, name, cases.length, changes)
            cases.push(one)
            isDone = one.isDone
          }
        }
      })
      // Of two tables: every change of both interrupted, and once none.
      assert.ok(cases.length >= (isStoringMaps(build) ? 11 : 4), `${cases.length} cases`)
      await withEngine(folder, (engine) => assertMadeUpFor(engine, cases))
    })

    // Columns that are not stored are removed in one step, which can't be interrupted.
    for (const change of isStoringMaps(build) ? ['MATERIALIZE COLUMN', 'DROP COLUMN'] : []) {
      test(`is brought up to date by the next opening where the process ended during ${change}`, async () => {
        const folder = newFolder()
        const name = 'otel_metrics_sum'
        const { image, within } = await withEngine(folder, async (engine) => {
          await insertFixture(engine, place, name, rowsOf(swapped))
          let [changes, isThere] = [-1, false]
          while (!isThere) {
            assert.ok(++changes < 10)
            const { said } = await cutShort(engine, build, name, changes, changes)
            isThere = said.at(-1)?.includes(change) === true
          }
          const within = await cutShort(engine, build, name, 10, changes, true)
          try {
            const image = await imageOf(folder)
            assert.ok((await openMutations(engine, within.name)) > 0)
            return { image, within }
          } finally {
            // Also where the copy failed: closing waits for the change.
            await engine.command(raw(`SYSTEM START MERGES ${within.name}`))
            await Promise.all(within.begun)
          }
        })
        await withEngine(image, (engine) => assertMadeUpFor(engine, [within]))
      })
    }
  })
}

test('maps that a table computed are removed without a change to any part', async () => {
  const build = olderBuilds.find((one) => !isStoringMaps(one)) ?? assert.fail()
  await withEngine(newFolder(), async (engine) => {
    for (const table of tables) {
      await insertFixture(engine, place, table.name, rowsOf(table))
      const name = `case_0_${table.name}`
      await makeOlder(engine, { build, older: table }, name, table.name)
      const filesOf = () =>
        engine.select(
          sql`SELECT name, hash_of_all_files, modification_time FROM system.parts WHERE table = ${name} AND active ORDER BY name`,
        )
      const before = await filesOf()
      assert.equal(before.length, 2)
      await bringUpToDate(engine, { ...table, name: name as TableName }, await foundColumns(engine))
      assert.deepEqual(await filesOf(), before)
      assert.deepEqual(
        (await columnsOf(engine, name)).map((column) => column.name),
        [...placeColumns, ...table.columns].map((column) => column.name),
      )
    }
  })
})

async function columnsOf(engine: TelemetryEngine, table: string): Promise<readonly FoundColumn[]> {
  return (await foundColumns(engine)).get(table) ?? assert.fail(`no table ${table}`)
}

/** A table of an earlier build whose change was interrupted. */
interface Case {
  readonly name: string
  readonly table: TableSpec
  readonly said: readonly string[]
  readonly begun: readonly Promise<void>[]
  /** Whether there was nothing left to interrupt. */
  readonly isDone: boolean
}

async function cutShort(
  engine: TelemetryEngine,
  build: OlderBuild,
  like: TableName,
  number: number,
  changes: number,
  isNextBegun = false,
): Promise<Case> {
  const table = tableSpec(like)
  const older = build.tables.find(({ name }) => name === like) ?? assert.fail()
  // The schema treats a table whose name ends with that of one of its own as a side table of an erasure.
  const name = `case_${number}_${like}`
  await makeOlder(engine, { build, older }, name, like)
  const { failing, said, begun } = failingEngine(engine, changes, isNextBegun)
  const spec = { ...table, name: name as TableName }
  const error = await bringUpToDate(failing, spec, await foundColumns(engine)).catch(
    (thrown: Error) => thrown,
  )
  if (error instanceof Error) assert.equal(error.message, 'The process ended')
  return { name, table, said, begun, isDone: !(error instanceof Error) }
}

async function assertMadeUpFor(engine: LocalEngine, cases: readonly Case[]): Promise<void> {
  for (const { name, table, said } of cases) {
    try {
      await assertUpToDate(engine, name, table)
    } catch (cause) {
      throw new Error(`Cut short at the last of: ${said.join('; ')}`, { cause })
    }
  }
}
