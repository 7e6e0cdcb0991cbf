// The look at what a deletion would leave, where others use the engine too, or it fails: a reader can't delay
// the hiding, nobody is kept from it by other organisations, and what is hidden stays hidden. On real stores;
// the neighbour's identical rows stay.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openStores, type Stores, silent } from '../../../tests/fixtures.ts'
import { operatorActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { clearRunResults } from '../../detection/anomalies/anomaly-erasure.ts'
import { EngineError, type TenantPlace } from '../../telemetry/engine.ts'
import { sql } from '../../telemetry/sql.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { readingOf } from '../../worker/clock-watch.ts'
import { remainingInTurns, waitingLooksMax } from '../attempt/remaining-rows.ts'
import { assertRows, between, hourNs, monday, storeShowing, times, weekNs } from '../deletion-fixture.ts'
import { FailingEngine, governedSceneOf, minuteMs } from '../governed-fixture.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { RequestStore } from '../requests/store.ts'
import { retentionRetest } from '../retention/store.ts'
import { type SecondPersonDeps, secondPersonRetest, secondPersonTest } from './second-person.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const ada = tokenNamed('ada')
const hour = between(monday, monday + hourNs)
const everything = between(monday, monday + 2n * weekNs)

/** A scene whose full erasures need two people, and a store of requests that looks as the service does. */
async function guarded() {
  const scene = await governedSceneOf(stores, { tables: ['otel_logs'], isShared: true })
  const { clock, own, policies, visibility } = scene
  const { control } = stores
  const engine = new FailingEngine(stores.engine)
  const needs: SecondPersonDeps = {
    ...{ control, findRelated, logger: silent },
    findPlace: async () => own,
    readRemaining: remainingInTurns(engine),
  }
  await policies.set(own.tenantId, 'full_erasures', tokenNamed('owner'))
  const store = storeShowing(visibility, control, clock, (...asked) => secondPersonTest(needs, ...asked))
  return {
    ...scene,
    engine,
    needs,
    store,
    async ask(draft: DeletionDraft, requester = ada) {
      const { row } = await store.create(own.tenantId, draft, { requester, idempotencyKey: null })
      return row
    },
    look: (place: TenantPlace, signal?: AbortSignal) =>
      needs.readRemaining(place, hour, { apart: [], untilNs: clock.nowNs(), signal }),
    isHidden: () => scene.gate.hidden(own.tenantId).length > 0,
  }
}

/** Keeps every look from beginning until `goOn`; `looked` has the statements in their order. */
function paused(engine: FailingEngine) {
  const looked: string[] = []
  const waiting = Promise.withResolvers<void>()
  engine.before = async (text) => {
    looked.push(text)
    await waiting.promise
  }
  return { looked, goOn: () => waiting.resolve() }
}

test('a deletion is hidden while readers of its organisation fill their queue', async () => {
  const { ask, gate, isHidden, neighbour, own, ...scene } = await guarded()
  assert.equal(await scene.visible(own, 'otel_logs'), times.length)
  const readers = new AbortController()
  const share = { tenantId: own.tenantId, kind: 'asked', signal: readers.signal } as const
  const read = () => stores.engine.select(sql`SELECT sleep(1)`, undefined, share)
  const reads = Array.from({ length: 70 }, () => read().catch(() => undefined))
  await assert.rejects(read(), { code: 'too_many_requests' })
  assert.equal((await ask(hour)).status, 'running')
  assert.equal(isHidden(), true)
  readers.abort()
  await Promise.all(reads)
  assert.equal(await scene.visible(own, 'otel_logs'), times.length - 1)
  assert.equal(await scene.visible(neighbour, 'otel_logs'), times.length)
})

test('a deletion beside too many others of its organisation is refused, and nothing of it is stored', async () => {
  const { ask, engine, isHidden, look, own, requests } = await guarded()
  const { goOn } = paused(engine)
  const gone = new AbortController()
  const looks = Array.from({ length: 1 + waitingLooksMax }, () => look(own, gone.signal))
  await assert.rejects(ask(hour), { code: 'overloaded', retryAfterSeconds: 1 })
  const open = await requests.list(own.tenantId, { limit: 10, beforeId: null, status: null })
  assert.deepEqual([open, isHidden()], [[], false])
  gone.abort()
  goOn()
  await Promise.allSettled(looks)
  assert.equal((await ask(hour)).status, 'running')
  assert.equal(isHidden(), true)
})

test('a look that takes too long asks for a second person, and one without memory is to be repeated', async () => {
  const { clock, isHidden, needs, own } = await guarded()
  const decide = async (code: number) => {
    const cause = new EngineError('ended', { code })
    const readRemaining = async () => assert.fail(new AppError('query_too_expensive', { cause }))
    const asker = { tenantId: own.tenantId, requester: ada }
    return (await secondPersonTest({ ...needs, readRemaining }, asker, hour, readingOf(clock)))(
      stores.control,
    )
  }
  const [timeCode, memoryCode] = [159, 241]
  assert.equal(await decide(timeCode), 'nothing_left')
  await assert.rejects(decide(memoryCode), { code: 'overloaded' })
  assert.equal(isHidden(), false)
})

test('organisations look in turns, one at a time, and a client that has gone does not look', async () => {
  const { engine, look, neighbour, own } = await guarded()
  const { goOn, looked } = paused(engine)
  const gone = new AbortController()
  const ownLooks = [look(own), look(own)]
  const abandoned = look(own, gone.signal)
  const theirs = look(neighbour)
  gone.abort()
  goOn()
  await assert.rejects(abandoned, { name: 'AbortError' })
  await Promise.all([...ownLooks, theirs])
  const whose = looked.map((text) => (text.includes(neighbour.tenantId) ? 'theirs' : 'own'))
  assert.deepEqual(whose, ['own', 'theirs', 'own'])
})

test('before its first attempt a deletion stays hidden where it can’t be read what it would leave', async () => {
  const scene = await guarded()
  const { clock, engine, needs, own, policies, requests, status, visibility } = scene
  const { request } = await scene.request({ ...everything, delayMinutes: 60 }, ada)
  assert.deepEqual([request.status, await scene.visible(own, 'otel_logs')], ['scheduled', 0])
  await policies.set(own.tenantId, 'full_erasures', tokenNamed('owner'))
  const store = new RequestStore({
    ...{ control: stores.control, clock, visibility, findRelated },
    secondPersonTest: (...asked) => secondPersonTest(needs, ...asked),
    secondPersonRetest: (...asked) => secondPersonRetest(needs, ...asked),
    retentionRetest: (request) => retentionRetest(async () => clock.nowMs(), request),
    clearDerived: clearRunResults,
  })
  const stored = () => requests.stored(own.tenantId, request.request_id)
  await store.move(await stored(), 'start', { actor: ada })
  engine.failing = { text: /AS part/, code: 159 }
  await assert.rejects(store.countAttempt(await stored()), { name: 'EngineError' })
  const waiting = await status(request.request_id)
  assert.deepEqual(
    [waiting.status, waiting.hidden_at, waiting.detail.attempts],
    ['running', request.hidden_at, 0],
  )
  assert.equal(await scene.visible(own, 'otel_logs'), 0)
  engine.failing = null
  assert.equal(await store.countAttempt(await stored()), null)
  assert.equal((await status(request.request_id)).status, 'awaiting_approval', 'it needs a second person')
  await assertRows(scene, times.length)
})

test('the times of a deletion are from after its look, and a token that expires meanwhile asks for nothing', async () => {
  const { ask, clock, engine, isHidden, own } = await guarded()
  const beganMs = clock.nowMs()
  engine.before = async () => clock.advance(5 * minuteMs)
  const { created_at_ms, hidden_at_ms, starts_at_ms } = await ask({ ...hour, delayMinutes: 1 })
  const lookedMs = beganMs + 5 * minuteMs
  assert.deepEqual([created_at_ms, hidden_at_ms, starts_at_ms], [lookedMs, lookedMs, lookedMs + minuteMs])
  const { approve_by_ms } = await ask(everything)
  assert.equal(approve_by_ms, clock.nowMs() + 30 * 24 * 60 * minuteMs)

  const neighbour = await guarded()
  const tenancy = new TenancyStore(stores.control, neighbour.clock)
  const { tenantId } = neighbour.own
  const secret = newTokenSecret('owner')
  const expiresAtMs = neighbour.clock.nowMs() + minuteMs
  const made = { tenantId, name: 'x', role: 'owner', secret, expiresAtMs } as const
  await stores.control
    .insertInto('organisations')
    .values({ tenant_id: tenantId, name: tenantId, placement: 0, created_at_ms: 0 })
    .execute()
  await tenancy.createToken({ ...made, actor: operatorActor('test') })
  const requester = (await tenancy.findCaller(secret))?.requester ?? assert.fail('the token is not known')
  neighbour.engine.before = async () => neighbour.clock.advance(5 * minuteMs)
  await assert.rejects(neighbour.ask(hour, requester), { code: 'token_expired' })
  assert.equal(neighbour.isHidden(), false)
  assert.equal(isHidden(), true, own.tenantId)
})
