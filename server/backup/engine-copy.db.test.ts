// The engine's copy across versions of the tables: the copy of an earlier build is restored unchanged, and
// the next opening of the folder brings its tables up to date.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { AppError } from '../core/app-error.ts'
import { systemClock } from '../core/clock.ts'
import { openChdb } from '../telemetry/chdb.ts'
import { EngineError, type TelemetryEngine } from '../telemetry/engine.ts'
import { EngineFolder, type LocalEngine } from '../telemetry/engine-files.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { createTableText } from '../telemetry/schema/create-schema.ts'
import { exporterDatabase } from '../telemetry/schema/exporter-views.ts'
import {
  type OlderBuild,
  olderBuilds,
  olderText,
  olderValue,
} from '../telemetry/schema/older-tables-fixture.ts'
import {
  type ColumnSpec,
  placeColumns,
  type TableName,
  type TableSpec,
  tables,
} from '../telemetry/schema/tables.ts'
import { raw } from '../telemetry/sql.ts'
import { restoreEngine } from './engine-copy.ts'
import { BackupError, isReadableSchema, telemetrySchemaHash } from './manifest.ts'

const root = temporaryFolder()
after(() => rmSync(root, { recursive: true, force: true }))

const place = { tenantId: 'acme', placement: 0 }
const attributes = [{ pod: 'a', '': 'ünï' }, {}]
const lists = { 'Exemplars.TimeUnix': ['1', '2'], 'Exemplars.Value': [0, 1], 'Exemplars.SpanId': ['s', 't'] }

/** A row for each form of attributes, by table. */
const rows: readonly (readonly [TableName, FixtureRow])[] = [
  [
    'otel_metrics_gauge',
    {
      ...{ MetricName: 'm', TimeUnix: 10n ** 18n, ServiceName: 'shop', Value: 1.5 },
      ...{ Attributes: { pod: 'a' }, ResourceAttributes: { host: 'h' }, ScopeAttributes: { '': '' } },
      ...{ ...lists, 'Exemplars.TraceId': ['x', 'y'], 'Exemplars.FilteredAttributes': attributes },
    },
  ],
  ['otel_logs', { Timestamp: 10n ** 18n, Body: 'said', LogAttributes: { route: '/pay' } }],
  [
    'otel_traces',
    {
      ...{ Timestamp: 10n ** 18n, SpanName: 'pay', SpanAttributes: { route: '/pay' } },
      ...{ 'Events.Timestamp': ['1', '2'], 'Events.Name': ['e', 'f'], 'Events.Attributes': attributes },
    },
  ],
]

/** Returns the exporter's columns from the views, and the identities of series. */
async function found(engine: TelemetryEngine): Promise<unknown[]> {
  const all: unknown[] = []
  for (const [name] of rows)
    all.push(...(await engine.select(raw(`SELECT * FROM ${exporterDatabase}.${name}`))))
  return all
}

async function columnsOf(engine: TelemetryEngine): Promise<string[]> {
  const columns = await engine.select<{ name: string }>(
    raw('SELECT name FROM system.columns WHERE database = currentDatabase() ORDER BY table, position'),
  )
  return columns.map(({ name }) => name)
}

async function withEngine<T>(name: string, work: (engine: LocalEngine) => Promise<T>): Promise<T> {
  const engine = await openChdb({
    maxMemoryBytes: 2 ** 30,
    folder: join(root, name),
    backupFolder: join(root, 'backup'),
  })
  try {
    return await work(engine)
  } finally {
    await engine.close()
  }
}

/** Inserts the same rows into the tables of another build. */
async function moveInto(engine: TelemetryEngine, build: OlderBuild, older: TableSpec): Promise<void> {
  await engine.command(raw(`RENAME TABLE ${older.name} TO newer`))
  await engine.command(raw(build.textOf(older)))
  const list = (of: (column: ColumnSpec) => string) => [...placeColumns, ...older.columns].map(of).join(', ')
  const [names, values] = [
    list(({ name }) => `\`${name}\``),
    list((column) => olderValue(older.name, column)),
  ]
  await engine.command(raw(`INSERT INTO ${older.name} (${names}) SELECT ${values} FROM newer`))
  await engine.command(raw('DROP TABLE newer SYNC'))
}

const own: OlderBuild = { name: 'all that this one has', tables, textOf: createTableText }

for (const [at, build] of [own, ...olderBuilds].entries()) {
  test(`telemetry of a build with ${build.name} is readable and is restored`, async () => {
    const hash = createHash('sha256').update(olderText(build), 'utf8').digest('hex')
    assert.ok(isReadableSchema(hash))
    assert.equal(hash === telemetrySchemaHash(), at === 0)
    const [source, target] = [`source-${at}`, `target-${at}`]
    const backupId = `bak_${String(at).repeat(26)}`
    const before = await withEngine(source, async (engine) => {
      for (const [name, row] of rows) await insertFixture(engine, place, name, [row])
      const answers = await found(engine)
      if (at > 0) for (const older of build.tables) await moveInto(engine, build, older)
      await engine.files.copyTo('engine', backupId, systemClock, new AbortController().signal)
      return answers
    })
    const columns = await withEngine(target, async (engine) => {
      const fresh = await columnsOf(engine)
      await restoreEngine(engine)
      assert.equal(JSON.stringify(await columnsOf(engine)) === JSON.stringify(fresh), at === 0)
      return fresh
    })
    await withEngine(target, async (engine) => {
      assert.equal(before.length, rows.length)
      assert.deepEqual(await found(engine), before)
      assert.deepEqual(await columnsOf(engine), columns)
    })
    rmSync(join(root, 'backup'), { recursive: true })
  })
}

test('a copy whose status can not be read for a moment is waited for', async () => {
  await withEngine('unread', async (engine) => {
    await insertFixture(engine, place, 'otel_logs', [{ Timestamp: 10n ** 18n, Body: 'kept' }])
    let failures = 0
    const busy: Pick<TelemetryEngine, 'command' | 'select'> = {
      command: (statement) => engine.command(statement),
      async select(statement, limits) {
        if (failures++ < 2) throw new EngineError('The engine is busy', {})
        return engine.select(statement, limits)
      },
    }
    const files = new EngineFolder(
      busy,
      async () => {},
      () => false,
    )
    await files.copyTo('engine', 'bak_unread', systemClock, new AbortController().signal)
    assert.ok(failures > 2)
    const [copy] = await engine.select<{ status: string }>(
      raw("SELECT status FROM system.backups WHERE id = 'bak_unread'"),
    )
    assert.equal(copy?.status, 'BACKUP_CREATED')
  })
  rmSync(join(root, 'backup'), { recursive: true })
})

test('a copy is not waited for once the engine is closed', async () => {
  const closed: Pick<TelemetryEngine, 'command' | 'select'> = {
    command: async () => {},
    select: async () => Promise.reject(new AppError('not_ready')),
  }
  const files = new EngineFolder(
    closed,
    async () => {},
    () => false,
  )
  const { signal } = new AbortController()
  await assert.rejects(files.copyTo('engine', 'bak_closed', systemClock, signal), { code: 'not_ready' })
})

test('a name that would become another statement is refused before the engine sees it', async () => {
  await withEngine('names', async ({ files }) => {
    const { signal } = new AbortController()
    const hostile = "x') ASYNC; DROP TABLE otel_logs --"
    await assert.rejects(files.copyTo(hostile, 'bak_1', systemClock, signal), /Not a name of a copy/)
    await assert.rejects(files.copyTo('engine', hostile, systemClock, signal), /Not a name of a copy/)
    await assert.rejects(files.restoreFrom(hostile), /Not a name of a copy/)
  })
})

test('nothing is restored into tables with rows, and tables of a foreign build are not readable', async () => {
  assert.ok(!isReadableSchema('other'))
  await withEngine('full', async (engine) => {
    await insertFixture(engine, place, 'otel_logs', [{ Timestamp: 10n ** 18n, Body: 'kept' }])
    await assert.rejects(restoreEngine(engine), BackupError)
    const [row] = await engine.select<{ Body: string }>(raw('SELECT Body FROM otel_logs'))
    assert.equal(row?.Body, 'kept')
  })
})

test('a crafted copy is refused: with a foreign table, or with a definition that calls what ours do not call', async () => {
  const hostile = [
    ['CREATE TABLE mine (x String) ENGINE = MergeTree ORDER BY x', /has a table mine/],
    ['ALTER TABLE otel_logs ADD COLUMN x String DEFAULT hostName()', /otel_logs .* hostName/],
    ['ALTER TABLE otel_logs ADD COLUMN x String DEFAULT `hostName`()', /otel_logs .* hostName/],
  ] as const
  for (const [change, sentence] of hostile) {
    await withEngine('crafted', async (engine) => {
      await engine.command(raw(change))
      const { signal } = new AbortController()
      await engine.files.copyTo('engine', `bak_${'0'.repeat(26)}`, systemClock, signal)
    })
    await withEngine('restored', (engine) =>
      assert.rejects(
        restoreEngine(engine),
        (error) => error instanceof BackupError && sentence.test(error.message),
      ),
    )
    for (const name of ['backup', 'crafted', 'restored']) rmSync(join(root, name), { recursive: true })
  }
})
