// How much room on the disk an erasure takes for itself before it gives any back: what the reserve has to be
// good for. A service on a file system in memory, which needs root; the room that is free is read every
// millisecond while an erasure is asked for and carried out. The engine besides refuses to drop a partition
// where less than a mebibyte is free, however little it writes.
//
//   node bench/storage/erase-room.ts [--weeks 26] [--rows 2000]

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pino from 'pino'
import { createApp } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { systemClock } from '../../server/core/clock.ts'
import { openSmallDisk, whyNoSmallDisk } from '../../tests/small-disk.ts'
import { provenance } from './bench-store.ts'

const { values } = parseArgs({
  options: { weeks: { type: 'string', default: '26' }, rows: { type: 'string', default: '2000' } },
})
const lacking = whyNoSmallDisk()
if (lacking !== null) throw new Error(lacking)
const weeks = Number(values.weeks)
const rowsOfWeek = Number(values.rows)
const mondayMs = Date.parse('2026-01-05T00:00:00Z')
const weekMs = 7 * 86_400_000

const disk = openSmallDisk(1024 * 1024 * 1024)
const app = await createApp({
  config: readConfig({ LETHE_DATA_DIR: disk.folder, LETHE_PORT: '0', LETHE_RESERVE_MB: '0' }),
  clock: systemClock,
  logger: pino({ level: 'silent' }),
})
const secret = 'a-secret-of-32-characters-or-more'
await app.createOrganisation({ tenantId: 'acme', name: 'acme', actor: operatorActor('bench') }, secret)
const address = await app.start()

async function ask(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await fetch(`${address}${path}`, {
    method,
    headers: { authorization: `Bearer ${secret}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Record<string, unknown>
}

function logsOf(week: number): object {
  const logRecords = Array.from({ length: rowsOfWeek }, (_, i) => ({
    timeUnixNano: `${mondayMs + week * weekMs + i * 60_000}000000`,
    body: { stringValue: randomBytes(750).toString('base64') },
  }))
  return { resourceLogs: [{ resource: {}, scopeLogs: [{ logRecords }] }] }
}

/**
 * Asks for the erasure of what is before, and answers how much less was free meanwhile than at the beginning.
 */
async function measure(range_end: number) {
  const before = disk.freeBytes()
  let least = before
  let isOver = false
  const sampling = (async () => {
    while (!isOver) {
      least = Math.min(least, disk.freeBytes())
      await sleep(1)
    }
  })()
  const body = { scope: 'range', confirm: 'acme', range_end: new Date(range_end).toISOString() }
  const { request_id: id } = await ask('POST', '/usage/storage/deletions', body)
  let deletion: Record<string, unknown>
  do {
    await sleep(20)
    deletion = await ask('GET', `/usage/storage/deletions/${id}`)
  } while (deletion.status !== 'completed')
  isOver = true
  await sampling
  const { partitions_dropped, partitions_rewritten } = deletion.detail as Record<string, number>
  return {
    partitions_dropped,
    partitions_rewritten,
    tookBytes: before - least,
    gaveBytes: disk.freeBytes() - before,
  }
}

for (let week = 0; week <= weeks; week++) await ask('POST', '/v1/logs', logsOf(week))
const dropped = await measure(mondayMs + weeks * weekMs)
const rewritten = await measure(mondayMs + weeks * weekMs + 60_000)
const empty = await measure(mondayMs)
await app.close()
disk.remove()
console.log(JSON.stringify({ ...provenance(), weeks, rowsOfWeek, dropped, rewritten, empty }, null, 2))
process.exit(0)
