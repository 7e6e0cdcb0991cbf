// Parts as a power loss leaves them: with the right name, and with bytes missing or changed. The tests damage
// closed stores; tests/power-cut cuts the power of a file system.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { batchOf, insertRows, temporaryFolder } from '../../tests/fixtures.ts'
import { type CommitSync, openChdb } from './chdb.ts'
import { type TelemetryEngine, usualLimits } from './engine.ts'
import type { LocalEngine } from './engine-files.ts'
import { raw, sql } from './sql.ts'

const monday = 1_767_571_200_000_000_000n

let folder = ''
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** What a start logged, by whether it is an error. */
interface Logged {
  readonly warned: string[]
  readonly erred: string[]
  /** Messages without parts. */
  readonly said: string[]
}

async function withStore<T>(
  commitSync: CommitSync,
  work: (engine: LocalEngine, logged: Logged) => Promise<T>,
  startLimits = usualLimits,
): Promise<T> {
  const logged: Logged = { warned: [], erred: [], said: [] }
  const logger = {
    warn({ parts }: { parts?: string[] }, message?: string) {
      if (parts === undefined) logged.said.push(message ?? '')
      else logged.warned.push(...parts)
    },
    error: ({ parts = [] }: { parts?: string[] }) => void logged.erred.push(...parts),
  }
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30, commitSync, logger, startLimits })
  try {
    await engine.command(raw('SYSTEM STOP MERGES'))
    return await work(engine, logged)
  } finally {
    await engine.close()
  }
}

/**
 * Inserts one row for an organisation, in a part of its own. Returns the names of all parts of its partition
 * after that.
 */
async function insert(engine: TelemetryEngine, placement: number, said: string): Promise<string[]> {
  const place = { tenantId: `org-${placement}`, placement }
  await insertRows(engine, place, batchOf('otel_logs', [monday], { Body: said }))
  const parts = await engine.select<{ path: string }>(
    sql`SELECT path FROM system.parts WHERE table = 'otel_logs' AND active AND startsWith(partition_id, ${`${placement}-`})
      ORDER BY min_block_number`,
  )
  return parts.map(({ path }) => path)
}

async function said(engine: TelemetryEngine): Promise<string[]> {
  const rows = await engine.select<{ Body: string }>(raw('SELECT Body FROM otel_logs ORDER BY Body'))
  return rows.map(({ Body }) => Body)
}

async function detached({ files }: LocalEngine): Promise<string[]> {
  const [path = assert.fail('no folder')] = (await files.tableFolders(['otel_logs'])).values()
  return readdirSync(join(path, 'detached'))
}

/** As if the size of a file had reached the disk and its bytes had not; times stay unchanged. */
function damage(
  part: string | undefined,
  change: (path: string) => void = (path) => truncateSync(path),
): void {
  const path = join(part ?? assert.fail('no part'), 'data.bin')
  const { atime, mtime } = statSync(path)
  change(path)
  utimesSync(path, atime, mtime)
}

const flip = (path: string) => {
  const bytes = readFileSync(path)
  bytes.fill(0, bytes.length >> 1)
  writeFileSync(path, bytes)
}

for (const [name, change] of [
  ['lost its bytes', (path: string) => truncateSync(path)],
  ['has the right size and other bytes', flip],
] as const) {
  test(`a part of an unacknowledged commit that ${name} is removed at the start, and its neighbours stay`, async () => {
    await withStore('on', async (engine) => {
      await insert(engine, 1, 'kept')
      await insert(engine, 2, 'the neighbour’s')
      await engine.files.sync()
      damage((await insert(engine, 1, 'not acknowledged')).at(-1), change)
      await insert(engine, 2, 'not acknowledged and whole')
    })
    await withStore('on', async (engine, { warned, erred }) => {
      assert.deepEqual(await said(engine), ['kept', 'not acknowledged and whole', 'the neighbour’s'])
      assert.equal(warned.length, 1)
      assert.match(String(warned), /^otel_logs .*1-20260105_3_3_0$/)
      assert.deepEqual(erred, [])
      assert.deepEqual(await detached(engine), [])
    })
    await withStore('on', async (_engine, { warned }) => assert.deepEqual(warned, []))
  })
}

test('a start whose reads are refused by their limit of time repeats them with more, and continues', async () => {
  await withStore('on', async (engine) => {
    await insert(engine, 1, 'kept')
    await engine.files.sync()
    damage((await insert(engine, 1, 'not acknowledged')).at(-1), flip)
  })
  const slow = { ...usualLimits, maxSeconds: 0.000_001 }
  await withStore(
    'on',
    async (engine, logged) => {
      assert.deepEqual(await said(engine), ['kept'])
      assert.equal(logged.warned.length, 1, 'the broken part was found')
      assert.deepEqual([...new Set(logged.said)], ['the start waits for a slow read of the engine'])
    },
    slow,
  )
})

test('more broken parts than the engine would accept do not prevent the start', async () => {
  await withStore('on', async (engine) => {
    await insert(engine, 1, 'kept')
    await engine.files.sync()
    for (let i = 0; i < 120; i++) await insert(engine, i % 40, 'not acknowledged')
    const parts = await engine.select<{ path: string }>(
      raw(
        `SELECT path FROM system.parts WHERE table = 'otel_logs' AND active AND name != '1-20260105_1_1_0'`,
      ),
    )
    assert.equal(parts.length, 120)
    for (const { path } of parts) damage(path)
  })
  await withStore('on', async (engine, { warned }) => {
    assert.deepEqual(await said(engine), ['kept'])
    assert.equal(warned.length, 120)
    assert.deepEqual(await detached(engine), [])
  })
})

test('a part that broke after it was synced is damage: it stays, is named, and the rest is served', async () => {
  await withStore('on', async (engine) => {
    damage((await insert(engine, 1, 'acknowledged')).at(-1))
    await insert(engine, 2, 'the neighbour’s')
    await engine.files.sync()
  })
  for (const start of ['first', 'second']) {
    await withStore('on', async (engine, { warned, erred }) => {
      assert.deepEqual(await said(engine), ['the neighbour’s'])
      assert.deepEqual(erred, ['otel_logs broken-on-start_1-20260105_1_1_0'], start)
      assert.deepEqual(warned, [])
      assert.equal((await detached(engine)).length, 1)
    })
  }
})

test('the result of a merge is never taken for an unacknowledged commit, however new it is', async () => {
  await withStore('on', async (engine) => {
    await insert(engine, 1, 'one')
    await insert(engine, 1, 'two')
    await engine.files.sync()
    await engine.command(raw('SYSTEM START MERGES'))
    await engine.command(raw('OPTIMIZE TABLE otel_logs FINAL'))
    await engine.command(raw('SYSTEM STOP MERGES'))
    // Otherwise its sources would be read in its place.
    await engine.command(raw(`ALTER TABLE otel_logs DROP PARTITION ID '0-00000000'`))
    const [merged] = (await insert(engine, 1, 'three')).filter((path) => /_1_2_1\/$/.test(path))
    damage(merged)
  })
  await withStore('on', async (engine, { warned, erred }) => {
    assert.deepEqual(await said(engine), ['three'])
    assert.deepEqual(warned, [])
    assert.deepEqual(erred, ['otel_logs broken-on-start_1-20260105_1_2_1'])
  })
})

for (const commitSync of ['files', 'off'] as const) {
  test(`where the engine syncs files or nothing is synced (${commitSync}), no part is taken for unacknowledged`, async () => {
    await withStore('on', (engine) => insert(engine, 1, 'kept'))
    await withStore(commitSync, async (engine) => {
      damage((await insert(engine, 1, 'perhaps acknowledged')).at(-1))
      await engine.files.sync()
    })
    await withStore('on', async (engine, { warned, erred }) => {
      assert.deepEqual(await said(engine), ['kept'])
      assert.deepEqual(warned, [])
      assert.equal(erred.length, 1)
    })
  })
}
