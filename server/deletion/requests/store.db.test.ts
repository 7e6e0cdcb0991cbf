// Every write to a request on a real control plane: an update that changes no row is noticed, and a
// transaction that can't commit leaves neither a row nor anything that is hidden.

import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { readChain } from '../../audit/log.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { ProcessFences } from '../../telemetry/fences.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { all, storeShowing } from '../deletion-fixture.ts'
import { DeletionPolicies } from '../governance/policy.ts'
import { LateRowCounts } from './late-row-counts.ts'
import { RequestQueries } from './queries.ts'
import { noProgress, type StoredDeletion } from './request.ts'
import type { RequestStore } from './store.ts'
import { Visibility } from './visibility.ts'

const { control, close, shell } = await openControlPlane()
after(close)

const clock = new ManualClock(1_767_000_000_000)
const requests = new RequestQueries(control, async () => ({ all: [], fromBefore: () => [] }))
const by = { actor: tokenNamed('owner') }
let tenantId = ''
let gate: TelemetryGate
let store: RequestStore
let organisations = 0

beforeEach(() => {
  tenantId = `organisation-${++organisations}`
  gate = new TelemetryGate()
  store = storeShowing(new Visibility(new ProcessFences(gate), clock), control, clock)
})

async function created(delayMinutes = 0): Promise<StoredDeletion> {
  const { row } = await store.create(
    tenantId,
    { ...all, delayMinutes },
    { requester: tokenNamed('owner'), idempotencyKey: null },
  )
  return requests.stored(tenantId, row.request_id)
}

const hiddenNow = () => gate.hidden(tenantId).length
const refusesNow = () =>
  gate.refuses({ tenantId, placement: 0 }, [{ table: 'otel_logs', minTimeNs: 0n, maxTimeNs: 0n }])
const entries = async () => (await readChain(control, 'ledger_entries', tenantId)).length

describe('an update of a request that has moved meanwhile', () => {
  test('counts no attempt', async () => {
    const seen = await created()
    await store.move(seen, 'interrupt', by)
    assert.equal(await store.countAttempt(seen), null)
    assert.equal((await requests.stored(tenantId, seen.requestId)).attempts, 0)
  })

  test('counts no attempt twice, though the state is the same', async () => {
    const seen = await created()
    assert.equal((await store.countAttempt(seen))?.attempts, 1)
    assert.equal(await store.countAttempt(seen), null)
    assert.equal((await requests.stored(tenantId, seen.requestId)).attempts, 1)
  })

  test('throws where progress would be lost', async () => {
    const seen = await created()
    const progress = { ...noProgress, rows_erased: 7 }
    await store.saveProgress(seen, progress)
    assert.equal((await requests.stored(tenantId, seen.requestId)).progress.rows_erased, 7)
    await store.countAttempt(seen)
    await assert.rejects(store.saveProgress(seen, { ...progress, rows_erased: 8 }), /was moved/)
    assert.equal((await requests.stored(tenantId, seen.requestId)).progress.rows_erased, 7)
  })

  test('moves nothing, and changes nothing that readers and writers see', async () => {
    const seen = await created(60)
    await store.move(seen, 'start', by)
    assert.equal(await store.move(seen, 'cancel', by), null)
    assert.deepEqual([hiddenNow(), refusesNow(), await entries()], [1, true, 2])
  })
})

test('late rows of an unknown request are reported, and those of others are not lost', async () => {
  const { requestId } = await created()
  const counts = new LateRowCounts(store)
  counts.add(new Map([[requestId, 5]]))
  await counts.flush()
  counts.add(new Map([[requestId, 2]]))
  counts.add(new Map([['del_unknown', 1]]))
  await assert.rejects(counts.flush(), /del_unknown/)
  assert.equal((await requests.get(tenantId, requestId)).late_rows, 5)
  await assert.rejects(counts.flush(), /del_unknown/, 'they are counted again')
})

describe('a transaction that can’t commit', () => {
  async function withoutCommits(work: () => Promise<void>): Promise<void> {
    const goOn = await shell.failCommits()
    try {
      await work()
    } finally {
      await goOn()
    }
  }

  test('for a creation leaves no request, and nothing hidden or refused', async () => {
    await withoutCommits(() => assert.rejects(created(), /FOREIGN KEY|foreign key/))
    assert.deepEqual([hiddenNow(), refusesNow(), await entries()], [0, false, 0])
    assert.deepEqual(await requests.list(tenantId, { limit: 10, beforeId: null, status: null }), [])
  })

  test('for an approval hides nothing', async () => {
    await new DeletionPolicies(control, clock).set(tenantId, 'every_deletion', tokenNamed('owner'))
    const seen = await created()
    assert.equal(seen.status, 'awaiting_approval')
    await withoutCommits(() => assert.rejects(store.move(seen, 'approve', by), /FOREIGN KEY|foreign key/))
    assert.deepEqual([hiddenNow(), refusesNow(), await entries()], [0, false, 1])
    await store.move(seen, 'approve', by)
    assert.deepEqual([hiddenNow(), refusesNow()], [1, false])
  })

  test('for a cancellation or a start keeps the selection hidden, and refuses nothing', async () => {
    const seen = await created(60)
    for (const event of ['cancel', 'start'] as const) {
      await withoutCommits(() => assert.rejects(store.move(seen, event, by), /FOREIGN KEY|foreign key/))
      assert.deepEqual([hiddenNow(), refusesNow(), await entries()], [1, false, 1])
    }
    await store.move(seen, 'cancel', by)
    assert.deepEqual([hiddenNow(), refusesNow()], [0, false])
  })
})
