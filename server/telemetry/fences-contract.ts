// The rules of every implementation of the fences, as tests: `keepsFences` runs them on the given nodes. An
// implementation for several nodes passes all of them, and the same tests apply.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { allTime } from '../core/time-range.ts'
import type { Fences } from './fences.ts'
import type { FenceChange, Selection, TelemetryGate } from './gate.ts'

interface FencedNode {
  readonly gate: TelemetryGate
  /** Whether the node answers clients. A node that the others no longer wait for must not. */
  serves(): boolean
}

interface FencedScene {
  readonly fences: Fences
  /** Every live node, at least one. */
  readonly nodes: readonly FencedNode[]
  close(): Promise<void>
}

const tenantId = 'own'
const place = { tenantId, placement: 3 }
const rows = [{ table: 'otel_logs', minTimeNs: 5n, maxTimeNs: 5n }] as const
const range = { startNs: 0n, endNs: 10n }
const selection = (id: string): Selection => ({ id, signals: ['logs'], range })
const set = (kind: 'hidden' | 'fenced' | 'erased' | 'late', id: string): FenceChange => ({
  kind,
  tenantId,
  set: selection(id),
})
const end = (kind: 'hidden' | 'fenced' | 'erased' | 'late', id: string): FenceChange => ({
  kind,
  tenantId,
  end: id,
})

type Check = (name: string, work: (scene: FencedScene) => Promise<void>) => void

/** `open` opens fences without any change. */
export function keepsFences(implementation: string, open: () => Promise<FencedScene>): void {
  const check: Check = (name, work) =>
    void test(name, async () => {
      const scene = await open()
      try {
        await work(scene)
      } finally {
        await scene.close()
      }
    })
  describe(`fences of ${implementation}`, () => {
    reachesEveryNode(check)
    keepsTheOrder(check)
    failsClosed(check)
  })
}

function everyNode({ nodes }: FencedScene, isTrue: (gate: TelemetryGate) => boolean): boolean {
  return nodes.every(({ gate }) => isTrue(gate))
}

function reachesEveryNode(check: Check): void {
  check(
    'what is hidden is hidden on every node when it is acknowledged, and reads are repeated',
    async (scene) => {
      const before = scene.nodes.map(({ gate }) => gate.hidings(tenantId))
      await scene.fences.publish([set('hidden', 'del_1')])
      assert.ok(everyNode(scene, (gate) => gate.hidden(tenantId).some(({ id }) => id === 'del_1')))
      scene.nodes.forEach(({ gate }, at) => {
        assert.ok(gate.hidings(tenantId) > (before[at] ?? 0))
      })
      assert.ok(everyNode(scene, (gate) => gate.hidden('neighbour').length === 0))
    },
  )

  check('a fence refuses writes on every node, and ends on every node', async (scene) => {
    await scene.fences.publish([set('fenced', 'del_1')])
    assert.ok(everyNode(scene, (gate) => gate.refuses(place, rows)))
    assert.ok(everyNode(scene, (gate) => !gate.refuses({ ...place, tenantId: 'neighbour' }, rows)))
    await scene.fences.publish([end('fenced', 'del_1')])
    assert.ok(everyNode(scene, (gate) => !gate.refuses(place, rows)))
  })

  check('a placement is closed and opened on every node', async (scene) => {
    const closed = (isClosed: boolean): FenceChange => ({ kind: 'closed', placement: 3, isClosed })
    await scene.fences.publish([closed(true)])
    assert.ok(everyNode(scene, (gate) => gate.isClosed(3) && !gate.isClosed(4)))
    await scene.fences.publish([closed(false)])
    assert.ok(everyNode(scene, (gate) => !gate.isClosed(3)))
  })

  check('the changes of one call are acknowledged together', async (scene) => {
    await scene.fences.publish([set('hidden', 'del_1'), set('fenced', 'del_1')])
    await scene.fences.publish([
      set('erased', 'del_1'),
      set('late', 'del_1'),
      end('hidden', 'del_1'),
      end('fenced', 'del_1'),
    ])
    assert.ok(everyNode(scene, (gate) => gate.hidden(tenantId).length === 0))
    assert.ok(everyNode(scene, (gate) => gate.unknownTime(tenantId, 'logs', allTime).length === 1))
    assert.ok(everyNode(scene, (gate) => gate.lateSelections(tenantId).length === 1))
    await scene.fences.publish([end('late', 'del_1'), end('erased', 'del_1')])
    assert.ok(everyNode(scene, (gate) => gate.unknownTime(tenantId, 'logs', allTime).length === 0))
    assert.ok(everyNode(scene, (gate) => gate.lateSelections(tenantId).length === 0))
  })
}

function keepsTheOrder(check: Check): void {
  check('epochs grow in the order of the calls, and each is acknowledged by every node', async (scene) => {
    const calls = Array.from({ length: 5 }, (_, i) => scene.fences.publish([set('hidden', `del_${i}`)]))
    const epochs = await Promise.all(calls)
    assert.deepEqual(
      epochs,
      [...new Set(epochs)].toSorted((a, b) => a - b),
    )
    assert.ok(everyNode(scene, (gate) => gate.epoch >= (epochs.at(-1) ?? 0)))
    const later = await scene.fences.publish([end('hidden', 'del_0')])
    assert.ok(later > (epochs.at(-1) ?? 0))
  })

  check('a change that is not awaited is never applied before an earlier one', async (scene) => {
    await Promise.all([
      scene.fences.publish([set('hidden', 'del_1')]),
      scene.fences.publish([end('hidden', 'del_1')]),
      scene.fences.publish([end('hidden', 'del_2')]),
      scene.fences.publish([set('hidden', 'del_2')]),
    ])
    assert.ok(
      everyNode(
        scene,
        (gate) =>
          gate
            .hidden(tenantId)
            .map(({ id }) => id)
            .join() === 'del_2',
      ),
    )
  })

  check('running commits of any node are waited for, and later ones are not', async (scene) => {
    const commits = scene.nodes.map(() => Promise.withResolvers<void>())
    scene.nodes.forEach(({ gate }, at) => {
      gate.track(tenantId, rows, commits[at]?.promise ?? Promise.resolve())
    })
    let isDrained = false
    const drained = scene.fences.drain(tenantId, selection('del_1')).then(() => {
      isDrained = true
    })
    for (const { gate } of scene.nodes) gate.track(tenantId, rows, new Promise(() => {}))
    for (const commit of commits) {
      for (let i = 0; i < 5; i++) await turn()
      assert.equal(isDrained, false)
      commit.resolve()
    }
    await drained
  })
}

function failsClosed(check: Check): void {
  check('a node that can not acknowledge delays a change, or stops serving', async (scene) => {
    const [broken] = scene.nodes
    assert.ok(broken !== undefined)
    broken.gate.onHide(() => {
      throw new Error('a cache keeps what is hidden')
    })
    const result = await scene.fences.publish([set('hidden', 'del_1')]).then(
      () => 'acknowledged',
      () => 'refused',
    )
    assert.ok(result === 'refused' || !broken.serves())
    assert.ok(
      everyNode(scene, (gate) => gate.hidden(tenantId).length === 1),
      'stricter, never looser',
    )
    await scene.fences.publish([end('hidden', 'del_1')])
    assert.ok(
      everyNode(scene, (gate) => gate.hidden(tenantId).length === 0),
      'what ends is not refused',
    )
  })
}
