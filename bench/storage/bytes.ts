// The bytes of a row on disk: the demo shop's telemetry as OTLP bodies, decoded by the service's own decoder
// into its own tables and merged to one part per partition, beside the bytes of the bodies.
//
// npm run bench -- storage/bytes [--days 14]

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { historyPayloads } from '../../server/demo/payloads.ts'
import { openShop } from '../../server/demo/shop.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'
import { insertBodies, mergeTables } from './merged-rows.ts'

const { values: options } = parseArgs({ options: { days: { type: 'string', default: '14' } } })
const anchorNs = BigInt(Date.UTC(2026, 0, 20)) * 1_000_000n
const recordsPerBody = 2_000

const root = mkdtempSync(join(tmpdir(), 'lethe-bytes-'))
const engine = await openChdb({ folder: root, maxMemoryBytes: 2 ** 31 })
try {
  const shop = openShop({ seed: 7, anchorNs, historyDays: Number(options.days) })
  const sent = await insertBodies(engine, historyPayloads(shop, recordsPerBody), anchorNs)
  const stored = await mergeTables(
    engine,
    tables.map(({ name }) => name),
  )
  for (const { name, signal } of tables) {
    const { bytes = 0, rows = 0 } = stored.get(name) ?? {}
    const own = sent.get(signal)
    if (rows === 0 || own === undefined) continue
    report('Bytes a row of the demo shop', {
      stored: name,
      rows,
      'bytes a row': rounded(bytes / rows, 1),
      'as OTLP, all of its signal': rounded(own.plain / own.rows, 1),
      gzipped: rounded(own.gzip / own.rows, 1),
    })
  }
} finally {
  await engine.close()
  rmSync(root, { recursive: true, force: true })
}
