// What it costs that commits, or merges, are on the disk and not only in the operating system's cache.
// Commits like the writer's go into real tables one after another (a closed loop), and at a fixed rate; a
// commit is 8 placements of 500 gauges each. Rows are ready buffers, so nothing but the engine is
// measured. The variants take turns in rounds, so that a slow minute of a shared disk meets all of them;
// each has a folder of its own.
//
//   node bench/ingest/durability.ts [--seconds 6] [--rounds 3] [--root /tmp]

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { type Cell, encodeFixture } from '../../server/telemetry/row-fixture.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { provenance, quantile, timed } from '../storage/bench-store.ts'
import { attributesIn, gaugeLine, seededRandom } from '../storage/sample-rows.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    rounds: { type: 'string', default: '3' },
    root: { type: 'string', default: tmpdir() },
    child: { type: 'string' },
  },
})
const seconds = Number(options.seconds)

const variants: Readonly<Record<string, string>> = {
  'nothing synced': 'fsync_after_insert = 0, fsync_part_directory = 0, min_rows_to_fsync_after_merge = 0',
  'merges synced': 'fsync_after_insert = 0, fsync_part_directory = 0, min_rows_to_fsync_after_merge = 1',
  'commits and merges synced':
    'fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1',
}

interface Result {
  readonly closedRowsPerSecond: number
  readonly cpuSecondsPer100k: number
  readonly commitMs: { readonly p50: number; readonly p99: number }
}

if (options.child === undefined) await takeTurns()
else await runVariant(options.child)

async function takeTurns(): Promise<void> {
  const rounds: Record<string, Result[]> = {}
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const name of Object.keys(variants)) {
      const args = ['--child', name, '--seconds', options.seconds, '--root', options.root]
      const child = fork(fileURLToPath(import.meta.url), args, {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      const [result] = await once(child, 'message')
      rounds[name] = [...(rounds[name] ?? []), result as Result]
      process.stderr.write(`${name}: ${JSON.stringify(result)}\n`)
    }
  }
  const middle = (name: string, of: (result: Result) => number) =>
    Number(quantile((rounds[name] ?? []).map(of), 0.5).toFixed(1))
  const results = Object.keys(variants).map((name) => ({
    name,
    closedRowsPerSecond: middle(name, (one) => one.closedRowsPerSecond),
    cpuSecondsPer100k: middle(name, (one) => one.cpuSecondsPer100k),
    commitP50Ms: middle(name, (one) => one.commitMs.p50),
    commitP99Ms: middle(name, (one) => one.commitMs.p99),
  }))
  process.stdout.write(`${JSON.stringify({ ...provenance(), seconds, results }, null, 2)}\n`)
}

async function runVariant(name: string): Promise<void> {
  const folder = mkdtempSync(join(options.root, 'lethe-durability-'))
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31 })
  const [gauges] = tables
  if (gauges === undefined) throw new Error('There are no tables.')
  await engine.command(raw(`ALTER TABLE ${gauges.name} MODIFY SETTING ${variants[name]}`))
  const random = seededRandom(1)
  const rows = 4000
  const columns = insertColumns(gauges)
  const rowAt = (turn: number, i: number): Buffer => {
    const place = { tenantId: `org-${i % 8}`, placement: (turn * 8 + (i % 8)) % 64 }
    const timeNs = 1_768_860_000_000_000_000n + BigInt(i) * 50_000_000n
    const line = gaugeLine(random, { organisation: i % 8, placement: place.placement, timeNs })
    const cells: Cell[] = JSON.parse(line).slice(2)
    const filled = gauges.columns.filter(({ fallback }) => fallback === undefined)
    const row = filled.map(({ name, type, map }, at) => {
      const cell = cells[at] ?? null
      if (map?.isList === false) return [map.name, attributesIn(String(cell))] as const
      if (map !== undefined) return [map.name, cell] as const
      return [name, type.startsWith('DateTime64') ? BigInt(Number(cell)) : cell] as const
    })
    return encodeFixture(columns, place, [Object.fromEntries(row)])
  }
  const buffers = Array.from({ length: 8 }, (_, turn) =>
    Buffer.concat(Array.from({ length: rows }, (_, i) => rowAt(turn, i))),
  )
  const commitMs: number[] = []
  const commit = async (turn: number): Promise<void> => {
    const buffer = buffers[turn % buffers.length]
    if (buffer !== undefined)
      commitMs.push((await timed(() => engine.insert(gauges.name, columns, [buffer]))).ms)
  }
  await commit(0)
  commitMs.length = 0
  const loop = await timed(async () => {
    const untilMs = performance.now() + seconds * 1000
    for (let turn = 0; performance.now() < untilMs; turn++) await commit(turn)
  })
  const closed = { rows: commitMs.length * rows, ms: loop.ms }
  commitMs.length = 0
  const steady = await timed(async () => {
    for (let turn = 0; turn < seconds * 2; turn++) {
      const nextMs = performance.now() + 500
      await commit(turn)
      await sleep(Math.max(0, nextMs - performance.now()))
    }
  })
  const result: Result = {
    closedRowsPerSecond: Math.round((closed.rows / closed.ms) * 1000),
    cpuSecondsPer100k: (steady.cpuS / (commitMs.length * rows)) * 100_000,
    commitMs: { p50: quantile(commitMs, 0.5), p99: quantile(commitMs, 0.99) },
  }
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
  process.send?.(result)
}
