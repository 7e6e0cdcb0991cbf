// What the engine's own BACKUP and RESTORE cost, and what they hold up: how long an insert waits at
// worst while a backup is waited for, and while it is taken in the background (ASYNC); and how long
// KILL QUERY takes to end one.
//
//   node bench/storage/backup.ts [--rows 10000000] [--root /tmp]

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { drainPending, Session } from 'chdb'
import { provenance } from './bench-store.ts'

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

/** Inserts a row every 20 ms until `isDone`; answers how many went in and the longest wait. */
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

const rounds = []
for (let round = 0; round < 3; round++) {
  const waitedFor = await measure(`waited${round}`, false)
  const inBackground = await measure(`background${round}`, true)
  rounds.push({ waitedFor, inBackground })
}

await run(`BACKUP TABLE t TO File('killed') SETTINGS id = 'killed' ASYNC`)
let startMs = performance.now()
await run("KILL QUERY WHERE query LIKE 'BACKUP%' SYNC")
const killMs = Math.round(performance.now() - startMs)

await run('DROP TABLE t SYNC')
startMs = performance.now()
await run("RESTORE TABLE t FROM File('background0')")
const restoreMs = Math.round(performance.now() - startMs)

session.close()
await drainPending()
rmSync(folder, { recursive: true })
console.log(
  JSON.stringify({ ...provenance(), bytes: Number(size?.bytes), rounds, killMs, restoreMs }, null, 2),
)
