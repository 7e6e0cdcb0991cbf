// What the number of placements in a commit costs the engine: the same bodies of 64 organisations, one of
// each, inserted in commits of so many placements, sizes in turn, merges stopped. Prints CPU microseconds a
// row for each size: the median and the rounds. Fewer placements cost an insert's fixed part more often, more
// of them keep a session for longer.
//
// Run: node bench/ingest/commit-size.ts [--signal metrics] [--sizes 8,16,32,64] [--rounds 5] [--root /tmp]

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount, type TableRows } from '../../server/telemetry/rows.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type Signal, tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { provenance, quantile } from '../storage/bench-store.ts'
import { ingestBodies, startNs } from './payloads.ts'

const { values: flags } = parseArgs({
  options: {
    signal: { type: 'string', default: 'metrics' },
    sizes: { type: 'string', default: '8,16,32,64' },
    rounds: { type: 'string', default: '5' },
    root: { type: 'string', default: tmpdir() },
  },
})
const signal = flags.signal as Signal
const placements = 64
/** Of the bodies that an SDK sends, every second one. */
const batches = ingestBodies(signal, placements * 2, 1)
  .filter((_, at) => at % 2 === 0)
  .map((body, placement) => {
    const place = { tenantId: `org-${placement}`, placement }
    return decodeExport(signal, 'protobuf', body, { place, receivedNs: startNs }).batch
  })
const rows = batches.flat().reduce((sum, part) => sum + rowCount(part), 0)

const folder = mkdtempSync(join(flags.root, 'lethe-commit-size-'))
const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31, commitSync: 'files' })
const sizes = flags.sizes.split(',').map(Number)
const found = new Map(sizes.map((size) => [size, [] as number[]]))
try {
  await engine.command(raw('SYSTEM STOP MERGES'))
  // The first round warms up.
  for (let round = 0; round <= Number(flags.rounds); round++) {
    for (const size of sizes) {
      const start = process.cpuUsage()
      for (let at = 0; at < placements; at += size) await commit(batches.slice(at, at + size).flat())
      const { user, system } = process.cpuUsage(start)
      if (round > 0) found.get(size)?.push((user + system) / rows)
    }
    for (const { name } of tables) await engine.command(raw(`TRUNCATE TABLE ${name}`))
  }
} finally {
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
}
const results = [...found].map(([size, cpuUs]) => ({
  placements: size,
  cpuUsPerRow: { median: round1(quantile(cpuUs, 0.5)), rounds: cpuUs.map(round1) },
}))
process.stdout.write(`${JSON.stringify({ signal, rows, results, ...provenance() })}\n`)

async function commit(parts: readonly TableRows[]): Promise<void> {
  const inserts = tables.map(async (table) => {
    const own = parts.filter((part) => part.table === table.name)
    if (own.length === 0) return
    await engine.insert(
      table.name,
      insertColumns(table),
      own.map(({ bytes }) => bytes),
    )
  })
  await Promise.all(inserts)
}

function round1(value: number): number {
  return Math.round(value * 10) / 10
}
