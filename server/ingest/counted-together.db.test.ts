// What requests cost the control plane once their tokens are known: one transaction for all that a commit
// acknowledges, and nothing for each.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openStores, silent } from '../../tests/fixtures.ts'
import { figuresOf } from '../control/dialect.ts'
import { elapsedMs } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { ThreadTurns } from '../core/turns/thread-turns.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { MemoryPlacementLocks } from '../telemetry/placement-locks.ts'
import { IngestQuotas } from '../usage/ingest-quotas.ts'
import { QuotaStore } from '../usage/quota-store.ts'
import { Decoder } from './decoder.ts'
import { Intake } from './intake.ts'
import { DistantWeeks } from './rows/distant-weeks.ts'
import { IngestWriter } from './rows/writer.ts'

const stores = await openStores()
const { control } = stores
after(() => stores.close())

const commitDelayMs = 50
const clock = new ManualClock(1_767_600_000_000)
const turns = new LoopTurns({ nowMs: elapsedMs })
// Time stands still for limits, so that they are read once.
const still = new ManualClock(clock.nowMs())
const quotaStore = new QuotaStore(control, still, { rowsPerSecond: null, bytesPerDay: null })
const writer = new IngestWriter({
  engine: stores.engine,
  sync: () => stores.files.sync(),
  gate: new TelemetryGate(),
  locks: new MemoryPlacementLocks(),
  clock,
  logger: silent,
  commitDelayMs,
  bufferBytes: 2 ** 24,
})
const intake = new Intake({
  writer,
  weeks: new DistantWeeks({ engine: stores.engine, clock }),
  turns,
  decoder: new Decoder({ loop: turns, thread: new ThreadTurns({ nowMs: elapsedMs }), nowMs: elapsedMs }),
  quota: new IngestQuotas({ store: quotaStore, clock: still, logger: silent }),
  lateSelections: () => [],
  onLate: () => {},
  requireRoom: () => {},
  onExport: () => {},
})

const text = JSON.stringify({
  resourceLogs: [
    {
      scopeLogs: [{ logRecords: [{ timeUnixNano: '1767600000000000000', body: { stringValue: 'a line' } }] }],
    },
  ],
})

const send = (tenantId: string, placement: number) => {
  const place = { tenantId, placement }
  const body = Buffer.from(text)
  const wire = { protocol: 'otlp', signal: 'logs', encoding: 'json', coding: 'identity' } as const
  return intake.take(place, 'logs', {
    bodyBytes: body.length,
    isJson: true,
    job: () => ({ ...wire, body, limitBytes: 2 ** 20, place, receivedNs: clock.nowNs() }),
    release: () => {},
  })
}

/** Sends all at once, and lets time pass until they are committed. */
async function sendTogether(requests: readonly (readonly [string, number])[]): Promise<void> {
  const sent = Promise.all(requests.map(([tenantId, placement]) => send(tenantId, placement)))
  let isDone = false
  const done = sent.finally(() => {
    isDone = true
  })
  for (let turnsTaken = 0; turnsTaken < 50; turnsTaken++) await turn()
  while (!isDone) {
    await clock.advance(commitDelayMs)
    await turn()
  }
  await done
}

test('requests that a commit acknowledges are counted by one transaction, and cost no statement each', async () => {
  const tenants = ['acme', 'globex']
  for (const [placement, tenantId] of tenants.entries()) {
    await control
      .insertInto('organisations')
      .values({ tenant_id: tenantId, name: tenantId, placement, created_at_ms: 0 })
      .execute()
  }
  // Limits and the counts of the day are read once.
  await sendTogether(tenants.map((tenantId, placement) => [tenantId, placement]))
  const before = figuresOf(control).statements
  await sendTogether(Array.from({ length: 40 }, (_, at) => [tenants[at % 2] ?? '', at % 2]))
  // Begin, the mark of the batch, the organisations that exist, their counts, commit.
  assert.equal(figuresOf(control).statements - before, 5)
  for (const tenantId of tenants) {
    const [day] = await quotaStore.daysOf(tenantId)
    assert.deepEqual([day?.rowsAccepted, day?.bytes], [21, 21 * text.length])
  }
})
