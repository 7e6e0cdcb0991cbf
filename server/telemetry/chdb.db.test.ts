// What the library leaves to its user: one process per folder, a bad statement is an error and the process
// continues, closing waits, and a folder of another version is refused. Other processes are real ones.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { getPriority, platform } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { drainPending, Session } from 'chdb'
import {
  batchOf,
  encodeRows,
  insertRows,
  tableSpec,
  temporaryFolders,
  withEngine,
} from '../../tests/fixtures.ts'
import { AppError } from '../core/app-error.ts'
import { openChdb } from './chdb.ts'
import { EngineError, type TelemetryEngine } from './engine.ts'
import { insertFixture } from './row-fixture.ts'
import { mapOfPairs } from './schema/attribute-pairs.ts'
import { insertColumns } from './schema/create-schema.ts'
import { textWithStatistics } from './schema/older-tables-fixture.ts'
import { seriesIdExpression } from './schema/series-id.ts'
import { tables, tablesOf } from './schema/tables.ts'
import { raw, sql, strings } from './sql.ts'

const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

const newFolder = temporaryFolders()

const open = (folder: string) => openChdb({ folder, maxMemoryBytes: 2 ** 30 })
const place = { tenantId: 'acme', placement: 1 }
const monday = 1_767_571_200_000_000_000n
const countLogs = async (engine: TelemetryEngine) =>
  Number((await engine.select<{ rows: string }>(sql`select count() as rows from otel_logs`))[0]?.rows)

/**
 * Starts another process that opens the folder, reports success or the error, and runs until its input ends.
 */
async function openElsewhere(
  folder: string,
  command: string | null = null,
): Promise<{ child: ChildProcess; said: string }> {
  const program = `
    import { openChdb } from ${JSON.stringify(new URL('./chdb.ts', import.meta.url).href)}
    try {
      const engine = await openChdb({ folder: ${JSON.stringify(folder)}, maxMemoryBytes: ${2 ** 30}, command: ${JSON.stringify(command)} })
      process.stdout.write('open\\n')
      for await (const _ of process.stdin);
      await engine.close()
    } catch (error) {
      process.stdout.write(error.name + ': ' + error.message + '\\n')
    }`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  let said = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    said += chunk
    if (said.includes('\n')) break
  }
  return { child, said }
}

test('a second process on the folder is refused with a sentence, and the first continues', async () => {
  const folder = newFolder()
  await withEngine(folder, async (engine) => {
    await insertRows(engine, place, batchOf('otel_logs', [monday]))
    const { said } = await openElsewhere(folder)
    assert.equal(
      said,
      `EngineError: Another process uses the data folder ${folder}. Stop it, or give this one its own folder with LETHE_DATA_DIR.\n`,
    )
    assert.equal(await countLogs(engine), 1)
  })
})

test('a start waits for a command that works in the folder, and logs which one', async () => {
  const folder = newFolder()
  const elsewhere = await openElsewhere(folder, 'lethe backup create')
  assert.equal(elsewhere.said, 'open\n')
  const warnings: unknown[] = []
  const warn = (lockOwner: unknown) => {
    warnings.push(lockOwner)
    elsewhere.child.stdin?.end()
  }
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30, logger: { warn, error: assert.fail } })
  await engine.close()
  assert.deepEqual(warnings, [{ pid: elsewhere.child.pid, command: 'lethe backup create' }])
})

test('threads that run statements and merges have a lower priority than the event loop', {
  skip: platform() === 'linux' ? false : 'only Linux has a priority for each thread',
}, async () => {
  const own = getPriority()
  await withEngine(newFolder(), async (engine) => {
    let isOver = false
    const read = engine
      .select(sql`SELECT max(cityHash64(number)) AS most FROM numbers(200000000)`)
      .finally(() => {
        isOver = true
      })
    // The highest of each name: a thread that has no statement may have the process's own again.
    const seen = new Map<string, number>()
    while (!isOver) {
      for (const { name, nice } of threadsOf()) seen.set(name, Math.max(nice, seen.get(name) ?? nice))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await read
    const expected = Math.min(19, own + 5)
    assert.equal(seen.get('libuv-worker'), expected)
    assert.equal(seen.get('QueryPullPipeEx'), expected, [...seen.keys()].join())
    assert.equal(seen.get('MergeMutate'), expected, 'also in a new folder')
    assert.equal(seen.get('V8Worker'), own)
    assert.equal(getPriority(), own)
  })
})

/** The kernel's names and priorities of the threads of this process. */
function threadsOf() {
  return readdirSync('/proc/self/task').flatMap((id) => {
    try {
      const name = readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim()
      return [{ name, nice: getPriority(Number(id)) }]
    } catch {
      return []
    }
  })
}

// The limit is for the case that the engine's handlers remain: they wait 300 s.
test('a process in which native code aborts ends at once and by that signal', {
  timeout: 60_000,
}, async () => {
  const { child, said } = await openElsewhere(newFolder())
  assert.equal(said, 'open\n')
  child.kill('SIGABRT')
  assert.deepEqual(await once(child, 'exit'), [null, 'SIGABRT'])
})

test('a folder is free again when its process has closed, and when its process was killed', async () => {
  const folder = newFolder()
  const first = await openElsewhere(folder)
  assert.equal(first.said, 'open\n')
  await assert.rejects(open(folder), /Another process uses the data folder/)
  const killed = once(first.child, 'exit')
  first.child.kill('SIGKILL')
  await killed

  const second = await openElsewhere(folder)
  assert.equal(second.said, 'open\n')
  const ended = once(second.child, 'exit')
  second.child.stdin?.end()
  assert.deepEqual(await ended, [0, null])

  await withEngine(folder, async (engine) => assert.equal(await countLogs(engine), 0))
})

test('committed rows are there after closing and opening again', async () => {
  const folder = newFolder()
  await withEngine(folder, (engine) => insertRows(engine, place, batchOf('otel_logs', [monday, monday + 1n])))
  await withEngine(folder, async (engine) => assert.equal(await countLogs(engine), 2))
})

test('statements that cost too much fail with an error that says so, and the process continues', async () => {
  await withEngine(newFolder(), async (engine) => {
    const cheap = { maxSeconds: 1, maxMemoryBytes: 64 * 2 ** 20 }
    for (const statement of [
      sql`select count() as endless from numbers(1000000000000) where sipHash64(number) = 1`,
      sql`select length(groupArray(number)) as large from numbers(100000000)`,
    ]) {
      await assert.rejects(engine.select(statement, cheap), (error) => {
        assert.ok(error instanceof AppError)
        assert.equal(error.code, 'query_too_expensive')
        // The engine's message stays inside; the sentence is that of the catalogue.
        assert.doesNotMatch(error.message, /numbers|Exception/)
        return true
      })
    }
    assert.equal(await countLogs(engine), 0)
  })
})

test('a statement writes nothing that it reads to the disk, and files of a killed process are removed at the start', async () => {
  const folder = newFolder()
  const temporary = join(folder, 'engine', 'tmp')
  await withEngine(folder, async (engine) => {
    const bounds = await engine.select<{ value: string }>(
      sql`select value from system.settings where match(name, '^max_bytes_(ratio_)?before_external_(group_by|sort|join)$')`,
    )
    assert.deepEqual(
      bounds.map(({ value }) => value),
      ['0', '0', '0', '0', '0', '0'],
    )
  })
  writeFileSync(join(temporary, 'tmp01'), 'a log record')
  await withEngine(folder, async () => assert.deepEqual(readdirSync(temporary), []))
})

test('statements and inserts that fail are errors with the engine’s number, and the process continues', async () => {
  await withEngine(newFolder(), async (engine) => {
    for (const [statement, code] of [
      [raw('this is no sql'), 62],
      [raw('select * from no_such_table'), 60],
      [raw('select no_such_column from otel_logs'), 47],
      [raw("select throwIf(1, 'on purpose')"), 395],
      [sql`select ${'x'}::UInt8`, 6],
    ] as const) {
      await assert.rejects(engine.select(statement), (error) => {
        assert.ok(error instanceof EngineError)
        assert.equal(error.code, code, error.message)
        return true
      })
    }
    await assert.rejects(engine.command(raw('drop table no_such_table')), EngineError)
    const columns = insertColumns(tableSpec('otel_logs'))
    const [{ bytes } = { bytes: Buffer.alloc(0) }] = encodeRows(place, [batchOf('otel_logs', [monday])])
    const behind = Buffer.from('x')
    for (const rows of [
      [Buffer.from('no rows')],
      [bytes.subarray(1)],
      [bytes.subarray(0, -1)],
      [bytes, behind],
    ]) {
      await assert.rejects(engine.insert('otel_logs', columns, rows), EngineError)
    }
    await assert.rejects(engine.insert('no_such_table', columns, [bytes]), EngineError)
    assert.equal(await countLogs(engine), 0)
    await engine.insert('otel_logs', columns, [bytes], { isYielding: true, tenantIds: new Set(['acme']) })
    assert.ok((await countLogs(engine)) > 0, 'the same rows, whole and with less weight')
  })
})

test('a failing statement does not affect those beside it', async () => {
  await withEngine(newFolder(), async (engine) => {
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        i % 2 === 0
          ? engine.select(raw(`select ${i} as i`))
          : engine.select(raw('select * from no_such_table')),
      ),
    )
    for (const [i, result] of results.entries()) {
      if (i % 2 === 0) assert.deepEqual(result, { status: 'fulfilled', value: [{ i }] })
      else assert.equal(result.status, 'rejected')
    }
  })
})

test('rows are returned as objects, 64-bit integers as text, and texts unchanged', async () => {
  await withEngine(newFolder(), async (engine) => {
    const text = 'line\nbreak, "quote", \\, \u2028, 👋, \0 '
    assert.deepEqual(
      await engine.select(sql`
        select number as n, toUInt8(number) as small, ${text} as text, ${strings(['a', text])} as list
        from numbers(2) order by n`),
      [0, 1].map((n) => ({ n: String(n), small: n, text, list: ['a', text] })),
    )
    assert.deepEqual(await engine.select(raw('select 1 where 0')), [])
  })
})

test('every telemetry table exists and has a folder; other tables have none', async () => {
  const folder = newFolder()
  await withEngine(folder, async (engine) => {
    const names = tables.map(({ name }) => name)
    const folders = await engine.files.tableFolders(names)
    assert.deepEqual([...folders.keys()], names)
    for (const [name, path] of folders) assert.ok(path.startsWith(folder), name)
    await assert.rejects(engine.files.tableFolders(['otel_logs', 'no_such_table']), EngineError)
    await assert.rejects(engine.files.partNames(['no_such_table']), EngineError, 'never an empty list')
  })
})

test('a long read does not block commits and other reads', async () => {
  await withEngine(newFolder(), async (engine) => {
    const order: string[] = []
    const slow = engine
      .select(raw('select count() as n from numbers(50000000) where sipHash64(number) != 1'))
      .then(() => order.push('read'))
    await insertRows(engine, place, batchOf('otel_logs', [monday]))
    const [row] = await engine.select<{ n: string }>(raw('select count() as n from otel_logs'))
    order.push(`${row?.n} there`)
    await slow
    assert.deepEqual(order, ['1 there', 'read'])
  })
})

test('an idle session that has read a partition keeps none of its files after the partition is dropped', async () => {
  await withEngine(newFolder(), async (engine) => {
    await insertRows(engine, place, batchOf('otel_logs', [monday]))
    // Each reader has read the table before its partition is dropped.
    await Promise.all([1, 2, 3, 4].map(() => engine.select(raw('select * from otel_logs'))))
    const parts = async () => {
      const names = (await engine.files.partNames(['otel_logs'])).get('otel_logs')
      return names?.parts.filter((name) => /^\d+-/.test(name)) ?? assert.fail('no such table')
    }
    assert.equal((await parts()).length, 1)
    await engine.command(raw('ALTER TABLE otel_logs DROP PARTITION ALL'))
    // The command drops the partition; the engine removes its files when another partition, which does not
    // exist, is dropped.
    await engine.command(raw("ALTER TABLE otel_logs DROP PARTITION ID '99-19700101'"))
    assert.deepEqual(await parts(), [])
  })
})

test('closing waits for running statements, refuses later ones, and may be called twice', async () => {
  const engine = await open(newFolder())
  const order: string[] = []
  const slow = engine
    .select<{ rows: string }>(sql`select count() as rows from numbers(40000000) where sipHash64(number) != 1`)
    .then(([row]) => {
      order.push('answered')
      return Number(row?.rows)
    })
  const inserted = insertRows(engine, place, batchOf('otel_logs', [monday])).then(() =>
    order.push('committed'),
  )
  const closed = engine.close().then(() => order.push('closed'))
  await assert.rejects(engine.select(raw('select 1')), { code: 'not_ready' })
  await assert.rejects(insertRows(engine, place, batchOf('otel_logs', [monday])), { code: 'not_ready' })
  await Promise.all([slow, inserted, closed, engine.close()])
  assert.equal(await slow, 40_000_000)
  assert.equal(order.at(-1), 'closed')
  assert.deepEqual(order.toSorted(), ['answered', 'closed', 'committed'])
})

test('tables that differ from those of this program are refused by name, and the folder is unlocked', async () => {
  const folder = newFolder()
  const keys = { by: '(Placement, toMonday(Timestamp))', order: 'TenantId, ServiceName, Timestamp' }
  const copy = ({ by, order }: typeof keys) => [
    `create table other as otel_logs engine = MergeTree partition by ${by} order by (${order})`,
    'exchange tables other and otel_logs',
  ]
  for (const [changes, back, sentence] of [
    [
      ['alter table otel_traces drop column StatusMessage'],
      ['alter table otel_traces add column StatusMessage String codec(ZSTD(1)) after StatusCode'],
      /Table otel_traces should have StatusMessage String as column 17 but has Events\.Timestamp Array/,
    ],
    [
      ['alter table otel_logs modify column SeverityNumber UInt16'],
      ['alter table otel_logs modify column SeverityNumber UInt8'],
      /Table otel_logs should have SeverityNumber UInt8 as column 8 but has SeverityNumber UInt16/,
    ],
    [
      ['alter table otel_logs add column Foreign String'],
      ['alter table otel_logs drop column Foreign'],
      /Table otel_logs should have nothing as column 19 but has Foreign String/,
    ],
    [
      ['alter table otel_metrics_sum modify column SeriesId remove default'],
      [`alter table otel_metrics_sum modify column SeriesId default ${seriesIdExpression}`],
      /otel_metrics_sum should have SeriesId UInt64 default as column 26 but has SeriesId UInt64;/,
    ],
    [
      copy({ ...keys, by: 'toMonday(Timestamp)' }),
      ['exchange tables other and otel_logs', 'drop table other'],
      /otel_logs should be partitioned by \(Placement, toMonday\(Timestamp\)\) but is by toMonday\(Timestamp\)/,
    ],
    [
      copy({ ...keys, order: 'ServiceName, Timestamp' }),
      ['exchange tables other and otel_logs', 'drop table other'],
      /otel_logs should be sorted by TenantId, ServiceName, Timestamp but is by ServiceName, Timestamp/,
    ],
  ] as const) {
    await withEngine(folder, async (engine) => {
      for (const change of changes) await engine.command(raw(change))
    })
    await assert.rejects(open(folder), (error) => {
      assert.ok(error instanceof EngineError)
      assert.match(error.message, sentence)
      assert.match(error.message, /belongs to another version/)
      return true
    })
    // Repaired through a session of the library, because this program refuses the folder.
    const session = new Session(join(folder, 'engine'))
    for (const statement of back) session.query(statement)
    session.close()
    await drainPending()
  }
  await withEngine(folder, async (engine) => assert.equal(await countLogs(engine), 0))
})

test('whether commits wait for the disk may change between two starts; merges always wait', async () => {
  const folder = newFolder()
  for (const commitSync of ['off', 'files', 'on', 'files', 'off'] as const) {
    const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30, commitSync })
    const [logs] = await engine.select<{ own: string }>(
      sql`select engine_full as own from system.tables where database = currentDatabase() and name = 'otel_logs'`,
    )
    await engine.close()
    const own = logs?.own ?? ''
    assert.equal(
      own.includes('fsync_after_insert = 1') && own.includes('fsync_part_directory = 1'),
      commitSync === 'files',
    )
    assert.match(own, /min_rows_to_fsync_after_merge = 1/)
  }
})

test('a table of an earlier build gets the settings of this build', async () => {
  const folder = newFolder()
  const settingsOf = async (engine: TelemetryEngine) => {
    const [logs] = await engine.select<{ own: string }>(
      sql`select engine_full as own from system.tables where database = currentDatabase() and name = 'otel_logs'`,
    )
    return logs?.own ?? ''
  }
  await withEngine(folder, async (engine) => {
    await engine.command(raw('ALTER TABLE otel_logs RESET SETTING merge_selector_base, max_parts_in_total'))
    await engine.command(raw('ALTER TABLE otel_logs MODIFY SETTING old_parts_lifetime = 480'))
    assert.doesNotMatch(await settingsOf(engine), /merge_selector_base|max_parts_in_total/)
  })
  await withEngine(folder, async (engine) => {
    assert.match(await settingsOf(engine), /merge_selector_base = 10\b/)
    assert.match(await settingsOf(engine), /old_parts_lifetime = 0\b/)
    assert.match(await settingsOf(engine), /max_parts_in_total = 10000000\b/)
  })
})

test('a merge keeps no statistics of columns, and removes those of an earlier build', async () => {
  const folder = newFolder()
  const columnsWithStatistics = async (engine: TelemetryEngine) => {
    for (let part = 0; part < 2; part++)
      await insertFixture(engine, place, 'otel_logs', [{ Timestamp: monday }])
    await engine.command(raw('optimize table otel_logs final'))
    const [found] = await engine.select<{ columns: string }>(
      sql`select countIf(notEmpty(statistics)) as columns from system.parts_columns where database = currentDatabase() and table = 'otel_logs' and active`,
    )
    return Number(found?.columns)
  }
  await withEngine(folder, async (engine) => {
    await engine.command(raw('DROP TABLE otel_logs SYNC'))
    await engine.command(raw(textWithStatistics(tableSpec('otel_logs'))))
    assert.ok((await columnsWithStatistics(engine)) > 10)
  })
  await withEngine(folder, async (engine) => {
    assert.equal(await columnsWithStatistics(engine), 0)
    assert.equal(await countLogs(engine), 4)
  })
})

test('a few replaced parts are deleted side by side, by few threads', async () => {
  await withEngine(newFolder(), async (engine) => {
    const [found] = await engine.select<{ parts: string; threads: string }>(
      sql`select (select value from system.merge_tree_settings where name = 'concurrent_part_removal_threshold') as parts,
        (select value from system.server_settings where name = 'max_parts_cleaning_thread_pool_size') as threads`,
    )
    assert.deepEqual(found, { parts: '1', threads: '8' })
  })
})

test('older tables get a column that the engine can fill, and so do side tables of an erasure', async () => {
  const folder = newFolder()
  const row = (pod: string) => ({
    ...{ MetricName: 'm', ServiceName: 'shop', ScopeName: 'meter', TimeUnix: monday },
    ...{ Attributes: { pod, zone: 'z' }, ResourceAttributes: { 'service.name': 'shop' } },
  })
  const podOf = `${mapOfPairs('AttributesPairs')}['pod']`
  const idsIn = async (engine: TelemetryEngine, table: string) => {
    const found = await engine.select<{ id: string }>(
      raw(`select SeriesId as id from ${table} order by ${podOf}`),
    )
    return found.map(({ id }) => id)
  }
  let ids: string[] = []
  await withEngine(folder, async (engine) => {
    await insertFixture(engine, place, 'otel_metrics_sum', [row('a'), row('b')])
    ids = await idsIn(engine, 'otel_metrics_sum')
    for (const { name } of tablesOf(['metrics']))
      await engine.command(raw(`alter table ${name} drop column SeriesId`))
    await engine.command(raw('create table erasure_swap_1_otel_metrics_sum as otel_metrics_sum'))
    await engine.command(
      raw(`insert into erasure_swap_1_otel_metrics_sum select * from otel_metrics_sum where ${podOf} = 'b'`),
    )
  })
  await withEngine(folder, async (engine) => {
    assert.equal(new Set(ids).size, 2)
    assert.deepEqual(await idsIn(engine, 'otel_metrics_sum'), ids)
    await engine.command(
      raw(
        "alter table otel_metrics_sum replace partition id '1-20260105' from erasure_swap_1_otel_metrics_sum",
      ),
    )
    assert.deepEqual(await idsIn(engine, 'otel_metrics_sum'), ids.slice(1))
    await insertFixture(engine, place, 'otel_metrics_sum', [row('b')])
    await engine.command(raw('optimize table otel_metrics_sum final'))
    assert.deepEqual(await idsIn(engine, 'otel_metrics_sum'), [ids[1], ids[1]])
  })
})
