// The cost of the engine's own BACKUP and RESTORE, and how long they block inserts: the longest wait of an
// insert during a synchronous backup, and during one in the background (ASYNC); and how long KILL QUERY takes
// to end one.
//
// npm run bench -- storage/backup [--rows 10000000] [--root /tmp]

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { drainPending, Session } from 'chdb'
import { report } from '../report.ts'

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '10000000' }, root: { type: 'string', default: '/tmp' } },
})
const folder = mkdtempSync(join(values.root, 'lethe-backup-'))
const backups = join(folder, 'backups')
mkdirSync(backups)
const settings = join(folder, 'settings.xml')
writeFileSync(
  settings,
  `<clickhouse><backups><allowed_path>${backups}</allowed_path></backups>` +
    '<backup_threads>2</backup_threads><restore_threads>2</restore_threads></clickhouse>',
)
const session = new Session(join(folder, 'engine'), { connectionArgs: [`--config-file=${settings}`] })

async function run(text: string): Promise<Record<string, string>[]> {
  const lines = (await session.queryAsync(text, { format: 'JSONEachRow' })).text().trim()
  return lines === '' ? [] : lines.split('\n').map((line) => JSON.parse(line))
}

/** Inserts a row every 20 ms until `isDone`; returns the number of inserts and the longest wait. */
async function insertMeanwhile(isDone: () => Promise<boolean>) {
  const waits: number[] = []
  do {
    const startMs = performance.now()
    await run('INSERT INTO beside VALUES (1)')
    waits.push(performance.now() - startMs)
    await sleep(20)
  } while (!(await isDone()))
  return { inserts: waits.length, longestWaitMs: Math.round(Math.max(...waits)) }
}

async function measure(name: string, isAsync: boolean) {
  const startMs = performance.now()
  const statement = `BACKUP TABLE t TO File('${name}') SETTINGS id = '${name}'`
  let isOver = false
  const taking = run(isAsync ? `${statement} ASYNC` : statement).then(() => {
    isOver = true
  })
  const meanwhile = await insertMeanwhile(async () => {
    if (!isAsync) return isOver
    const [row] = await run(`SELECT status FROM system.backups WHERE id = '${name}'`)
    return row?.status === 'BACKUP_CREATED'
  })
  await taking
  return { tookMs: Math.round(performance.now() - startMs), ...meanwhile }
}

await run('CREATE TABLE t (p UInt16, v UInt64, x String) ENGINE = MergeTree PARTITION BY p ORDER BY v')
await run('CREATE TABLE beside (v UInt64) ENGINE = MergeTree ORDER BY v')
await run(
  `INSERT INTO t SELECT number % 64, number, arrayStringConcat(arrayMap(i -> toString(cityHash64(number, i)), range(4))) FROM numbers(${values.rows})`,
)
const [size] = await run("SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND table = 't'")

const megabytes = Math.round(Number(size?.bytes) / 1e6)
for (let round = 1; round <= 3; round++) {
  for (const [way, isAsync] of [
    ['waited for', false],
    ['in the background', true],
  ] as const) {
    const { inserts, longestWaitMs, tookMs } = await measure(
      `${isAsync ? 'background' : 'waited'}${round}`,
      isAsync,
    )
    report('BACKUP of the engine', {
      taken: way,
      round,
      MB: megabytes,
      'took ms': tookMs,
      'inserts meanwhile': inserts,
      'longest insert ms': longestWaitMs,
    })
  }
}

const msOf = async (work: () => Promise<unknown>) => {
  const startMs = performance.now()
  await work()
  return Math.round(performance.now() - startMs)
}
await run(`BACKUP TABLE t TO File('killed') SETTINGS id = 'killed' ASYNC`)
const killMs = await msOf(() => run("KILL QUERY WHERE query LIKE 'BACKUP%' SYNC"))
await run('DROP TABLE t SYNC')
const restoreMs = await msOf(() => run("RESTORE TABLE t FROM File('background1')"))
report('Ending and restoring one', { MB: megabytes, 'KILL QUERY ms': killMs, 'RESTORE ms': restoreMs })

session.close()
await drainPending()
rmSync(folder, { recursive: true })
