// A statement that reads for as long as a test needs.

import assert from 'node:assert/strict'
import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { raw, sql } from '../../telemetry/sql.ts'

/**
 * Does the work while a statement reads rows, and then ends it; fails where it ended before.
 *
 * @param from which rows it reads: the rest of a statement behind FROM
 */
export async function whileRead(
  engine: TelemetryEngine,
  from: string,
  work: () => Promise<void>,
): Promise<void> {
  const slow = `SELECT sum(sleepEachRow(3)) FROM ${from}`
  const maySleep = 'SETTINGS function_sleep_max_microseconds_per_block = 600000000000'
  const reading = assert.rejects(engine.select(raw(`${slow} ${maySleep}`)), /cancelled/)
  const isRunning = async () =>
    (await engine.select(sql`SELECT 1 AS one FROM system.processes WHERE startsWith(query, ${slow})`)).length
  while ((await isRunning()) === 0) await new Promise((resolve) => setImmediate(resolve))
  try {
    await work()
  } finally {
    await engine.command(sql`KILL QUERY WHERE startsWith(query, ${slow}) ASYNC`)
    await reading
  }
}
