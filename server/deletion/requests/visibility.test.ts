// The life cycle of a request's visibility: each status on a real gate, changes that fail, and changes whose
// promises resolve in another order than their transactions committed in.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type DeletionStatus, deletionStatuses } from '../../../contract/deletion/requests.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { ProcessFences } from '../../telemetry/fences.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { noProgress, type StoredDeletion } from './request.ts'
import { type DeletionEvent, transitions, type VisibilityState, visibilityOf } from './states.ts'
import { Visibility } from './visibility.ts'

const nowMs = 1_767_000_000_000
const nowNs = BigInt(nowMs) * 1_000_000n
const dayNs = 86_400_000_000_000n
const [place, range] = [
  { tenantId: 'acme', placement: 1 },
  { startNs: nowNs - dayNs, endNs: nowNs + dayNs },
]

function requestIn(status: DeletionStatus, more: Partial<StoredDeletion> = {}): StoredDeletion {
  return {
    requestId: 'del_1',
    tenantId: place.tenantId,
    status,
    scope: 'range',
    signals: ['logs'],
    range,
    attempts: 0,
    crashes: 0,
    seq: 1,
    createdAtMs: nowMs,
    finishedAtMs: status === 'completed' ? nowMs : null,
    retryAtMs: null,
    startsAtMs: null,
    approveByMs: null,
    requestedBy: tokenNamed('owner'),
    approval: null,
    reason: null,
    refuseLate: false,
    attemptsForgiven: 0,
    removedAtMs: null,
    hasMark: false,
    cameBack: false,
    progress: noProgress,
    ...more,
  }
}

function scene() {
  const gate = new TelemetryGate()
  const visibility = new Visibility(new ProcessFences(gate), new ManualClock(nowMs))
  return {
    gate,
    visibility,
    /** A change to this state; the test decides when its transaction commits and its promise resolves. */
    begin(status: DeletionStatus, more: Partial<StoredDeletion> = {}) {
      const { promise, reject, resolve } = Promise.withResolvers<void>()
      const change = visibility.change(async (announce) => {
        await announce(requestIn(status, more))
        await promise
      })
      return {
        resolve: () => {
          resolve()
          return change
        },
        fail: () => {
          reject(new Error('not committed'))
          return assert.rejects(change, /not committed/)
        },
        loseAnswer: () => {
          reject(new AppError('outcome_unknown'))
          return assert.rejects(change, { code: 'outcome_unknown' })
        },
      }
    },
    store: (status: DeletionStatus, more: Partial<StoredDeletion> = {}) =>
      visibility.change((announce) => announce(requestIn(status, more))),
    shown: () => shownBy(gate),
  }
}

/** The state of the gate at the moment, as one of the four states. */
function shownBy(gate: TelemetryGate): VisibilityState {
  const batch = [{ table: 'otel_logs' as const, minTimeNs: nowNs, maxTimeNs: nowNs }]
  const isHidden = gate.hidden(place.tenantId).length > 0
  const isFenced = gate.refuses(place, batch)
  if (isFenced) assert.ok(isHidden, 'what is refused can’t be read either')
  if (isFenced) return 'fenced'
  if (isHidden) return 'hidden'
  return gate.unknownTime(place.tenantId, 'logs', range).length > 0 ? 'erased' : 'open'
}

const strictness = { open: 0, erased: 0, hidden: 1, fenced: 2 }

describe('the table of visibility', () => {
  const spec = readFileSync(new URL('../SPEC.md', import.meta.url), 'utf8')

  for (const status of deletionStatuses) {
    test(`is the same in code, in the specification and at the gate for ${status}`, async () => {
      const line = spec
        .split('\n')
        .find((row) => row.startsWith('| `') && row.split('|')[1]?.includes(`\`${status}\``))
      assert.equal(line?.split('|')[2]?.trim(), visibilityOf[status])
      const { shown, store } = scene()
      await store(status)
      assert.equal(shown(), visibilityOf[status])
    })
  }

  test('is the same after a start of the service', async () => {
    for (const status of deletionStatuses) {
      const { shown, visibility } = scene()
      await visibility.restore(requestIn(status))
      assert.equal(shown(), visibilityOf[status], status)
    }
  })

  test('has every change of a request that the specification has', () => {
    const [, moves = ''] = spec.split(/^\| from \\ to .*\n.*\n/m)
    const written = [...(moves.split('\n\n')[0] ?? '').matchAll(/^\| (\w+) +\|(.*)\|$/gm)].map(
      ([, from, cells]) => [
        from,
        cells?.split('|').map(
          (cell) =>
            new Set(
              cell
                .split(',')
                .map((event) => event.trim())
                .filter(Boolean),
            ),
        ),
      ],
    )
    const states = ['open', 'hidden', 'fenced', 'erased'] as const
    const coded = states.map((from) => [
      from,
      states.map((to) => (from === to ? new Set() : eventsBetween(from, to))),
    ])
    assert.deepEqual(written, coded)
  })
})

function eventsBetween(from: VisibilityState, to: VisibilityState): Set<string> {
  const found = new Set<string>()
  for (const status of deletionStatuses) {
    if (visibilityOf[status] !== from) continue
    for (const [event, next] of Object.entries(transitions[status]) as [
      DeletionEvent,
      DeletionStatus | null,
    ][]) {
      if (next !== null && visibilityOf[next] === to) found.add(event)
    }
  }
  return found
}

test('a stricter state applies before its transaction commits', async () => {
  const { begin, shown } = scene()
  const creation = begin('running')
  assert.equal(shown(), 'fenced')
  await creation.resolve()
  assert.equal(shown(), 'fenced')
})

test('a looser state applies after its transaction has committed, and not before', async () => {
  for (const [from, to] of [
    ['scheduled', 'cancelled'],
    ['running', 'held'],
    ['verifying', 'completed'],
  ] as const) {
    const { begin, shown, store } = scene()
    await store(from)
    const change = begin(to)
    assert.equal(shown(), visibilityOf[from])
    await change.resolve()
    assert.equal(shown(), visibilityOf[to])
  }
})

test('a failed change leaves the previous state', async () => {
  for (const from of deletionStatuses) {
    for (const to of deletionStatuses) {
      const { begin, shown, store } = scene()
      await store(from)
      await begin(to).fail()
      assert.equal(shown(), visibilityOf[from], `${from} to ${to}`)
    }
  }
  const { begin, gate, shown } = scene()
  await begin('running').fail()
  assert.equal(shown(), 'open', 'also of a request that was never stored')
  assert.deepEqual(gate.hidden(place.tenantId), [])
})

test('a change that resolves late undoes nothing of one that was stored after it', async () => {
  const { begin, shown, store } = scene()
  await store('running')
  const held = begin('held')
  const released = begin('running')
  await released.resolve()
  await held.resolve()
  assert.equal(shown(), 'fenced')
})

test('a selection is hidden once, however many changes keep it hidden: each hiding repeats reads', async () => {
  const { gate, store } = scene()
  for (const status of ['scheduled', 'running', 'verifying', 'held', 'running'] as const) await store(status)
  assert.equal(gate.hidings(place.tenantId), 1)
})

test('time that was erased ends at the completion, and late rows for it are refused where that was asked', async () => {
  const { gate, store } = scene()
  await store('running', { refuseLate: true })
  await store('completed', { refuseLate: true })
  const erased = { startNs: range.startNs, endNs: nowNs }
  assert.deepEqual(gate.unknownTime(place.tenantId, 'logs', range), [erased])
  assert.deepEqual(
    gate.lateSelections(place.tenantId).map((late) => late.range),
    [erased],
  )
  await store('running', { refuseLate: true })
  assert.deepEqual(gate.lateSelections(place.tenantId), [], 'after a restore')
  await store('completed')
  assert.deepEqual(gate.lateSelections(place.tenantId), [])
})

test('time is unknown without a gap while a request becomes completed', async () => {
  const { gate, store } = scene()
  await store('verifying')
  const said: number[] = []
  const unhide = gate.unhide.bind(gate)
  gate.unhide = (...given) => {
    said.push(gate.unknownTime(place.tenantId, 'logs', { startNs: nowNs - dayNs, endNs: nowNs }).length)
    unhide(...given)
  }
  await store('completed')
  assert.deepEqual(said, [2])
})

describe('a change whose commit the database did not answer', () => {
  test('is shown as the stricter of before and after, until it is settled', async () => {
    for (const from of deletionStatuses) {
      for (const to of deletionStatuses) {
        const { begin, shown, store, visibility } = scene()
        await store(from)
        await begin(to).loseAnswer()
        const [before, after] = [visibilityOf[from], visibilityOf[to]]
        assert.equal(strictness[shown()], Math.max(strictness[before], strictness[after]), `${from} to ${to}`)
        const [doubt] = visibility.doubts()
        await store(to)
        await doubt?.end()
        assert.equal(shown(), after, `${to} was stored`)
        assert.deepEqual(visibility.doubts(), [])
      }
    }
  })

  test('is shown as before once it is known not to be stored', async () => {
    for (const from of deletionStatuses) {
      for (const to of deletionStatuses) {
        const { begin, shown, store, visibility } = scene()
        await store(from)
        await begin(to).loseAnswer()
        for (const doubt of visibility.doubts()) await doubt.end()
        assert.equal(shown(), visibilityOf[from], `${from} to ${to}`)
      }
    }
  })

  test('hides a request that may have been created, and leaves nothing of one that was not', async () => {
    const { begin, gate, shown, visibility } = scene()
    await begin('running').loseAnswer()
    assert.equal(shown(), 'fenced')
    for (const doubt of visibility.doubts()) await doubt.end()
    assert.equal(shown(), 'open')
    assert.deepEqual(gate.hidden(place.tenantId), [])
  })
})

describe('a node that does not acknowledge', () => {
  /** A gate whose next hiding fails, as where a cache can't drop what it has. */
  function failing() {
    const here = scene()
    let isFailing = true
    here.gate.onHide(() => {
      if (isFailing) throw new Error('not acknowledged')
    })
    return {
      ...here,
      mend: () => {
        isFailing = false
      },
    }
  }

  test('fails the change, and nothing of it stays', async () => {
    const { gate, mend, shown, store } = failing()
    await assert.rejects(store('running'), /not acknowledged/)
    assert.equal(shown(), 'open')
    assert.deepEqual(gate.hidden(place.tenantId), [])
    mend()
    await store('running')
    assert.equal(shown(), 'fenced')
  })

  test('prevents the commit of the transaction', async () => {
    const { visibility } = failing()
    let isCommitted = false
    const change = visibility.change(async (announce) => {
      await announce(requestIn('running'))
      isCommitted = true
    })
    await assert.rejects(change, /not acknowledged/)
    assert.equal(isCommitted, false)
  })

  test('prevents work that needs a fence', async () => {
    const { shown, visibility } = failing()
    const work = visibility.whileFenced(requestIn('failed'), () => assert.fail('it began'))
    await assert.rejects(work, /not acknowledged/)
    assert.equal(shown(), 'open')
  })
})

describe('work that is done while fenced', () => {
  test('excludes readers and writers until it ends, and then applies the stored state', async () => {
    for (const status of ['scheduled', 'failed', 'completed'] as const) {
      const { shown, store, visibility } = scene()
      await store(status)
      const result = await visibility.whileFenced(requestIn(status), async () => {
        assert.equal(shown(), 'fenced')
        return 'done'
      })
      assert.deepEqual([result, shown()], ['done', visibilityOf[status]])
    }
  })

  test('may complete the request', async () => {
    const { shown, store, visibility } = scene()
    await store('scheduled')
    await visibility.whileFenced(requestIn('scheduled'), async () => {
      await store('completed')
      assert.equal(shown(), 'fenced')
    })
    assert.equal(shown(), 'erased')
  })

  test('ends its fence also where it fails', async () => {
    const { shown, store, visibility } = scene()
    await store('scheduled')
    const failing = visibility.whileFenced(requestIn('scheduled'), () => Promise.reject(new Error('no')))
    await assert.rejects(failing, /no/)
    assert.equal(shown(), 'hidden')
  })
})

test('whatever order changes resolve and fail in, the gate is never looser than what is stored', async () => {
  const step = fc.record({
    status: fc.constantFrom(...deletionStatuses),
    isCommitted: fc.boolean(),
    /** How many further changes begin before the promise of this one resolves. */
    resolvesAfter: fc.nat(3),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { begin, shown } = scene()
      let stored: VisibilityState = 'open'
      let waiting: { left: number; end: () => Promise<unknown> }[] = []
      const check = () => assert.ok(strictness[shown()] >= strictness[stored], `${shown()} for ${stored}`)
      for (const { isCommitted, resolvesAfter, status } of steps) {
        const change = begin(status)
        check()
        // Transactions commit one after the other; only their promises overlap.
        if (isCommitted) stored = visibilityOf[status]
        check()
        waiting = waiting.map(({ end, left }) => ({ end, left: left - 1 }))
        waiting.push({ left: resolvesAfter, end: isCommitted ? change.resolve : change.fail })
        for (const { end } of waiting.filter(({ left }) => left <= 0)) {
          await end()
          check()
        }
        waiting = waiting.filter(({ left }) => left > 0)
      }
      for (const { end } of waiting) {
        await end()
        check()
      }
      assert.equal(shown(), stored)
    }),
  )
})
