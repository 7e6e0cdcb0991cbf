// The cost of erasing the last hour of a week of log records, with the parts of before linked to the copy of
// the partition, as the service does, and with all of them copied, in the same process on equal rows, for
// weeks of two sizes. The erasure is a whole attempt, from the plan to the read-back; its request is accepted
// before the clock starts.
//
// npm run bench -- deletion/recent [--rows 5000000]

import { parseArgs } from 'node:util'
import type { LinkRule } from '../../server/deletion/attempt/survivor-copy.ts'
import {
  between,
  monday,
  type SceneOptions,
  sceneOf,
  weekNs,
} from '../../server/deletion/deletion-fixture.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import { raw, sql } from '../../server/telemetry/sql.ts'
import { openStores, type Stores } from '../../tests/fixtures.ts'
import { usedBy } from '../process-use.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'

const { values: flags } = parseArgs({ options: { rows: { type: 'string', default: '5000000' } } })
/** A tenth, and all, of the rows. */
const sizes = [Number(flags.rows) / 10, Number(flags.rows)]

const hourNs = 3_600_000_000_000n
/** No other row of the scene is in this week. */
const weekStart = monday + 4n * weekNs
const hourStart = weekStart + 3n * 24n * hourNs
/** Senders commit more often, and the engine merges meanwhile. */
const partsOfHour = 12

const neverLinked: LinkRule = { fromMs: Number.POSITIVE_INFINITY, perPartMs: 0 }
const ways: readonly (readonly [string, Pick<SceneOptions, 'linkRule'>])[] = [
  ['linked', {}],
  ['copied', { linkRule: neverLinked }],
]

const stores = await openStores()
try {
  for (const rows of sizes)
    for (const [way, options] of ways)
      report('Erasing the last hour of a week', { way, ...(await erase(rows, options)) })
} finally {
  await stores.close()
}

async function erase(rows: number, options: Pick<SceneOptions, 'linkRule'>) {
  const scene = await sceneOf(stores, { tables: ['otel_logs'], ...options })
  await insert(stores, scene.own, { fromNs: weekStart, untilNs: hourStart, count: rows })
  await stores.engine.command(
    raw(`OPTIMIZE TABLE otel_logs PARTITION ID '${scene.own.placement}-20260202' FINAL`),
  )
  for (let part = 0n; part < partsOfHour; part++) {
    const fromNs = hourStart + (part * hourNs) / BigInt(partsOfHour)
    await insert(stores, scene.own, { fromNs, untilNs: fromNs + hourNs / BigInt(partsOfHour), count: 1_000 })
  }
  const { request } = await scene.request(between(hourStart, hourStart + hourNs))
  const [before, start] = [usedBy(process.pid), performance.now()]
  await scene.round()
  const seconds = (performance.now() - start) / 1000
  const used = usedBy(process.pid)
  const { detail, status } = await scene.status(request.request_id)
  if (status !== 'completed' || detail.rows_erased !== partsOfHour * 1_000)
    throw new Error(`It ended ${status}.`)
  return {
    rowsOfWeek: rows,
    rowsErased: detail.rows_erased,
    seconds: rounded(seconds),
    cpuSeconds: rounded(used.cpuSeconds - before.cpuSeconds),
    writtenMb: rounded((used.writtenBytes - before.writtenBytes) / 1e6),
  }
}

interface Insertion {
  readonly fromNs: bigint
  readonly untilNs: bigint
  readonly count: number
}

/** Inserts records at equal distances. Random texts of twenty characters make them compress like logs. */
async function insert(
  { engine }: Stores,
  { placement, tenantId }: TenantPlace,
  { count, fromNs, untilNs }: Insertion,
): Promise<void> {
  const stepNs = (untilNs - fromNs) / BigInt(count)
  await engine.command(sql`INSERT INTO otel_logs (Placement, TenantId, Timestamp, ServiceName, SeverityText, Body)
    SELECT ${raw(String(placement))}, ${tenantId}, fromUnixTimestamp64Nano(toInt64(${raw(String(fromNs))} + number * ${raw(String(stepNs))}), 'UTC'),
      ['cart', 'checkout', 'payment'][number % 3 + 1], 'INFO', concat('request ', hex(sipHash64(number)), ' took ', toString(number % 977), ' ms')
    FROM numbers(${raw(String(count))})`)
}
