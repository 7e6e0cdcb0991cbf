// What it costs to remove erased anomalies from the files of PostgreSQL, by how many anomalies there are: how
// long the flush of an erasure takes, and how long those who read and write anomalies all the time wait
// meanwhile. All are beside one reading of the whole table, which depends on the same machine. PostgreSQL is
// Debian's, on the same disk, reached by a socket.
//
//   npm run bench -- control/flush [--anomalies 10000,100000,1000000] [--organisations 10000] [--rounds 3]
//     [--root /tmp]

import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type RawBuilder, sql } from 'kysely'
import { readConfig } from '../../server/config.ts'
import type { Control } from '../../server/control/database.ts'
import { derivedTables } from '../../server/control/derived-tables.ts'
import { ErasedBytesKept, erasedFlushOf } from '../../server/control/erased-flush.ts'
import { openUsable } from '../../server/control/open.ts'
import { AppError } from '../../server/core/app-error.ts'
import type { PsqlCommand } from '../peers/ingest-store.ts'
import { createDatabase, postgresVersion, withPostgres } from '../peers/postgresql.ts'
import { report } from '../report.ts'
import { quantile, rounded, shortVersion } from '../samples.ts'

const { values: options } = parseArgs({
  options: {
    anomalies: { type: 'string', default: '10000,100000,1000000' },
    organisations: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '3' },
    root: { type: 'string', default: tmpdir() },
  },
})
const [organisations, rounds] = [Number(options.organisations), Number(options.rounds)]

/** Between writes: detectors write for a small part of their time. */
const writePauseMs = 10

/** Rows of a statement, which may take 30 s. */
const insertedAtOnce = 50_000

// With the log that a server with archives or standbys writes.
const settings = { wal_level: 'replica', autovacuum: 'off' }
await withPostgres({ root: options.root, settings, what: 'the flush' }, measureAll)

async function measureAll({ psql }: { psql: PsqlCommand }): Promise<void> {
  const control = await openUsable(readConfig({ LETHE_CONTROL_URL: createDatabase(psql, 'flush') }).control)
  try {
    await insertOrganisations(control)
    let filled = 0
    for (const anomalies of options.anomalies.split(',').map(Number)) {
      for (; filled < anomalies; filled += insertedAtOnce) {
        await insertAnomalies(control, filled, Math.min(filled + insertedAtOnce, anomalies))
      }
      filled = anomalies
      await measure(control, anomalies)
    }
  } finally {
    await control.destroy()
  }
}

/** Each organisation has five detectors, as those that the service creates. */
async function insertOrganisations(control: Control): Promise<void> {
  await sql`insert into organisations (tenant_id, name, placement, created_at_ms)
    select 'org-' || n, 'Organisation ' || n, n % 64, 0 from generate_series(0, ${sql.lit(organisations - 1)}) n`.execute(
    control,
  )
  await sql`insert into detectors (id, tenant_id, name, metric_key, method_key, params, scope, window_minutes,
      schedule_minutes, enabled, is_system, last_run_at_ms, last_status, last_note, next_run_at_ms,
      created_at_ms, revision)
    select 'det_' || n || '_' || d, 'org-' || n, 'Detector ' || d, 'metric.' || d, 'seasonal',
      '{"sensitivity":3,"season":"day"}', '{"group_by":"service"}', 20160, 15, 1, 1, 0, 'ok',
      'It has learnt from 2 of 2 weeks.', 0, 0, 1
    from generate_series(0, ${sql.lit(organisations - 1)}) n, generate_series(1, 5) d`.execute(control)
}

/** As long as an anomaly that a detector records: some 600 bytes with its indexes. */
async function insertAnomalies(control: Control, from: number, to: number): Promise<void> {
  await sql`insert into anomalies (id, tenant_id, detector_id, group_key, metric_key, signal, started_at_ns,
      ended_at_ns, seen_until_ns, peak_at_ns, value, expected, lower, upper, score, reason, read_from_ns,
      created_at_ms, updated_at_ms)
    select 'ano_' || lpad(n::text, 22, '0'), 'org-' || n % ${sql.lit(organisations)},
      'det_' || n % ${sql.lit(organisations)} || '_' || n % 5 + 1,
      '{"service":"checkout-' || n % 40 || '"}', 'metric.' || n % 5 + 1, 'metrics',
      (1767571200000000000 + n * 1000000000::bigint)::text, (1767571260000000000 + n * 1000000000::bigint)::text,
      (1767571260000000000 + n * 1000000000::bigint)::text, (1767571230000000000 + n * 1000000000::bigint)::text,
      random() * 1000, 10, 5, 15, random() * 9, 'The value was ' || random() * 1000 || ' and 5 to 15 was expected.',
      '1766361600000000000', 0, 0
    from generate_series(${sql.lit(from)}, ${sql.lit(to - 1)}) n`.execute(control)
}

interface Waits {
  readonly longestMs: number
  /** Statements that waited for as long as they may, and were refused as busy. */
  readonly refused: number
}

/** Runs a statement again and again, with pauses, until the function that is returned is called. */
function allTheTime(pauseMs: number, run: () => Promise<unknown>): () => Promise<Waits> {
  let isOver = false
  let refused = 0
  const ms: number[] = []
  const running = (async () => {
    while (!isOver) {
      const startMs = performance.now()
      await run().catch((error: unknown) => {
        if (!(error instanceof AppError && error.code === 'overloaded')) throw error
        refused++
      })
      ms.push(performance.now() - startMs)
      if (pauseMs > 0) await sleep(pauseMs)
    }
  })()
  return async () => {
    isOver = true
    await running
    return { longestMs: Math.max(...ms), refused }
  }
}

/** One organisation's anomalies, as a page of the list. */
function readAllTheTime(control: Control): () => Promise<Waits> {
  return allTheTime(0, () =>
    control.selectFrom('anomalies').select('id').where('tenant_id', '=', 'org-1').limit(50).execute(),
  )
}

/** One anomaly, as a detector that follows it. */
function writeAllTheTime(control: Control): () => Promise<Waits> {
  return allTheTime(writePauseMs, () =>
    control
      .updateTable('anomalies')
      .set({ updated_at_ms: 1 })
      .where('id', '=', `ano_${'1'.padStart(22, '0')}`)
      .execute(),
  )
}

async function measure(control: Control, anomalies: number): Promise<void> {
  const [flushMs, tableMs, logBytes]: [number[], number[], number[]] = [[], [], []]
  const [reads, writes]: [Waits[], Waits[]] = [[], []]
  let repeated = 0
  for (let round = 0; round < rounds; round++) {
    tableMs.push(await timed(() => sql`select count(*), max(reason) from anomalies`.execute(control)))
    await control
      .deleteFrom('anomalies')
      .where('tenant_id', '=', `org-${round + 2}`)
      .execute()
    const [stopReading, stopWriting] = [readAllTheTime(control), writeAllTheTime(control)]
    const before = await logPosition(control)
    flushMs.push(
      await timed(async () => {
        while (!(await flushed(control))) repeated++
      }),
    )
    logBytes.push((await logPosition(control)) - before)
    reads.push(await stopReading())
    writes.push(await stopWriting())
  }
  const table = quantile(tableMs, 0.5)
  report('Removing erased anomalies from the files', {
    'control plane': `PostgreSQL ${shortVersion(postgresVersion())}`,
    anomalies,
    organisations,
    'tables MB': rounded((await bytesOf(control)) / 1e6, 1),
    'flush p50 ms': rounded(quantile(flushMs, 0.5)),
    'flush max ms': rounded(Math.max(...flushMs)),
    'reading the table = 1': rounded(quantile(flushMs, 0.5) / table, 1),
    'longest wait of a reader ms': longestOf(reads),
    'reads refused': refusedOf(reads),
    'longest wait of a writer ms': longestOf(writes),
    'writes refused': refusedOf(writes),
    'log written MB': rounded(quantile(logBytes, 0.5) / 1e6, 1),
    'flushes repeated': repeated,
  })
}

function longestOf(waits: readonly Waits[]): number {
  return rounded(Math.max(...waits.map(({ longestMs }) => longestMs)))
}

function refusedOf(waits: readonly Waits[]): number {
  return waits.reduce((sum, { refused }) => sum + refused, 0)
}

/** Returns whether the flush succeeded; another use of the tables may keep it from that. */
async function flushed(control: Control): Promise<boolean> {
  try {
    await erasedFlushOf(control).flush(derivedTables, null)
    return true
  } catch (error) {
    if (error instanceof ErasedBytesKept) return false
    throw error
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

async function numberOf(control: Control, value: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ value: number }>`select ${value} as value`.execute(control)
  return Number(rows[0]?.value)
}

function logPosition(control: Control): Promise<number> {
  return numberOf(control, sql`pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')`)
}

function bytesOf(control: Control): Promise<number> {
  const names = sql.join(derivedTables.map((name) => sql`(${sql.lit(name)})`))
  return numberOf(
    control,
    sql`(select sum(pg_total_relation_size(name::regclass)) from (values ${names}) as derived (name))`,
  )
}
