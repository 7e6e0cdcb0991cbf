// Actions of programs in a simulation: exporters send telemetry in any order, repeatedly and late, and a
// detector records an anomaly. Each action knows from the model what the response must be.

import assert from 'node:assert/strict'
import type { Control } from '../../server/control/database.ts'
import { type Signal, signals, type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import type { Status } from './model.ts'
import { exportOf, instantsNs, type SentRow } from './telemetry.ts'
import { assertAnswer, type Organisation, type World } from './world.ts'

const working = new Set<Status>(['running', 'verifying'])

/** Sends rows of one signal: new ones, or some that were sent before. */
export async function send(world: World): Promise<void> {
  const own = world.pickOrganisation()
  const signal = world.pick(signals)
  const before = world.model.arrivals.filter(
    (row) => row.tenantId === own.place.tenantId && row.signal === signal && row.table !== 'anomalies',
  )
  const rows: SentRow[] =
    before.length > 0 && world.chance(0.15)
      ? before.slice(0, 3).map(({ id, table, timeNs }) => ({ id, table, timeNs }))
      : newRows(world, signal)
  const kept = rows.filter((row) => !world.model.isLate(own.place.tenantId, row))
  world.log(
    `${own.place.tenantId} sends ${rows.length} ${signal} from ${rows[0]?.id}, ${rows.length - kept.length} of them late`,
  )
  const answer = world.subject.ask('POST', `/v1/${signal}`, {
    secret: world.pick(own.secrets),
    json: exportOf(signal, rows),
  })
  if (kept.length > 0 && world.model.isFenced(own.place.tenantId, kept)) {
    return assertAnswer(await answer, 503, 'an export into a fence')
  }
  if (kept.length > 0 && world.isStanding && mayWait(world, own)) return sendLater(world, own, kept, answer)
  const isClosed = kept.length > 0 && world.closed.has(own.place.placement)
  const { body, status } = await answer
  assert.equal(status, isClosed ? 503 : 200, JSON.stringify(body))
  if (isClosed) return
  const rejected = Object.entries(body.partialSuccess ?? {}).find(([name]) => name.startsWith('rejected'))
  assert.equal(Number(rejected?.[1] ?? 0), rows.length - kept.length, 'rows that came too late')
  world.counts.rows += kept.length
  world.model.arrive(own.place.tenantId, kept, 'there')
}

/** Whether a paused erasure may have locked the placement. */
export function mayWait(world: World, own: Organisation): boolean {
  const shared = world.organisations.filter(({ place }) => place.placement === own.place.placement)
  return shared.some(({ place }) =>
    world.model
      .requestsOf(place.tenantId)
      .some(({ attempts, status }) => working.has(status) && attempts > 0),
  )
}

function sendLater(
  world: World,
  own: Organisation,
  kept: readonly SentRow[],
  answer: Promise<{ status: number }>,
): void {
  const pending = world.model.arrive(own.place.tenantId, kept, 'pending')
  const settled = answer.then(({ status }) => async () => {
    assert.ok(status === 200 || status === 503, `a write that waited got ${status}`)
    world.model.settle(pending, status === 200 ? 'there' : 'gone')
  })
  world.waiting.push({ settled })
}

const tablesOf = (signal: Signal): TableName[] =>
  tables.filter((table) => table.signal === signal).map(({ name }) => name)

function newRows(world: World, signal: Signal): SentRow[] {
  const around = world.pick(instantsNs)
  const own = tablesOf(signal)
  return Array.from({ length: 1 + Math.floor(world.random() * 5) }, () => ({
    id: world.nextId(),
    table: world.pick(own),
    timeNs: world.chance(0.7) ? around : world.pick(instantsNs),
  }))
}

/** A detector records an anomaly about one instant, at a time that nothing hides. */
export async function find(world: World): Promise<void> {
  const own = world.pickOrganisation()
  const { tenantId } = own.place
  const signal = world.pick(signals)
  const row = { id: world.nextId(), table: 'anomalies' as const, timeNs: world.pick(instantsNs) }
  if (world.model.isHidden({ ...row, tenantId, signal, state: 'there' })) return
  world.log(`${tenantId} has an anomaly ${row.id} of its ${signal}`)
  await insertAnomaly(world.subject.control, tenantId, signal, row, world.subject.nowMs())
  world.model.arrive(tenantId, [row], 'there', signal)
}

async function insertAnomaly(
  control: Control,
  tenantId: string,
  signal: Signal,
  { id, timeNs }: SentRow,
  nowMs: number,
): Promise<void> {
  await control
    .insertInto('anomalies')
    .values({
      id,
      tenant_id: tenantId,
      detector_id: 'simulated',
      group_key: '{}',
      metric_key: 'simulated',
      signal,
      started_at_ns: `${timeNs}`,
      ended_at_ns: `${timeNs}`,
      seen_until_ns: `${timeNs + 1n}`,
      peak_at_ns: `${timeNs}`,
      value: 1,
      expected: 0,
      lower: 0,
      upper: 0,
      score: 9,
      reason: 'simulated',
      read_from_ns: `${timeNs}`,
      unread_ns: null,
      created_at_ms: nowMs,
      updated_at_ms: nowMs,
    })
    .execute()
}
