// Ranges of at most 31 days that are all an organisation has, where full erasures need two people: real
// stores, a manual clock, and two weeks of rows of each signal. The neighbour in the same placement has the
// same rows, and they never count as what stays.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { readingOf } from '../../worker/clock-watch.ts'
import { readRemaining } from '../attempt/remaining-rows.ts'
import {
  between,
  hourNs,
  monday,
  type SceneOptions,
  storeShowing,
  times,
  weekNs,
} from '../deletion-fixture.ts'
import { dayMs, FailingEngine, governedSceneOf, keepDays, withClockInDoubt } from '../governed-fixture.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { type SecondPersonDeps, secondPersonTest } from './second-person.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const everything = between(monday, monday + 2n * weekNs)
const firstWeek = between(monday, monday + weekNs)
const secondWeek = between(monday + weekNs, monday + 2n * weekNs)

/** A scene whose full erasures need two people, with requests as the service accepts them. */
async function guarded(options: SceneOptions = {}) {
  const scene = await governedSceneOf(stores, { isShared: true, ...options })
  const { clock, own, visibility } = scene
  const { control } = stores
  const engine = new FailingEngine(stores.engine)
  await scene.policies.set(own.tenantId, 'full_erasures', tokenNamed('owner'))
  const warned: object[] = []
  const needs: SecondPersonDeps = {
    control,
    findRelated,
    findPlace: async () => own,
    logger: { warn: (facts: object) => warned.push(facts) },
    readRemaining: (...asked) => readRemaining(engine, ...asked),
  }
  const store = storeShowing(visibility, control, clock, (...asked) => secondPersonTest(needs, ...asked))
  const asker = { tenantId: own.tenantId, requester: tokenNamed('ada') }
  const look = (draft: DeletionDraft) => secondPersonTest(needs, asker, draft, readingOf(clock))
  return {
    ...scene,
    engine,
    /** What was logged. */
    warned,
    /** Requests it; returns its first status. */
    async ask(draft: DeletionDraft, requester = tokenNamed('ada')): Promise<string> {
      const { row } = await store.create(own.tenantId, draft, { requester, idempotencyKey: null })
      return row.status
    },
    look,
    /** Why it would need a second person. */
    async cause(draft: DeletionDraft) {
      return (await look(draft))(control)
    },
  }
}

test('a range that is all of a signal needs a second person, and one that leaves a row does not', async () => {
  const scene = await guarded()
  assert.equal(await scene.cause(everything), 'nothing_left')
  for (const signal of everything.signals) {
    assert.equal(await scene.cause({ ...everything, signals: [signal] }), 'nothing_left', signal)
  }
  assert.equal(await scene.ask(everything), 'awaiting_approval')
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
  assert.equal(await scene.ask(between(monday + 1n, monday + 2n * weekNs)), 'running')
  assert.equal(await scene.visible(scene.own, 'otel_logs'), 1)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})

test('a signal without any telemetry does not matter, and one with some does not replace another', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  assert.equal(await scene.cause(firstWeek), null)
  await insertRows(stores.engine, scene.own, batchOf('otel_traces', [monday]))
  assert.equal(await scene.cause(firstWeek), 'nothing_left')
  assert.equal(await scene.cause({ ...firstWeek, signals: ['logs'] }), null)
})

test('what is younger than a day does not count as staying', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  const dayAgoNs = BigInt(scene.clock.nowMs() - dayMs) * 1_000_000n
  await insertRows(stores.engine, scene.own, batchOf('otel_logs', [dayAgoNs]))
  assert.equal(await scene.cause(everything), 'nothing_left')
  await insertRows(stores.engine, scene.own, batchOf('otel_logs', [dayAgoNs - 1n]))
  assert.equal(await scene.cause(everything), null)
})

test('the second of two ranges that are everything together needs a second person, whatever arrived late', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  assert.equal(await scene.ask(firstWeek), 'running')
  assert.equal(await scene.cause(secondWeek), 'nothing_left')
  await scene.round()
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  await insertRows(stores.engine, scene.own, batchOf('otel_logs', [monday]))
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length / 2 + 1)
  assert.equal(await scene.ask(secondWeek), 'awaiting_approval')
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length / 2 + 1)
})

test('what another request hides does not count as staying', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  assert.equal(await scene.ask({ ...firstWeek, delayMinutes: 60 }, retentionRequester), 'scheduled')
  assert.equal(await scene.cause(secondWeek), 'nothing_left')
})

test('what another request has erased since the look does not count as staying', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  const decide = await scene.look(secondWeek)
  assert.equal(await decide(stores.control), null)
  await keepDays(stores.control, scene.own.tenantId, 14)
  assert.equal(await scene.ask(firstWeek, retentionRequester), 'running')
  await scene.round()
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  assert.equal(await decide(stores.control), 'nothing_left')
})

test('of two requests at once that are everything together, at most one is accepted', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  const born = await Promise.all([scene.ask(firstWeek), scene.ask(secondWeek)])
  assert.ok(born.includes('awaiting_approval'), born.join())
  assert.notEqual(await scene.visible(scene.own, 'otel_logs'), 0)
})

test('where it can’t be read what stays, or the clock is in doubt, a second person is needed', async () => {
  const scene = await guarded({ tables: ['otel_logs'] })
  const hour = between(monday, monday + hourNs)
  assert.equal(await scene.cause(hour), null)
  scene.engine.failing = { text: /AS part/, code: 159 }
  assert.equal(await scene.cause(hour), 'nothing_left')
  assert.equal(scene.engine.failed, 1)
  assert.deepEqual(
    scene.warned.map((facts) => 'tenantId' in facts && facts.tenantId),
    [scene.own.tenantId],
  )
  scene.engine.failing = null
  await withClockInDoubt(stores.control, async () => assert.equal(await scene.cause(hour), 'nothing_left'))
  assert.equal(await scene.ask(hour), 'running')
})
