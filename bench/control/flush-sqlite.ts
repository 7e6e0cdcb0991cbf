// What it costs to remove erased anomalies from the file of SQLite, by how many anomalies there are: how
// long the flush of an erasure takes, and how long the event loop stands still meanwhile. Beside it: flushes
// where nothing was removed and where only another organisation has lost a row, and a VACUUM of the file.
//
//   npm run bench -- control/flush-sqlite [--anomalies 1500,15000,150000] [--rounds 3]

import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import type { Control } from '../../server/control/database.ts'
import { derivedTables } from '../../server/control/derived-tables.ts'
import { dialectOf } from '../../server/control/dialect.ts'
import { erasedFlushOf } from '../../server/control/erased-flush.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { report } from '../report.ts'
import { quantile, rounded } from '../samples.ts'

const { values: options } = parseArgs({
  options: {
    anomalies: { type: 'string', default: '1500,15000,150000' },
    rounds: { type: 'string', default: '3' },
  },
})
const rounds = Number(options.rounds)

/** Organisations that take turns, and detectors of each. */
const [organisations, detectors] = [20, 5]

for (const anomalies of options.anomalies.split(',').map(Number)) await measure(anomalies)

async function measure(anomalies: number): Promise<void> {
  const { close, control } = await openSharedControlPlane()
  try {
    await fill(control, anomalies)
    const megabytes = (await dialectOf(control).sizeBytes(control)) / 1e6
    const ways = {
      'nothing removed': () => erasedFlushOf(control).flush(derivedTables, null),
      'removed of another organisation': async () => {
        const { tenant_id: tenantId } = await removeOne(control)
        const another = tenantId === 'org-0' ? 'org-1' : 'org-0'
        await erasedFlushOf(control).flush(derivedTables, another)
      },
      'rewritten in slices': async () => {
        const { tenant_id: tenantId } = await removeOne(control)
        await erasedFlushOf(control).flush(derivedTables, tenantId)
      },
      'the whole file': () => dialectOf(control).rewrite(control),
    }
    await ways['rewritten in slices']()
    for (const [way, run] of Object.entries(ways)) {
      const [took, longest]: [number[], number[]] = [[], []]
      for (let round = 0; round < rounds; round++) {
        const { blockedMs, ms } = await watched(run)
        took.push(ms)
        longest.push(blockedMs)
      }
      report('Removing erased anomalies from the file of SQLite', {
        anomalies,
        'file MB': rounded(megabytes, 1),
        way,
        'flush p50 ms': rounded(quantile(took, 0.5), 1),
        'flush max ms': rounded(Math.max(...took), 1),
        'loop stands still p50 ms': rounded(quantile(longest, 0.5), 1),
        'loop stands still max ms': rounded(Math.max(...longest), 1),
      })
    }
  } finally {
    await close()
  }
}

/** As long as an anomaly that a detector records: some 600 bytes with its indexes. */
async function fill(control: Control, anomalies: number): Promise<void> {
  const rowsTo = (count: number) =>
    sql`with recursive rows (n) as (select 0 union all select n + 1 from rows where n < ${sql.lit(count - 1)})`
  const note = 'It has learnt from 2 of 2 weeks.'
  await sql`${rowsTo(organisations)} insert into organisations (tenant_id, name, placement, created_at_ms)
    select 'org-' || n, 'Organisation ' || n, n, 0 from rows`.execute(control)
  await sql`${rowsTo(organisations * detectors)} insert into detectors (id, tenant_id, name, metric_key,
      method_key, params, scope, window_minutes, schedule_minutes, enabled, is_system, last_run_at_ms,
      last_status, last_note, next_run_at_ms, created_at_ms, revision)
    select 'det_' || n, 'org-' || (n % ${sql.lit(organisations)}), 'Detector ' || n, 'metric.' || n, 'seasonal',
      '{"sensitivity":3}', '{"group_by":"service"}', 20160, 15, 1, 1, 0, 'ok', ${note}, 0, 0, 1
    from rows`.execute(control)
  await sql`${rowsTo(anomalies)} insert into anomalies (id, tenant_id, detector_id, group_key, metric_key, signal,
      started_at_ns, ended_at_ns, seen_until_ns, peak_at_ns, value, expected, lower, upper, score, reason,
      read_from_ns, created_at_ms, updated_at_ms)
    select 'ano_' || printf('%022d', n), 'org-' || (n % ${sql.lit(organisations)}),
      'det_' || (n % ${sql.lit(organisations * detectors)}), '{"service":"checkout-' || (n % 40) || '"}',
      'metric.' || (n % 5), 'metrics', 1767571200000000000 + n * 1000000000, 1767571260000000000 + n * 1000000000,
      1767571260000000000 + n * 1000000000, 1767571230000000000 + n * 1000000000, n % 1000, 10, 5, 15, n % 9,
      'The value was ' || (n % 1000) || '.0372 and 5 to 15 was expected.', '1766361600000000000', 0, 0
    from rows`.execute(control)
}

/** So that the table has to be rewritten for the organisation of the row, which it returns. */
async function removeOne(control: Control): Promise<{ tenant_id: string }> {
  const { rows } = await sql<{ tenant_id: string }>`
    delete from anomalies where id = (select max(id) from anomalies) returning tenant_id`.execute(control)
  const [removed] = rows
  if (removed === undefined) throw new Error('There is no anomaly to remove.')
  return removed
}

/** Runs `work`. Returns how long it took, and the longest time in which the event loop did nothing else. */
async function watched(work: () => Promise<unknown>): Promise<{ ms: number; blockedMs: number }> {
  let [blockedMs, lastMs] = [0, performance.now()]
  const look = () => {
    const nowMs = performance.now()
    blockedMs = Math.max(blockedMs, nowMs - lastMs)
    lastMs = nowMs
  }
  const tick = () => {
    look()
    next = setImmediate(tick)
  }
  let next = setImmediate(tick)
  const startMs = performance.now()
  await work()
  const ms = performance.now() - startMs
  clearImmediate(next)
  look()
  return { ms, blockedMs }
}
