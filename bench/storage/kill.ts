// Kills a process with SIGKILL while it erases, opens the folder again and counts: what a crash inside DROP
// PARTITION, DELETE IN PARTITION or REPLACE PARTITION leaves behind. "replace" stops at the crash; "swap" is
// the protocol of docs/decisions/0002: rename the counted copy before REPLACE, and repeat the REPLACE when
// such a table is found at start. Each kill starts from a fresh copy of the same seeded folder; the delay
// grows from kill to kill.
//
//   node bench/storage/kill.ts [--kills 20] [--root /tmp]

import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Session } from 'chdb'
import { promptRemoval, provenance } from './bench-store.ts'

const kinds = ['drop', 'mutate', 'replace', 'swap'] as const
type Kind = (typeof kinds)[number]
/** Longest delay between the mark "ready" and the kill. */
const spreadMs: Readonly<Record<Kind, number>> = { drop: 30, mutate: 600, replace: 12, swap: 16 }
const parts = 6
const rowsPerPart = 20_000

function seed(folder: string): void {
  const session = new Session(folder)
  session.query('CREATE DATABASE bench')
  session.query(
    `CREATE TABLE bench.t (p UInt16, v UInt64, x String) ENGINE = MergeTree PARTITION BY p ORDER BY v ` +
      `SETTINGS ${promptRemoval}, max_bytes_to_merge_at_max_space_in_pool = 1`,
  )
  for (const p of [1, 2])
    for (let i = 0; i < parts; i++)
      session.query(
        `INSERT INTO bench.t SELECT ${p}, ${i * rowsPerPart} + number, toString(cityHash64(number)) FROM numbers(${rowsPerPart})`,
      )
  session.close()
}

/** The process that gets killed: erases the even rows of partition 1, or the whole partition for "drop". */
async function eraseUntilKilled(kind: Kind, folder: string): Promise<void> {
  const session = new Session(folder)
  const run = async (text: string): Promise<void> => {
    await session.queryAsync(text)
  }
  if (kind === 'replace' || kind === 'swap') {
    await run('CREATE TABLE bench.survivors AS bench.t')
    await run(`INSERT INTO bench.survivors SELECT * FROM bench.t WHERE _partition_id = '1' AND v % 2 = 1`)
  }
  process.stdout.write('ready\n')
  if (kind === 'drop') await run(`ALTER TABLE bench.t DROP PARTITION ID '1'`)
  if (kind === 'mutate')
    await run(`ALTER TABLE bench.t DELETE IN PARTITION ID '1' WHERE v % 2 = 0 SETTINGS mutations_sync = 2`)
  if (kind === 'swap') await run('RENAME TABLE bench.survivors TO bench.swap')
  const side = kind === 'swap' ? 'bench.swap' : 'bench.survivors'
  if (kind === 'replace' || kind === 'swap')
    await run(`ALTER TABLE bench.t REPLACE PARTITION ID '1' FROM ${side}`)
  if (kind === 'swap') await run('DROP TABLE bench.swap SYNC')
  process.stdout.write('done\n')
  await sleep(60_000)
}

/** Starts the eraser, kills it `delayMs` after it is ready, and says how far it had come. */
function killAfter(kind: Kind, folder: string, delayMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [
      fileURLToPath(import.meta.url),
      '--kind',
      kind,
      '--folder',
      folder,
    ])
    let said = ''
    let armed = false
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (armed || !said.includes('ready')) return
      armed = true
      const until = performance.now() + delayMs
      // A timer is too coarse for windows of a millisecond.
      while (performance.now() < until);
      child.kill('SIGKILL')
    })
    child.on('exit', () => resolve(said.includes('done')))
  })
}

/** Opens the folder again, repairs as the protocol says, and describes what is there. */
async function reopen(kind: Kind, folder: string): Promise<string> {
  const session = new Session(folder)
  const count = (condition: string): string =>
    session.query(`SELECT count() FROM bench.t WHERE ${condition}`, 'TSV').trim()
  const names = session.query('SHOW TABLES FROM bench', 'TSV').trim().split('\n')
  const before = count('p = 1')
  if (names.includes('swap')) {
    session.query(`ALTER TABLE bench.t REPLACE PARTITION ID '1' FROM bench.swap`)
    session.query('DROP TABLE bench.swap SYNC')
  }
  const unfinished = `SELECT count() FROM system.mutations WHERE table = 't' AND NOT is_done`
  while (session.query(unfinished, 'TSV').trim() !== '0') await sleep(20)
  const after = `rows ${before} at reopening, ${count('p = 1')} in the end, neighbour ${count('p = 2')}`
  const text =
    kind === 'drop' || kind === 'mutate' || names.includes('swap')
      ? after
      : `${after}, tables ${names.join(' ')}`
  session.close()
  return text
}

const { values: flags } = parseArgs({
  options: {
    kills: { type: 'string', default: '20' },
    root: { type: 'string', default: '/tmp' },
    kind: { type: 'string', default: '' },
    folder: { type: 'string', default: '' },
  },
})
const asked = kinds.find((kind) => kind === flags.kind)
if (asked !== undefined) {
  await eraseUntilKilled(asked, flags.folder)
} else {
  const root = mkdtempSync(join(flags.root, 'kill-'))
  const kills = Number(flags.kills)
  seed(join(root, 'seed'))
  const outcomes: Record<string, Record<string, number>> = {}
  for (const kind of kinds)
    for (let i = 0; i < kills; i++) {
      const folder = join(root, 'run')
      cpSync(join(root, 'seed'), folder, { recursive: true })
      const finished = await killAfter(kind, folder, (spreadMs[kind] * i) / kills)
      const outcome = `${finished ? 'finished' : 'cut short'}: ${await reopen(kind, folder)}`
      const tally = outcomes[kind] ?? {}
      tally[outcome] = (tally[outcome] ?? 0) + 1
      outcomes[kind] = tally
      rmSync(folder, { recursive: true })
    }
  rmSync(root, { recursive: true })
  console.log(
    JSON.stringify(
      { bench: 'storage/kill', ...provenance(), kills, rows: parts * rowsPerPart, outcomes },
      null,
      2,
    ),
  )
}
