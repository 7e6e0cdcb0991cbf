// Legal holds against erasures, on real stores. Held rows stay, complete and hidden, while the hold is in
// force; the rest is erased at once; after the release the held rows are erased without another request. The
// neighbour keeps the same rows throughout.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import type { Actor } from '../../core/actor.ts'
import { operatorActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { sql } from '../../telemetry/sql.ts'
import {
  all,
  assertRows,
  between,
  hourNs,
  monday,
  type SceneOptions,
  times,
  weekNs,
} from '../deletion-fixture.ts'
import { enrol, type GovernedScene, governedSceneOf, minuteMs, refuses } from '../governed-fixture.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { attemptsMax } from '../requests/states.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

/** To the nanosecond: the row at hour 9 is not held and the one at hour 29 is. */
const held = { startNs: monday + 9n * hourNs + 1n, endNs: monday + 29n * hourNs + 1n }
const heldRows = 20

async function begun(draft: DeletionDraft, isShared = false, more: SceneOptions = {}) {
  const scene = await governedSceneOf(stores, { isShared, ...more })
  await enrol(stores.control, scene.own.tenantId)
  await assertRows(scene, times.length)
  const { request } = await scene.request(draft)
  return { scene, id: request.request_id }
}

async function release(scene: GovernedScene, holdId: string, by: Actor = tokenNamed('owner')): Promise<void> {
  await scene.holds.release(scene.own.tenantId, holdId, by)
}

for (const isShared of [false, true]) {
  const where = isShared ? 'a placement shared with the neighbour' : 'a placement of its own'
  test(`in ${where} the rest is erased, and held rows stay hidden until the release and are then erased`, async () => {
    const { scene, id } = await begun(all, isShared)
    const hold = await scene.hold(held)
    await scene.round()
    const waiting = await scene.status(id)
    assert.equal(waiting.status, 'held')
    assert.deepEqual(waiting.detail.held_by, [hold.hold_id])
    assert.match(String(waiting.detail.blocked_reason), new RegExp(hold.hold_id))
    assert.equal(waiting.detail.rows_erased, (times.length - heldRows) * scene.tables.length)
    assert.deepEqual([waiting.removed_at, waiting.verified_at, waiting.finished_at], [null, null, null])
    await assertRows(scene, heldRows)
    assert.equal(await scene.visible(scene.own, 'otel_logs'), 0)
    assert.equal(refuses(scene, monday), false, 'a hold may last for years')
    const [first, last] = await edges(scene)
    assert.deepEqual([first, last], [monday + 10n * hourNs, monday + 29n * hourNs])
    await assert.rejects(scene.decisions.cancel(scene.callerOf('owner'), id), { code: 'deletion_state' })
    await scene.round()
    assert.equal((await scene.status(id)).detail.attempts, 1, 'nothing is tried while it is held')
    await insertRows(stores.engine, scene.own, batchOf('otel_logs', [monday]))
    assert.equal(await scene.visible(scene.own, 'otel_logs'), 0)
    await release(scene, hold.hold_id)
    await scene.round()
    const done = await scene.status(id)
    assert.equal(done.status, 'completed')
    assert.ok(done.removed_at && done.verified_at)
    assert.equal(done.detail.rows_erased, times.length * scene.tables.length + 1)
    assert.deepEqual(done.detail.held_by, [])
    await assertRows(scene, 0)
    assert.deepEqual(await scene.moves(id), [
      'running',
      'verifying',
      'held',
      'running',
      'verifying',
      'completed',
    ])
    const acts = (await scene.acts(id)).map(({ action }) => action)
    assert.deepEqual(acts, ['deletion.requested', 'deletion.hold', 'deletion.release', 'deletion.completed'])
  })
}

/** Earliest and latest instant of the organisation's log records. */
async function edges(scene: GovernedScene): Promise<bigint[]> {
  const [row] = await stores.engine.select<{ first: string; last: string }>(
    sql`select toUnixTimestamp64Nano(min(Timestamp)) as first, toUnixTimestamp64Nano(max(Timestamp)) as last
        from otel_logs where TenantId = ${scene.own.tenantId}`,
  )
  return [BigInt(row?.first ?? 0), BigInt(row?.last ?? 0)]
}

test('two holds keep their own rows; after the release of one, rows that the other doesn’t cover are erased', async () => {
  const { scene, id } = await begun(all)
  const first = await scene.hold(held)
  const second = await scene.hold({ startNs: monday + 20n * hourNs, endNs: monday + 40n * hourNs })
  await scene.round()
  await assertRows(scene, 30)
  // Both were placed in the same millisecond, so their ids have no order.
  const heldBy = new Set((await scene.status(id)).detail.held_by as string[])
  assert.deepEqual(heldBy, new Set([first.hold_id, second.hold_id]))
  await release(scene, first.hold_id)
  await scene.round()
  const still = await scene.status(id)
  assert.deepEqual([still.status, still.detail.held_by], ['held', [second.hold_id]])
  await assertRows(scene, 20)
  await release(scene, second.hold_id)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, 0)
})

test('a hold of some signals keeps only those', async () => {
  const { scene, id } = await begun(all)
  const hold = await scene.hold({ signals: ['logs'] })
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  assert.equal(await scene.visible(scene.own, 'otel_logs'), 0)
  for (const name of scene.tables.filter((table) => table !== 'otel_logs')) {
    assert.equal(await scene.count(scene.own, name), 0, name)
    assert.equal(await scene.count(scene.neighbour, name), times.length, name)
  }
  await release(scene, hold.hold_id)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, 0)
})

test('a hold of other signals, of another time, of another organisation or a released one keeps nothing', async () => {
  const { scene, id } = await begun({ ...between(null, monday + weekNs), signals: ['traces'] })
  await scene.hold({ signals: ['metrics', 'logs'] })
  await scene.hold({ startNs: monday + weekNs })
  await scene.holds.place(scene.neighbour.tenantId, { case_ref: 'theirs' }, tokenNamed('owner'))
  await release(scene, (await scene.hold()).hold_id)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  assert.equal(await scene.count(scene.own, 'otel_traces'), times.length / 2)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  assert.equal(await scene.count(scene.neighbour, 'otel_traces'), times.length)
})

test('a hold that is placed between two steps applies from the next step on', async () => {
  const { scene, id } = await begun(all, true)
  let erasedBefore = 0
  scene.faults.runAt('step recorded', async () => {
    if (erasedBefore > 0) return
    erasedBefore = Number((await scene.status(id)).detail.rows_erased)
    await scene.hold()
  })
  await scene.round()
  const waiting = await scene.status(id)
  assert.equal(waiting.status, 'held')
  assert.equal(waiting.detail.rows_erased, erasedBefore, 'only the step that had begun')
  assert.ok(erasedBefore > 0 && erasedBefore <= times.length)
  const left = await Promise.all(scene.tables.map((name) => scene.count(scene.own, name)))
  assert.equal(
    left.reduce((sum, rows) => sum + rows, 0),
    times.length * scene.tables.length - erasedBefore,
  )
  for (const name of scene.tables) {
    assert.equal(await scene.visible(scene.own, name), 0)
    assert.equal(await scene.count(scene.neighbour, name), times.length)
  }
})

test('a hold waits for the step that acts, so that the rows it reports as held exist', async () => {
  const { scene, id } = await begun(all)
  let isPlaced = false
  scene.faults.runAt('before partition step', async () => {
    if (isPlaced) return
    isPlaced = true
    void scene.hold()
    await new Promise<void>((resolve) => setImmediate(resolve))
    assert.deepEqual(await scene.holds.active(scene.own.tenantId), [], 'not while a step acts')
  })
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal((await scene.count(scene.own, 'otel_logs')) > 0, true)
})

/** A range whose edge lies inside a partition, so that survivors are swapped in. */
const cut = between(null, monday + 50n * hourNs)

for (const isShared of [false, true]) {
  test(`a hold is refused while a promised swap would remove what it covers, and placed after the swap, ${isShared ? 'beside a neighbour' : 'alone'}`, async () => {
    const { scene, id } = await begun({ ...cut, signals: ['logs'] }, isShared)
    scene.faults.failOnceAt('swap promised')
    await scene.round()
    assert.equal((await scene.status(id)).status, 'incomplete')
    assert.equal(await scene.count(scene.own, 'otel_logs'), times.length, 'the swap is not made')
    await assert.rejects(scene.hold(held), { code: 'erasing', retryAfterSeconds: 1 })
    assert.deepEqual(await scene.holds.active(scene.own.tenantId), [])
    const later = await scene.hold({ startNs: monday + 50n * hourNs, endNs: monday + 60n * hourNs })
    assert.ok(later.hold_id, 'the rows that the swap leaves can be held')
    const theirs = await scene.holds.place(
      scene.neighbour.tenantId,
      { case_ref: 'theirs' },
      tokenNamed('owner'),
    )
    assert.ok(theirs.hold_id)
    await scene.round()
    const { hold_id } = await scene.hold(held)
    scene.clock.advance(minuteMs)
    await scene.round()
    const done = await scene.status(id)
    assert.deepEqual(
      [done.status, done.detail.rows_erased],
      ['completed', 50],
      'the hold came too late for it',
    )
    assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 50)
    assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
    assert.ok(hold_id)
  })
}

test('a hold is placed at once where an attempt failed after its swap', async () => {
  const { scene, id } = await begun({ ...cut, signals: ['logs'] })
  scene.faults.failOnceAt('partition replaced')
  await scene.round()
  assert.equal((await scene.status(id)).status, 'incomplete')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 50, 'the swap is made')
  assert.ok((await scene.hold(held)).hold_id)
})

test('a hold is placed at once, and applies, where a retry was requested and has not begun', async () => {
  const { scene, id } = await begun({ ...cut, signals: ['logs'] })
  scene.faults.failOnceAt('before partition step')
  await scene.round()
  assert.equal((await scene.status(id)).status, 'incomplete')
  await scene.decisions.retry(scene.callerOf('admin'), id)
  assert.equal((await scene.status(id)).status, 'running')
  assert.ok((await scene.hold(held)).hold_id)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 50 + heldRows)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('a hold that is placed while survivors are copied keeps its rows', async () => {
  const { scene, id } = await begun({ ...cut, signals: ['logs'] }, true, { fewRows: 0 })
  let isPlaced = false
  scene.faults.runAt('survivors copied ahead', async () => {
    if (!isPlaced) await scene.hold(held)
    isPlaced = true
  })
  await scene.round()
  assert.ok(isPlaced)
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 50 + heldRows)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('a hold that is released while survivors are copied keeps nothing: what it covered leaves the copy too', async () => {
  const { scene, id } = await begun({ ...cut, signals: ['logs'] }, true, { fewRows: 0 })
  const hold = await scene.hold(held)
  let isReleased = false
  scene.faults.runAt('survivors copied ahead', async () => {
    if (!isReleased) await release(scene, hold.hold_id)
    isReleased = true
  })
  await scene.round()
  assert.ok(isReleased)
  assert.equal((await scene.status(id)).status, 'completed')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 50)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('a hold of another process is refused while a step acts, and read by the next step', async () => {
  const { scene, id } = await begun({ ...cut, signals: ['logs'] })
  const place = () =>
    scene.holds.place(scene.own.tenantId, { case_ref: 'order' }, operatorActor('command-line'))
  let isTried = false
  scene.faults.runAt('survivors copied', async () => {
    isTried = true
    await assert.rejects(place(), { code: 'erasing' })
  })
  await scene.round()
  assert.ok(isTried)
  assert.equal((await scene.status(id)).status, 'completed')
  await place()
  const { request } = await scene.request(all)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'held')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 50)
})

test('a hold that another process places after a step has read the holds ends the step before it acts', async () => {
  const { scene, id } = await begun({ ...cut, signals: ['logs'] })
  const place = () =>
    scene.holds.place(scene.own.tenantId, { case_ref: 'order' }, operatorActor('command-line'))
  const active = scene.holds.active.bind(scene.holds)
  let reads = 0
  scene.faults.runAt('planned', () => {
    // From here the first reader of the holds is the step that acts.
    scene.holds.active = async (tenantId) => {
      const seen = await active(tenantId)
      if (++reads === 1) await place()
      return seen
    }
  })
  await scene.round()
  const ended = await scene.status(id)
  assert.equal(ended.status, 'incomplete')
  assert.match(String(ended.detail.blocked_reason), /legal hold was placed/)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  scene.clock.advance(minuteMs)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
})

test('a release during the end of an attempt is noticed: the rows are erased before the request completes', async () => {
  const { scene, id } = await begun(all)
  const hold = await scene.hold(held)
  scene.faults.runAt('before read-back', () => release(scene, hold.hold_id))
  await scene.round()
  assert.notEqual((await scene.status(id)).status, 'completed')
  await assertRows(scene, heldRows)
  scene.clock.advance(minuteMs)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, 0)
})

test('a completed deletion always has a time of removal, also where the hold covered no rows', async () => {
  const { scene, id } = await begun(all)
  const hold = await scene.hold({ endNs: monday })
  scene.faults.runAt('before read-back', () => release(scene, hold.hold_id))
  await scene.round()
  const ended = await scene.status(id)
  assert.equal(ended.removed_at === null, ended.status !== 'completed')
  scene.clock.advance(minuteMs)
  await scene.round()
  const done = await scene.status(id)
  assert.equal(done.status, 'completed')
  assert.ok(done.removed_at)
})

test('a deletion that is completely held has erased nothing and can be cancelled; the telemetry is visible again', async () => {
  const { scene, id } = await begun(between(null, monday + weekNs))
  const hold = await scene.hold()
  assert.equal(refuses(scene, monday), true)
  await scene.round()
  const waiting = await scene.status(id)
  assert.deepEqual([waiting.status, waiting.detail.attempts], ['held', 0])
  assert.deepEqual(
    scene.journal,
    [],
    'a request that may still be cancelled must not become an erasure after a restore',
  )
  assert.equal(refuses(scene, monday), false)
  await assertRows(scene, times.length)
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length / 2)
  await scene.decisions.cancel(scene.callerOf('owner'), id)
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
  await release(scene, hold.hold_id)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'cancelled')
  await assertRows(scene, times.length)
})

test('a request whose attempt has begun to erase can’t be cancelled when a hold stops it afterwards', async () => {
  const { scene, id } = await begun(all)
  const stopping = new AbortController()
  scene.faults.runAt('step recorded', () => stopping.abort())
  await scene.worker.round(stopping.signal)
  assert.ok(Number((await scene.status(id)).detail.rows_erased) > 0)
  await scene.hold()
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  await assert.rejects(scene.decisions.cancel(scene.callerOf('owner'), id), { code: 'deletion_state' })
  assert.equal(await scene.visible(scene.own, 'otel_traces'), 0)
})

test('a deletion under a hold has not failed: it never fails for that, however often', async () => {
  const { scene, id } = await begun(all)
  await stores.control
    .updateTable('deletion_requests')
    .set({ attempts: attemptsMax - 1 })
    .where('request_id', '=', id)
    .execute()
  const hold = await scene.hold(held)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  await release(scene, hold.hold_id)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
})

test('held rows stay hidden over a restart, and the erasure continues by itself afterwards', async () => {
  const { scene, id } = await begun(all)
  const hold = await scene.hold(held)
  await scene.round()
  const next = scene.restarted()
  await next.worker.restore()
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal(await scene.visible(scene.own, 'otel_logs', next.gate), 0)
  assert.equal(refuses({ ...scene, gate: next.gate }, monday), false)
  await assertRows(scene, heldRows)
  await release(scene, hold.hold_id)
  await next.worker.round(new AbortController().signal)
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, 0)
  assert.deepEqual(next.gate.hidden(scene.own.tenantId), [])
})

test('a hold of the operator is released only by the operator, once, and stays recorded', async () => {
  const { scene, id } = await begun(all)
  const hold = await scene.hold(held, operatorActor('cli'))
  await scene.round()
  await assert.rejects(release(scene, hold.hold_id), { code: 'role_not_permitted' })
  await assert.rejects(scene.holds.release(scene.neighbour.tenantId, hold.hold_id, tokenNamed('owner')), {
    code: 'not_found',
  })
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  await release(scene, hold.hold_id, operatorActor('cli'))
  await release(scene, hold.hold_id, operatorActor('another'))
  const released = await scene.holds.get(scene.own.tenantId, hold.hold_id)
  assert.equal(released.released_by, 'operator:cli')
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  const acts = await scene.acts(hold.hold_id)
  assert.deepEqual(
    acts.map(({ actor, action }) => [actor, action]),
    [
      ['operator:cli', 'legal_hold.placed'],
      ['operator:cli', 'legal_hold.released'],
    ],
  )
})

test('a held request delays no other request of its organisation', async () => {
  const { scene, id } = await begun(between(null, monday + weekNs))
  await scene.hold({ endNs: monday + weekNs })
  const other = await scene.request(between(monday + weekNs, monday + 2n * weekNs))
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  assert.equal((await scene.status(other.request.request_id)).status, 'completed')
  await assertRows(scene, times.length / 2)
})

test('the holds of an organisation are read as often for two held requests as for one', async () => {
  const { scene, id } = await begun(between(null, monday + weekNs))
  await scene.hold({ endNs: monday + 2n * weekNs })
  await scene.round()
  let reads = 0
  const active = scene.holds.active.bind(scene.holds)
  scene.holds.active = (tenantId) => {
    reads++
    return active(tenantId)
  }
  const readsOfRound = async () => {
    reads = 0
    await scene.round()
    return reads
  }
  const ofOne = await readsOfRound()
  const other = await scene.request(between(monday + weekNs, monday + 2n * weekNs))
  await scene.round()
  const ids = [id, other.request.request_id]
  const statuses = await Promise.all(ids.map(async (one) => (await scene.status(one)).status))
  assert.deepEqual(statuses, ['held', 'held'])
  assert.deepEqual([ofOne > 0, await readsOfRound()], [true, ofOne])
})
