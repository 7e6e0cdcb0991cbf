// The gate alone, without an engine: what is fenced, hidden and unknown, and what waits for commits.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { batchOf } from '../../tests/fixtures.ts'
import { allTime, type TimeRange } from '../core/time-range.ts'
import { type Selection, TelemetryGate } from './gate.ts'
import type { Signal, TableName } from './schema/tables.ts'

const own = { tenantId: 'own', placement: 3 }
const neighbour = { tenantId: 'neighbour', placement: 3 }

const selection = (id: string, range: TimeRange, signals: Signal[] = ['logs']): Selection => ({
  id,
  range,
  signals,
})
const between = (startNs: bigint, endNs: bigint): TimeRange => ({ startNs, endNs })
const rows = (table: TableName, ...timesNs: bigint[]) => [batchOf(table, timesNs)]

/** A promise that the test settles. */
function door() {
  let open = () => {}
  let fail = (_error: Error) => {}
  const passed = new Promise<void>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { open, fail, passed }
}

/** Runs everything that is ready; what has not happened then waits for something else. */
const settle = async () => {
  for (let i = 0; i < 5; i++) await turn()
}

describe('fences', () => {
  test('a fence refuses rows inside it, of its organisation and signals, until it is removed', () => {
    const gate = new TelemetryGate()
    gate.fence('own', selection('del_1', between(10n, 20n)))
    assert.equal(gate.refuses(own, rows('otel_logs', 10n)), true)
    assert.equal(gate.refuses(own, rows('otel_logs', 19n)), true)
    assert.equal(gate.refuses(own, rows('otel_logs', 9n)), false)
    assert.equal(gate.refuses(own, rows('otel_logs', 20n)), false)
    assert.equal(gate.refuses(own, rows('otel_traces', 15n)), false)
    assert.equal(gate.refuses(neighbour, rows('otel_logs', 15n)), false)
    gate.unfence('own', 'del_1')
    assert.equal(gate.refuses(own, rows('otel_logs', 15n)), false)
  })

  test('a batch around the fence is refused, because rows between its ends may be inside', () => {
    const gate = new TelemetryGate()
    gate.fence('own', selection('del_1', between(10n, 20n)))
    assert.equal(gate.refuses(own, rows('otel_logs', 5n, 25n)), true)
    assert.equal(gate.refuses(own, [...rows('otel_traces', 15n), ...rows('otel_logs', 5n)]), false)
    assert.equal(gate.refuses(own, [...rows('otel_traces', 5n), ...rows('otel_logs', 15n)]), true)
  })

  test('two fences are independent, and setting one again has no effect', () => {
    const gate = new TelemetryGate()
    gate.fence('own', selection('del_1', between(10n, 20n)))
    gate.fence('own', selection('del_2', between(15n, 30n)))
    gate.fence('own', selection('del_1', between(10n, 20n)))
    gate.unfence('own', 'del_1')
    assert.equal(gate.refuses(own, rows('otel_logs', 12n)), false)
    assert.equal(gate.refuses(own, rows('otel_logs', 17n)), true)
    gate.unfence('own', 'unknown')
    gate.unfence('nobody', 'del_2')
    assert.equal(gate.refuses(own, rows('otel_logs', 17n)), true)
  })

  test('a fence around everything refuses every table of its signals', () => {
    const gate = new TelemetryGate()
    gate.fence('own', selection('del_1', allTime, ['metrics', 'logs', 'traces']))
    for (const table of ['otel_logs', 'otel_traces', 'otel_metrics_gauge', 'otel_metrics_summary'] as const) {
      assert.equal(gate.refuses(own, rows(table, 0n)), true, table)
    }
  })

  test('a closed placement refuses all organisations in it, until it is opened', () => {
    const gate = new TelemetryGate()
    gate.closePlacement(3)
    assert.equal(gate.refuses(own, rows('otel_logs', 1n)), true)
    assert.equal(gate.refuses(neighbour, rows('otel_traces', 1n)), true)
    assert.equal(gate.refuses({ ...own, placement: 4 }, rows('otel_logs', 1n)), false)
    gate.openPlacement(3)
    assert.equal(gate.refuses(own, rows('otel_logs', 1n)), false)
  })
})

describe('draining', () => {
  const logs = rows('otel_logs', 15n)
  const allLogs = { signals: ['logs'], range: allTime } as const

  test('waits for running commits, also for those that fail', async () => {
    const gate = new TelemetryGate()
    const [good, bad] = [door(), door()]
    gate.track('own', logs, good.passed)
    gate.track('own', logs, bad.passed)
    let isDrained = false
    const drained = gate.drain('own', allLogs).then(() => {
      isDrained = true
    })
    good.open()
    await settle()
    assert.equal(isDrained, false)
    bad.fail(new Error('the engine is away'))
    await drained
  })

  test('does not wait for other organisations, or for commits that begin later, or without commits', async () => {
    const gate = new TelemetryGate()
    const [foreign, own, later] = [door(), door(), door()]
    gate.track('neighbour', logs, foreign.passed)
    await gate.drain('own', allLogs)
    gate.track('own', logs, own.passed)
    const drained = gate.drain('own', allLogs)
    gate.track('own', logs, later.passed)
    own.open()
    await drained
  })
})

test('draining waits for every commit that may have rows of the selection, and for no other', async () => {
  const gate = new TelemetryGate()
  const batches = {
    before: rows('otel_logs', 5n, 9n),
    across: rows('otel_logs', 5n, 25n),
    within: [...rows('otel_traces', 5n), ...rows('otel_logs', 19n)],
    after: rows('otel_logs', 20n),
    other: rows('otel_traces', 15n),
  }
  const doors = Object.entries(batches).map(([name, batch]) => {
    const commit = door()
    gate.track('own', batch, commit.passed)
    return { name, ...commit }
  })
  let isDrained = false
  const range = { startNs: 10n, endNs: 20n }
  const drained = gate.drain('own', { signals: ['logs'], range }).then(() => {
    isDrained = true
  })
  for (const name of ['across', 'within']) {
    await settle()
    assert.equal(isDrained, false, name)
    doors.find((commit) => commit.name === name)?.open()
  }
  await drained
})

describe('what is hidden and unknown', () => {
  test('hiding increases the counter of its organisation, and showing again does not', () => {
    const gate = new TelemetryGate()
    assert.equal(gate.hidings('own'), 0)
    gate.hide('own', selection('del_1', allTime))
    gate.hide('own', selection('del_1', allTime))
    gate.unhide('own', 'del_1')
    assert.deepEqual([gate.hidings('own'), gate.hidings('neighbour')], [2, 0])
    assert.deepEqual(gate.hidden('own'), [])
  })

  test('the number of what is visible changes with each hiding and each showing, of its organisation', () => {
    const gate = new TelemetryGate()
    const seen = [gate.visibility('own')]
    for (const id of ['del_1', 'del_2']) {
      gate.hide('own', selection(id, allTime))
      seen.push(gate.visibility('own'))
      gate.unhide('own', id)
      seen.push(gate.visibility('own'))
    }
    assert.equal(new Set(seen).size, 5)
    assert.equal(gate.visibility('neighbour'), seen[0])
  })

  test('reads during which something is hidden are repeated, and refused after some repeats', async () => {
    const gate = new TelemetryGate()
    let reads = 0
    const hidingIn = (times: number) => async () => {
      if (reads++ < times) gate.hide('own', selection('del_1', allTime))
      return gate.hidden('own').length
    }
    assert.equal(await gate.together('own', hidingIn(5)), 1)
    assert.equal(reads, 6)
    reads = 0
    const refusal = { code: 'erasing', retryAfterSeconds: 1 }
    await assert.rejects(gate.together('own', hidingIn(6)), refusal)
    assert.equal(reads, 6)
    reads = 0
    await assert.rejects(gate.together('own', hidingIn(1), 0), refusal)
    assert.equal(reads, 1, 'not repeated where the caller says so')
    reads = 0
    assert.equal(await gate.together('neighbour', hidingIn(9)), 1)
    assert.equal(reads, 1)
  })

  test('erased time stays unknown after it is no longer hidden, by signal and by organisation', () => {
    const gate = new TelemetryGate()
    const asked = between(0n, 100n)
    gate.hide('own', selection('del_1', between(10n, 20n)))
    assert.deepEqual(gate.unknownTime('own', 'logs', asked), [between(10n, 20n)])
    gate.markErased('own', selection('del_1', between(10n, 20n)))
    gate.unhide('own', 'del_1')
    assert.deepEqual(gate.unknownTime('own', 'logs', asked), [between(10n, 20n)])
    assert.deepEqual(gate.unknownTime('own', 'traces', asked), [])
    assert.deepEqual(gate.unknownTime('neighbour', 'logs', asked), [])
    assert.deepEqual(gate.unknownTime('own', 'logs', between(20n, 30n)), [])
    gate.unmarkErased('own', 'del_1')
    assert.deepEqual(gate.unknownTime('own', 'logs', asked), [])
  })

  test('of erasures that cover each other only the wider one is kept, whichever came first, by signal', () => {
    const gate = new TelemetryGate()
    const erasedIds = () => gate.erased('own').map(({ id }) => id)
    gate.markErased('own', selection('del_day', between(10n, 20n)))
    gate.markErased('own', selection('del_night', between(12n, 15n)))
    assert.deepEqual(erasedIds(), ['del_day'])
    gate.markErased('own', { id: 'del_traces', signals: ['traces'], range: allTime })
    gate.markErased('neighbour', { ...selection('del_other', allTime), signals: ['logs', 'traces'] })
    assert.deepEqual(erasedIds(), ['del_day', 'del_traces'])
    gate.markErased('own', { ...selection('del_week', between(0n, 70n)), signals: ['traces', 'logs'] })
    assert.deepEqual(erasedIds(), ['del_traces', 'del_week'])
    gate.markErased('own', selection('del_later', between(30n, 31n)))
    assert.deepEqual(erasedIds(), ['del_traces', 'del_week'])
    assert.deepEqual(gate.unknownTime('own', 'logs', between(69n, 99n)), [between(0n, 70n)])
    assert.deepEqual(gate.unknownTime('own', 'traces', between(99n, 100n)), [allTime])
    gate.markErased('own', selection('del_week', between(0n, 5n)))
    assert.deepEqual(gate.unknownTime('own', 'logs', allTime), [between(0n, 5n)])
    for (const id of ['del_week', 'del_traces']) gate.unmarkErased('own', id)
    assert.deepEqual(erasedIds(), [])
  })

  test('neither marking nor asking looks at all that an organisation has erased', () => {
    const gate = new TelemetryGate()
    let looks = 0
    const second = (at: number) => ({
      get startNs() {
        looks++
        return BigInt(at)
      },
      endNs: BigInt(at + 1),
    })
    const erasures = 4000
    for (let at = 0; at < erasures; at++) gate.markErased('own', selection(`del_${at}`, second(at)))
    assert.ok(looks < erasures * 100, `${looks} looks to mark them`)
    looks = 0
    assert.equal(gate.unknownTime('own', 'logs', between(2000n, 2010n)).length, 10)
    gate.unmarkErased('own', 'del_2000')
    assert.ok(looks < 200, `${looks} looks to ask`)
  })
})
