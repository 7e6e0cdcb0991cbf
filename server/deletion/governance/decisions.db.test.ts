// Decisions about a request, on real stores with a manual clock: cancel, approve, reject, retry, and the end
// of a delay. A decision that is too late or repeated changes nothing, and after a cancel all rows are
// visible again, with those that arrived meanwhile.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import type { Actor } from '../../core/actor.ts'
import { actorText, operatorActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { all, assertRows, between, monday, times, weekNs } from '../deletion-fixture.ts'
import { dayMs, type GovernedScene, governedSceneOf, minuteMs, refuses } from '../governed-fixture.ts'
import { approvalWaitMs, attemptsMax } from '../requests/states.ts'
import { Decisions } from './decisions.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const delayed = { ...firstWeek, delayMinutes: 60 }
const visible = (scene: GovernedScene) => scene.visible(scene.own, 'otel_logs')

/** One more log record, in the week that these tests erase. */
const arrive = (scene: GovernedScene) =>
  insertRows(stores.engine, scene.own, batchOf('otel_logs', [monday + 1n]))

describe('a delayed deletion', () => {
  test('is hidden at once, accepts rows meanwhile, and erases them with the rest when it is due', async () => {
    const scene = await governedSceneOf(stores)
    await assertRows(scene, times.length)
    const { request } = await scene.request(delayed)
    assert.equal(request.status, 'scheduled')
    assert.equal(Date.parse(request.starts_at ?? ''), scene.clock.nowMs() + 60 * minuteMs)
    assert.equal(request.hidden_at, request.created_at)
    assert.equal(await visible(scene), times.length / 2)
    assert.equal(refuses(scene, monday), false, 'for an hour nothing is erased')
    await arrive(scene)
    assert.equal(await visible(scene), times.length / 2, 'rows that arrived are hidden like the rest')
    scene.clock.advance(60 * minuteMs - 1)
    await scene.round()
    assert.equal((await scene.status(request.request_id)).status, 'scheduled')
    assert.equal(await scene.count(scene.own, 'otel_logs'), times.length + 1)
    scene.clock.advance(1)
    await scene.round()
    const done = await scene.status(request.request_id)
    assert.equal(done.status, 'completed')
    assert.equal((done.detail.stores as Record<string, number>).otel_logs, times.length / 2 + 1)
    await assertRows(scene, times.length / 2)
    assert.deepEqual(await scene.moves(request.request_id), [
      'scheduled',
      'running',
      'verifying',
      'completed',
    ])
  })

  test('that is cancelled shows everything again, with the rows that arrived meanwhile, and is cancelled once', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request(delayed)
    await arrive(scene)
    assert.equal(await visible(scene), times.length / 2)
    await scene.decisions.cancel(scene.callerOf('admin'), request.request_id)
    assert.equal(await visible(scene), times.length + 1)
    await scene.decisions.cancel(scene.callerOf('another'), request.request_id)
    const cancelled = await scene.status(request.request_id)
    assert.equal(cancelled.status, 'cancelled')
    assert.ok(cancelled.finished_at)
    assert.equal(cancelled.removed_at, null)
    scene.clock.advance(dayMs)
    await scene.round()
    assert.equal(await visible(scene), times.length + 1)
    assert.equal(await scene.count(scene.own, 'otel_traces'), times.length)
    assert.deepEqual(await scene.moves(request.request_id), ['scheduled', 'cancelled'])
    assert.deepEqual(
      (await scene.acts(request.request_id)).map(({ actor, action }) => [actor, action]),
      [
        ['token:owner (tok_owner)', 'deletion.requested'],
        ['token:admin (tok_admin)', 'deletion.cancelled'],
      ],
    )
    assert.ok((await scene.request(delayed)).isNew, 'the same selection is a new request')
  })

  test('stays hidden over a restart, and rows are still accepted', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request(delayed)
    const { gate, worker } = scene.restarted()
    assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length)
    await worker.restore()
    assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
    assert.equal(refuses({ ...scene, gate }, monday), false)
    assert.equal((await scene.status(request.request_id)).status, 'scheduled')
  })

  test('starts later, not earlier, where the clock was set back, and can be cancelled until then', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request(delayed)
    scene.clock.advance(-30 * dayMs)
    await scene.round()
    scene.clock.advance(30 * dayMs)
    await scene.round()
    assert.equal((await scene.status(request.request_id)).status, 'scheduled')
    await assertRows(scene, times.length)
    await scene.decisions.cancel(scene.callerOf('owner'), request.request_id)
    assert.equal(await visible(scene), times.length)
  })

  test('is either cancelled or begun where both are tried at once, and the gate agrees', async () => {
    for (const isCancelFirst of [true, false]) {
      const scene = await governedSceneOf(stores)
      const { request } = await scene.request(delayed)
      scene.clock.advance(60 * minuteMs)
      const cancel = () => scene.decisions.cancel(scene.callerOf('owner'), request.request_id)
      const race = isCancelFirst ? [cancel(), scene.round()] : [scene.round(), cancel()]
      const [first, second] = await Promise.allSettled(race)
      const { status } = await scene.status(request.request_id)
      const cancelled = isCancelFirst ? first : second
      assert.equal(cancelled?.status, status === 'cancelled' ? 'fulfilled' : 'rejected')
      assert.ok(status === 'cancelled' || status === 'completed', status)
      assert.equal(await visible(scene), status === 'cancelled' ? times.length : times.length / 2)
      assert.equal(refuses(scene, monday), false)
      await assertRows(scene, status === 'cancelled' ? times.length : times.length / 2)
    }
  })
})

test('a request that runs, has failed or is final can’t be cancelled', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  const cancel = () => scene.decisions.cancel(scene.callerOf('owner'), request.request_id)
  await assert.rejects(cancel(), { code: 'deletion_state' })
  scene.faults.failOnceAt('planned')
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'incomplete')
  await assert.rejects(cancel(), { code: 'deletion_state' })
  scene.clock.advance(minuteMs)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  await assert.rejects(cancel(), { code: 'deletion_state' })
  await assert.rejects(scene.decisions.cancel(scene.callerOf('owner'), 'del_0'), { code: 'not_found' })
  const stranger = { ...scene.callerOf('owner'), tenantId: scene.neighbour.tenantId }
  for (const act of ['cancel', 'approve', 'retry', 'verify'] as const) {
    await assert.rejects(scene.decisions[act](stranger, request.request_id), { code: 'not_found' })
  }
})

describe('a deletion that waits for a second person', () => {
  /** A scene whose policy asks for approval of everything, and a request that waits. */
  async function waitingScene(draft = firstWeek, requester: Actor = tokenNamed('ada')) {
    const scene = await governedSceneOf(stores)
    await scene.policies.set(scene.own.tenantId, 'every_deletion', tokenNamed('owner'))
    const { request } = await scene.request(draft, requester)
    assert.equal(request.status, 'awaiting_approval')
    return { scene, request }
  }

  test('hides nothing until another person approves it, and then continues like any other', async () => {
    const { scene, request } = await waitingScene()
    assert.equal(request.hidden_at, null)
    assert.equal(Date.parse(request.approve_by ?? ''), scene.clock.nowMs() + approvalWaitMs)
    await scene.round()
    assert.equal(await visible(scene), times.length)
    await assert.rejects(scene.decisions.approve(scene.callerOf('ada'), request.request_id), {
      code: 'own_request',
    })
    assert.equal(await visible(scene), times.length)
    scene.clock.advance(dayMs)
    await scene.decisions.approve(scene.callerOf('ben'), request.request_id)
    assert.equal(await visible(scene), times.length / 2)
    const approved = await scene.status(request.request_id)
    assert.deepEqual([approved.status, approved.approved_by], ['scheduled', 'token:ben (tok_ben)'])
    assert.equal(Date.parse(approved.hidden_at ?? ''), scene.clock.nowMs())
    await assert.rejects(scene.decisions.approve(scene.callerOf('cleo'), request.request_id), {
      code: 'deletion_state',
    })
    await assertRows(scene, times.length)
    await scene.round()
    assert.equal((await scene.status(request.request_id)).status, 'completed')
    await assertRows(scene, times.length / 2)
    assert.deepEqual(await scene.moves(request.request_id), [
      'awaiting_approval',
      'scheduled',
      'running',
      'verifying',
      'completed',
    ])
    assert.deepEqual(
      (await scene.acts(request.request_id)).map(({ actor, action }) => [actor, action]),
      [
        ['token:ada (tok_ada)', 'deletion.requested'],
        ['token:ben (tok_ben)', 'deletion.approve'],
        ['system:deletion', 'deletion.completed'],
      ],
    )
  })

  test('is not approved with a token that its requester may have made', async () => {
    const scene = await governedSceneOf(stores)
    const { tenantId } = scene.own
    const tenancy = new TenancyStore(stores.control, scene.clock)
    await tenancy.createOrganisation(
      { tenantId, name: tenantId, actor: operatorActor('command-line') },
      async () => {},
    )
    const make = async (actor: Actor, name: string) => {
      const secret = newTokenSecret('admin')
      await tenancy.createToken({ tenantId, name, role: 'admin', secret, expiresAtMs: null, actor })
      return (await tenancy.findCaller(secret)) ?? assert.fail()
    }
    const ada = await make(operatorActor('command-line'), 'ada')
    const ben = await make(operatorActor('command-line'), 'ben')
    const second = await make(ada.requester, 'another')
    const third = await make(ada.requester, 'x (tok_fake)')
    await scene.policies.set(tenantId, 'every_deletion', tokenNamed('owner'))
    const { request } = await scene.request(firstWeek, second.requester)
    for (const caller of [second, ada, third]) {
      await assert.rejects(scene.decisions.approve(caller, request.request_id), { code: 'own_request' })
    }
    assert.equal((await scene.status(request.request_id)).status, 'awaiting_approval')
    await scene.decisions.approve(ben, request.request_id)
    assert.equal((await scene.status(request.request_id)).approved_by, actorText(ben.requester))
  })

  test('expires after thirty days, can’t be approved or rejected any more, and was never hidden', async () => {
    const { scene, request } = await waitingScene()
    const { decisions } = scene
    scene.clock.advance(approvalWaitMs - 1)
    await scene.round()
    assert.equal((await scene.status(request.request_id)).status, 'awaiting_approval')
    scene.clock.advance(1)
    const late = { code: 'deletion_state', message: /not approved in time/ }
    await assert.rejects(decisions.approve(scene.callerOf('ben'), request.request_id), late)
    await assert.rejects(decisions.reject(scene.callerOf('ben'), request.request_id, 'no'), late)
    await scene.round()
    const expired = await scene.status(request.request_id)
    assert.equal(expired.status, 'expired')
    assert.ok(expired.finished_at)
    await assertRows(scene, times.length)
    assert.equal(await visible(scene), times.length)
    assert.deepEqual(
      (await scene.acts(request.request_id)).map(({ action }) => action),
      ['deletion.requested', 'deletion.expired'],
    )
  })

  test('is not approved where its time ends while the approval waits', async () => {
    const { scene, request } = await waitingScene()
    const { clock, requests, requestStore, worker } = scene
    const decisions = new Decisions({
      ...{ clock, requests, requestStore },
      verifyAgain: worker.verifyAgain.bind(worker),
      areRelated: async () => {
        clock.advance(approvalWaitMs)
        return false
      },
    })
    const late = { code: 'deletion_state', message: /not approved in time/ }
    await assert.rejects(decisions.approve(scene.callerOf('ben'), request.request_id), late)
    const { hidden_at, status } = await scene.status(request.request_id)
    assert.deepEqual([status, hidden_at, await visible(scene)], ['awaiting_approval', null, times.length])
  })

  test('waits longer, not shorter, where the clock was set back', async () => {
    const { scene, request } = await waitingScene()
    scene.clock.advance(-dayMs)
    await scene.round()
    assert.equal((await scene.status(request.request_id)).status, 'awaiting_approval')
    await scene.decisions.approve(scene.callerOf('ben'), request.request_id)
    assert.equal((await scene.status(request.request_id)).status, 'scheduled')
  })

  test('is rejected with a reason that the ledger keeps', async () => {
    const { scene, request } = await waitingScene()
    await scene.decisions.reject(scene.callerOf('ben'), request.request_id, 'still needed')
    const rejected = await scene.status(request.request_id)
    assert.equal(rejected.status, 'rejected')
    assert.ok(rejected.finished_at)
    const last = (await scene.ledgerEntries()).at(-1)
    assert.deepEqual(
      [last?.to_status, last?.actor, last?.facts.reason],
      ['rejected', 'token:ben (tok_ben)', 'still needed'],
    )
    for (const act of ['approve', 'cancel', 'retry'] as const) {
      await assert.rejects(scene.decisions[act](scene.callerOf('cleo'), request.request_id), {
        code: 'deletion_state',
      })
    }
    await scene.round()
    await assertRows(scene, times.length)
  })

  test('is moved by one of two concurrent decisions; the other is refused, and the gate agrees', async () => {
    const { scene } = await waitingScene()
    const decide = {
      approve: (id: string) => scene.decisions.approve(scene.callerOf('ben'), id),
      cancel: (id: string) => scene.decisions.cancel(scene.callerOf('cleo'), id),
      reject: (id: string) => scene.decisions.reject(scene.callerOf('cleo'), id, 'no'),
    }
    const ends = { approve: 'scheduled', cancel: 'cancelled', reject: 'rejected' } as const
    let minutes = 1n
    for (const [one, other] of [
      ['approve', 'cancel'],
      ['cancel', 'approve'],
      ['approve', 'reject'],
      ['reject', 'approve'],
      ['reject', 'cancel'],
    ] as const) {
      const { request } = await scene.request(between(null, monday + weekNs + minutes++), tokenNamed('ada'))
      const id = request.request_id
      const [first, second] = await Promise.allSettled([decide[one](id), decide[other](id)])
      const isFirst = first.status === 'fulfilled'
      assert.deepEqual(
        [first, second].filter(({ status }) => status === 'fulfilled').length,
        1,
        `${one}, ${other}`,
      )
      const refused = isFirst ? second : first
      assert.equal(refused.status === 'rejected' && refused.reason.code, 'deletion_state')
      const won = isFirst ? one : other
      assert.equal((await scene.status(id)).status, ends[won])
      const isHidden = scene.gate.hidden(scene.own.tenantId).some((hidden) => hidden.id === id)
      assert.equal(isHidden, won === 'approve')
      assert.deepEqual(await scene.moves(id), ['awaiting_approval', ends[won]])
    }
  })

  test('is approved once where two approve at once', async () => {
    const { scene, request } = await waitingScene()
    const approvals = ['ben', 'cleo'].map((name) =>
      scene.decisions.approve(scene.callerOf(name), request.request_id),
    )
    const settled = await Promise.allSettled(approvals)
    assert.deepEqual(settled.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.equal(await visible(scene), times.length / 2, 'the later decision doesn’t show it again')
    assert.deepEqual(await scene.moves(request.request_id), ['awaiting_approval', 'scheduled'])
  })
})

test('a retry keeps the count of attempts and starts a new limit, so that a failed request is tried again', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(all)
  const id = request.request_id
  const retry = () => scene.decisions.retry(scene.callerOf('admin'), id)
  await assert.rejects(retry(), { code: 'deletion_state' })
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    scene.faults.failOnceAt('planned')
    await scene.round()
    const ended = await scene.status(id)
    assert.deepEqual([ended.status, ended.detail.attempts], ['incomplete', attempt])
    const waitMs = Date.parse(String(ended.detail.next_attempt_at)) - scene.clock.nowMs()
    assert.equal(waitMs, Math.min(300_000, 1000 * 2 ** (attempt - 1)))
    await scene.round()
    assert.equal((await scene.status(id)).detail.attempts, attempt, 'not before it is due')
    scene.clock.advance(waitMs)
  }
  await scene.round()
  const failed = await scene.status(id)
  assert.equal(failed.status, 'failed')
  assert.match(String(failed.detail.blocked_reason), /10 attempts failed/)
  assert.ok(failed.finished_at)
  assert.equal(await visible(scene), 0)
  assert.equal(refuses(scene, monday), true)
  await retry()
  await assert.rejects(retry(), { code: 'deletion_state' }, 'it runs')
  assert.equal((await scene.status(id)).finished_at, null)
  scene.faults.failOnceAt('planned')
  await scene.round()
  const again = await scene.status(id)
  assert.deepEqual(
    [again.status, again.detail.attempts],
    ['incomplete', attemptsMax + 1],
    'given another ten',
  )
  await retry()
  await scene.round()
  const done = await scene.status(id)
  assert.deepEqual([done.status, done.detail.attempts], ['completed', attemptsMax + 2])
  await assertRows(scene, 0)
  const acts = (await scene.acts(id)).map(({ action }) => action)
  assert.deepEqual(acts, [
    'deletion.requested',
    'deletion.failed',
    'deletion.start',
    'deletion.start',
    'deletion.completed',
  ])
})

test('a clock that is set back never lengthens a wait beyond the longest pause', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  scene.faults.failOnceAt('planned')
  await scene.round()
  scene.clock.advance(-dayMs)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  await assertRows(scene, times.length / 2)
})
