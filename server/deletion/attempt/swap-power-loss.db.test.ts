// A power loss after the swap of a partition: what was synced is on the disk, and of everything later only
// the names of files. tests/power-cut cuts the power of a file system.

import assert from 'node:assert/strict'
import { cpSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { batchOf, insertRows, temporaryFolder } from '../../../tests/fixtures.ts'
import { openChdb } from '../../telemetry/chdb.ts'
import type { LocalEngine } from '../../telemetry/engine-files.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { hourNs, monday } from '../deletion-fixture.ts'
import { blocksOf, hasReplaced } from './pieces.ts'
import { makeSwap, swapName } from './side-tables.ts'
import { whileRead } from './slow-read-fixture.ts'
import { CopyEngines } from './survivor-copy.ts'

let folder = ''
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const partitionId = '0-20260105'
const rowsOfEach = 20

async function rowsByTenant(engine: LocalEngine): Promise<Record<string, number>> {
  const rows = await engine.select<{ of: string; stored: string }>(
    raw('SELECT TenantId AS of, count() AS stored FROM otel_logs GROUP BY of'),
  )
  return Object.fromEntries(rows.map(({ of, stored }) => [of, Number(stored)]))
}

/** Promises to remove the rows of an organisation. */
async function promise(engine: LocalEngine): Promise<string> {
  const name = swapName(0, 'otel_logs')
  const text = await new CopyEngines(engine).of('otel_logs', false)
  await engine.command(raw(`CREATE TABLE ${name} AS otel_logs ENGINE = ${text}`))
  await engine.command(sql`INSERT INTO ${raw(name)} SELECT * FROM otel_logs WHERE TenantId != ${'own'}`)
  return name
}

/** As if the names of a table's files had reached the disk since the time, and their bytes had not. */
function loseBytesSince(path: string, syncedMs: number): void {
  for (const entry of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
    const file = join(path, entry)
    const found = statSync(file)
    if (found.isFile() && found.mtimeMs > syncedMs) truncateSync(file)
  }
}

for (const isRead of [true, false]) {
  const how = isRead ? 'a statement still read the replaced parts' : 'nobody read the replaced parts'
  test(`after a power loss no erased row is back, and none that survives is there twice, where ${how}`, async () => {
    const [data, copy] = [join(folder, 'data'), join(folder, 'copy')]
    const options = { maxMemoryBytes: 2 ** 30, commitSync: 'on' } as const
    const engine = await openChdb({ ...options, folder: data })
    let table = ''
    let syncedMs = 0
    try {
      for (const tenantId of ['own', 'neighbour']) {
        const times = Array.from({ length: rowsOfEach }, (_, hour) => monday + BigInt(hour) * hourNs)
        await insertRows(engine, { tenantId, placement: 0 }, batchOf('otel_logs', times))
      }
      assert.deepEqual(await rowsByTenant(engine), { own: rowsOfEach, neighbour: rowsOfEach })
      const [path = assert.fail()] = (await engine.files.tableFolders(['otel_logs'])).values()
      table = relative(data, path)
      const name = await promise(engine)
      const files = {
        partNames: (tables: readonly string[]) => engine.files.partNames(tables),
        sync: async () => {
          await engine.files.sync()
          syncedMs = Date.now()
        },
      }
      await files.sync()
      const swap = async () => {
        await makeSwap({ engine, files }, name, partitionId)
        cpSync(data, copy, { recursive: true, preserveTimestamps: true })
      }
      await (isRead ? whileRead(engine, 'otel_logs', swap) : swap())
    } finally {
      await engine.close()
    }
    const left = readdirSync(join(copy, table)).filter((name) => name.startsWith(partitionId))
    assert.equal(hasReplaced(left.map(blocksOf)), isRead, left.join(', '))
    loseBytesSince(join(copy, table), syncedMs)
    const after = await openChdb({ ...options, folder: copy })
    try {
      assert.deepEqual(await rowsByTenant(after), { neighbour: rowsOfEach })
    } finally {
      await after.close()
    }
  })
}
