// When each request begins, with attempts that the test ends.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silent } from '../../../tests/fixtures.ts'
import type { StoredDeletion } from '../requests/request.ts'
import { carryOutDue, newForMs, restMs } from './scheduler.ts'

/**
 * Requests as `tenant/name`; the process has ended before during one of a tenant in capitals, and retention
 * has requested those with the name `kept`.
 */
function roundOf(
  names: readonly string[],
  {
    attemptsAtOnce = 2,
    newAtOnce = 99,
    newBesideBusy = 99,
    placements = {} as Record<string, number>,
    beside = [] as (() => Promise<void>)[],
    isFailing = false,
  } = {},
) {
  const waiting = [...names]
  const begun: string[] = []
  const under = new Map<string, PromiseWithResolvers<boolean>>()
  let wakeUp = Promise.withResolvers<void>()
  const abort = new AbortController()
  let sleeps = 0
  let looks = 0
  let nowMs = 0
  const sleeping: { readonly untilMs: number; readonly end: () => void }[] = []
  const faults: { look: Error | null; lookUntil: Promise<void> | null } = {
    look: isFailing ? new Error('not connected') : null,
    lookUntil: null,
  }
  const assigned = new Map<string, number>()
  const placementOf = (tenant: string) => {
    if (!assigned.has(tenant)) assigned.set(tenant, placements[tenant] ?? 100 + assigned.size)
    return assigned.get(tenant) ?? null
  }
  const stored = (name: string) => {
    const [tenantId = '', own] = name.split('/')
    return {
      requestId: name,
      tenantId,
      crashes: tenantId === tenantId.toUpperCase() ? 1 : 0,
      requestedBy: { kind: own === 'kept' ? 'system' : 'token' },
    } as StoredDeletion
  }
  const done = carryOutDue(
    {
      queues: async () => {
        looks++
        if (faults.look !== null) throw faults.look
        const found = [...Map.groupBy(waiting.map(stored), ({ tenantId }) => tenantId).values()]
        await faults.lookUntil
        return found
      },
      placementOf: async (tenant) => placementOf(tenant),
      workOff: ({ requestId }) => {
        begun.push(requestId)
        const end = Promise.withResolvers<boolean>()
        under.set(requestId, end)
        return end.promise
      },
      beside,
      woken: () => wakeUp.promise,
      clock: {
        elapsedMs: () => nowMs,
        sleep(ms, signal) {
          // A loop that waits for nothing would never give way to the test.
          if (sleeps++ > 10_000) throw new Error('The round looks again and again.')
          return new Promise((resolve) => {
            sleeping.push({ untilMs: nowMs + ms, end: resolve })
            signal?.addEventListener('abort', () => resolve(), { once: true })
          })
        },
      },
      logger: silent,
      places: { all: attemptsAtOnce, new: newAtOnce, newBesideBusy },
    },
    abort.signal,
  )
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  return {
    begun,
    done,
    abort,
    faults,
    settle,
    looks: () => looks,
    async end(name: string, goesOn = true) {
      waiting.splice(waiting.indexOf(name), 1)
      under.get(name)?.resolve(goesOn)
      await settle()
    },
    /** A request becomes due, and nothing says so. */
    wait: (name: string) => void waiting.push(name),
    async pass(ms: number) {
      nowMs += ms
      for (const { end, untilMs } of sleeping) if (untilMs <= nowMs) end()
      await settle()
    },
    async ask(name: string) {
      waiting.push(name)
      wakeUp.resolve()
      wakeUp = Promise.withResolvers()
      await settle()
    },
  }
}

test('organisations take turns, one request of each at a time', async () => {
  const { begun, done, end, settle } = roundOf(['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'c/1'])
  await settle()
  assert.deepEqual(begun, ['c/1', 'a/1'], 'of equals the one that has a single request')
  await end('c/1')
  assert.deepEqual(begun.slice(2), ['b/1'])
  await end('b/1')
  await end('a/1')
  assert.deepEqual(begun.slice(3), ['b/2', 'a/2'])
  for (const name of ['b/2', 'a/2', 'a/3']) await end(name)
  await done
})

test('few attempts are new at once, and long ones keep no place from others until there are many', async () => {
  const names = ['a/1', 'b/1', 'c/1', 'd/1', 'e/1', 'f/1']
  const { begun, done, end, pass, settle } = roundOf(names, { attemptsAtOnce: 4, newAtOnce: 2 })
  await settle()
  await pass(newForMs - 1)
  assert.deepEqual(begun, ['a/1', 'b/1'])
  await end('b/1')
  assert.deepEqual(begun.slice(2), ['c/1'])
  await pass(1000)
  assert.deepEqual(begun.slice(3), ['d/1'], 'the first is not new any more')
  for (let i = 0; i < 4; i++) await pass(1000)
  assert.deepEqual(begun.slice(4), ['e/1'], 'four long attempts are all')
  for (const name of ['a/1', 'c/1', 'd/1', 'e/1', 'f/1']) await end(name)
  await done
})

/** As in the service, but with fewer attempts at once. */
const fewPlaces = { attemptsAtOnce: 4, newAtOnce: 2, newBesideBusy: 1 }

test('organisations with several requests follow each other, and one with a single request begins beside them', async () => {
  const names = ['a/1', 'a/2', 'b/1', 'b/2']
  const { ask, begun, done, end, settle } = roundOf(names, fewPlaces)
  await settle()
  assert.deepEqual(begun, ['a/1'])
  await ask('calm/1')
  await ask('other/1')
  assert.deepEqual(begun.slice(1), ['calm/1'], 'two are new')
  await end('a/1')
  assert.deepEqual(begun.slice(2), ['other/1'])
  await end('calm/1')
  assert.deepEqual(begun.slice(3), [], 'they do not begin beside another one either')
  await end('other/1')
  assert.deepEqual(begun.slice(3), ['b/1'])
  for (const name of ['b/1', 'a/2', 'b/2']) await end(name)
  await done
})

test('an organisation with several requests that had fewer attempts lately is not passed by another one', async () => {
  const { ask, begun, done, end, pass, settle, wait } = roundOf(['long/1', 'calm/1'], fewPlaces)
  await settle()
  await end('calm/1')
  await pass(restMs)
  await ask('a/1')
  wait('b/1')
  await ask('b/2')
  await ask('calm/2')
  assert.deepEqual(begun, ['long/1', 'calm/1', 'a/1'])
  await end('a/1')
  assert.deepEqual(begun.slice(3), ['b/1', 'calm/2'])
  for (const name of ['b/1', 'calm/2', 'b/2', 'long/1']) await end(name)
  await done
})

test('further requests of an organisation whose attempt is in progress keep no other one from beginning', async () => {
  const { ask, begun, done, end, pass, settle, wait } = roundOf(['long/1', 'calm/1'], fewPlaces)
  await settle()
  await end('calm/1')
  await pass(restMs)
  for (const name of ['a/2', 'a/3']) wait(name)
  await ask('a/1')
  assert.deepEqual(begun.slice(2), ['a/2'])
  await ask('calm/2')
  assert.deepEqual(begun.slice(3), ['calm/2'])
  for (const name of ['a/2', 'calm/2', 'a/3', 'a/1', 'long/1']) await end(name)
  await done
})

test('requests that arrive where nothing may begin are looked at when an attempt ends', async () => {
  const names = ['a/1', 'b/1', 'c/1', 'c/2']
  const { ask, begun, done, end, looks, settle } = roundOf(names, { ...fewPlaces, newBesideBusy: 2 })
  await settle()
  for (const name of ['calm/1', 'd/1', 'e/1']) await ask(name)
  assert.equal(looks(), 1)
  await end('a/1')
  assert.equal(looks(), 2)
  assert.deepEqual(begun, ['a/1', 'b/1', 'calm/1'], 'before anything else begins')
  for (const name of ['b/1', 'calm/1', 'd/1', 'e/1', 'c/1', 'c/2']) await end(name)
  await done
})

test('an organisation that sends each request when the one before has ended is one of those that follow each other', async () => {
  const names = ['long/1', 'a/1']
  const { ask, begun, done, end, pass, settle } = roundOf(names, fewPlaces)
  await settle()
  await pass(newForMs)
  await ask('b/1')
  for (const name of ['a/1', 'b/1']) await end(name)
  await pass(restMs - 1)
  await ask('a/2')
  await ask('b/2')
  assert.deepEqual(begun.slice(3), ['a/2'])
  await ask('calm/1')
  assert.deepEqual(begun.slice(4), ['calm/1'])
  for (const name of ['a/2', 'calm/1', 'b/2']) await end(name)
  await pass(restMs)
  await ask('a/3')
  await ask('b/3')
  assert.deepEqual(begun.slice(6), ['a/3', 'b/3'], 'both have rested')
  for (const name of ['a/3', 'b/3', 'long/1']) await end(name)
  await done
})

test('retention of other organisations comes after three requests of an organisation, and not later', async () => {
  const names = ['a/kept', 'b/kept', 'c/kept', 'd/kept', 'e/1', 'e/2', 'e/3', 'e/4']
  const { begun, done, end, settle } = roundOf(names, { attemptsAtOnce: 1 })
  await settle()
  for (const name of ['e/1', 'e/2', 'e/3', 'a/kept', 'b/kept', 'c/kept', 'd/kept', 'e/4']) {
    assert.equal(begun.at(-1), name)
    await end(name)
  }
  await done
})

test('a request that arrives during a long attempt begins beside it', async () => {
  const { ask, begun, done, end, settle } = roundOf(['a/1'])
  await settle()
  await ask('b/1')
  assert.deepEqual(begun, ['a/1', 'b/1'])
  await end('b/1')
  await ask('b/2')
  await end('b/2')
  await end('a/1')
  await done
  assert.deepEqual(begun, ['a/1', 'b/1', 'b/2'])
})

test('a round ends though one organisation never stops asking, and waits without work for what is in progress', async () => {
  const { ask, begun, done, end, settle } = roundOf(['long/1'])
  await settle()
  for (let at = 0; at < 120; at++) {
    await ask(`busy/${at}`)
    if (begun.includes(`busy/${at}`)) await end(`busy/${at}`)
  }
  assert.equal(begun.length, 1 + 100)
  await ask('other/1')
  assert.equal(begun.at(-1), 'other/1', 'one that asked for little is still served')
  await end('other/1')
  await end('long/1')
  await done
  assert.equal(begun.length, 1 + 100 + 1)
})

test('a look-up that fails during an attempt is repeated a second later', async () => {
  const { ask, begun, done, end, faults, pass, settle } = roundOf(['a/1'])
  await settle()
  faults.look = new Error('not connected')
  await ask('b/1')
  await pass(1000)
  assert.deepEqual(begun, ['a/1'])
  faults.look = null
  await pass(1000)
  assert.deepEqual(begun, ['a/1', 'b/1'])
  await end('b/1')
  await end('a/1')
  await done
})

test('a look-up that fails while nothing is in progress ends the round', async () => {
  const { done, faults } = roundOf(['a/1'], { isFailing: true })
  assert.ok(faults.look !== null)
  await assert.rejects(done, /not connected/)
})

test('there is a look each second, however often attempts end', async () => {
  const { begun, done, end, pass, settle, wait } = roundOf(['a/1', 'a/2', 'a/3'])
  await settle()
  wait('b/1')
  await pass(600)
  await end('a/1')
  await end('a/2')
  assert.deepEqual(begun, ['a/1', 'a/2', 'a/3'])
  await pass(600)
  assert.deepEqual(begun.at(-1), 'b/1')
  await end('b/1')
  await end('a/3')
  await done
})

test('a placement has one attempt at a time', async () => {
  const { begun, done, end, settle } = roundOf(['a/1', 'b/1', 'c/1'], { placements: { a: 1, b: 1, c: 2 } })
  await settle()
  assert.deepEqual(begun, ['a/1', 'c/1'])
  await end('a/1')
  assert.deepEqual(begun.slice(2), ['b/1'])
  await end('b/1')
  await end('c/1')
  await done
})

test('a request during which the process ended is carried out alone, after the others', async () => {
  const { begun, done, end, settle } = roundOf(['BAD/1', 'a/1', 'b/1', 'WORSE/1'], { attemptsAtOnce: 4 })
  await settle()
  assert.deepEqual(begun, ['a/1', 'b/1'])
  await end('a/1')
  assert.equal(begun.length, 2)
  await end('b/1')
  assert.deepEqual(begun.slice(2), ['BAD/1'])
  await end('BAD/1')
  assert.deepEqual(begun.slice(3), ['WORSE/1'])
  await end('WORSE/1')
  await done
})

test('an organisation whose attempt failed has no other before the next look', async () => {
  const { begun, done, end, pass, settle } = roundOf(['a/1', 'a/2', 'b/1'])
  await settle()
  await end('a/1', false)
  assert.deepEqual(begun, ['b/1', 'a/1'])
  await pass(1000)
  assert.deepEqual(begun, ['b/1', 'a/1', 'a/2'])
  await end('a/2')
  await end('b/1')
  await done
})

test('nothing begins after a stop', async () => {
  const { abort, begun, done, end, settle } = roundOf(['a/1', 'a/2', 'b/1', 'b/2'])
  await settle()
  abort.abort()
  await end('a/1')
  await end('b/1')
  await done
  assert.deepEqual(begun, ['a/1', 'b/1'])
})

test('a request that is due again after its attempt begins again in the round, at most a hundred times', async () => {
  const { ask, begun, done, end, settle } = roundOf(['long/1'])
  await settle()
  for (let at = 0; at < 120; at++) {
    await ask('held/1')
    if (begun.length === at + 2) await end('held/1')
  }
  assert.equal(begun.length, 1 + 100)
  await end('long/1')
  await done
  assert.equal(begun.length, 1 + 100)
})

test('a look from before the end of an attempt does not begin its request again', async () => {
  const { ask, begun, done, end, faults, settle } = roundOf(['a/1'], { attemptsAtOnce: 3 })
  await settle()
  const looked = Promise.withResolvers<void>()
  faults.lookUntil = looked.promise
  await ask('b/1')
  await end('a/1')
  looked.resolve()
  await settle()
  assert.deepEqual(begun, ['a/1', 'b/1'])
  await end('b/1')
  await done
  assert.deepEqual(begun, ['a/1', 'b/1'])
})

test('work beside attempts is repeated during a long attempt, one at a time, and keeps no round going', async () => {
  const ends: PromiseWithResolvers<void>[] = []
  let quick = 0
  const beside = [
    () => {
      const end = Promise.withResolvers<void>()
      ends.push(end)
      return end.promise
    },
    async () => {
      quick++
    },
  ]
  const { ask, begun, done, end, settle } = roundOf(['a/1'], { beside })
  await settle()
  await ask('b/1')
  assert.deepEqual([begun, ends.length, quick], [['a/1', 'b/1'], 1, 2])
  await end('b/1')
  ends[0]?.reject(new Error('retried'))
  await ask('c/1')
  assert.deepEqual([begun.at(-1), ends.length, quick], ['c/1', 2, 3])
  await end('c/1')
  await end('a/1')
  await ask('a/2')
  assert.deepEqual([begun.at(-1), quick], ['a/2', 3], 'a request begins while only other work is in progress')
  await end('a/2')
  ends[1]?.resolve()
  await done
  assert.deepEqual([ends.length, quick], [2, 3])
})

test('after a stop nothing is looked up and no other work is begun, and the round waits for what is in progress', async () => {
  const end = Promise.withResolvers<void>()
  let quick = 0
  const beside = [
    () => end.promise,
    async () => {
      quick++
    },
  ]
  const { abort, ask, done, end: endAttempt, faults, settle } = roundOf(['a/1'], { beside })
  await settle()
  let isOver = false
  const over = done.then(() => {
    isOver = true
  })
  abort.abort()
  faults.look = new Error('looked up')
  await ask('b/1')
  await endAttempt('a/1')
  assert.deepEqual([isOver, quick], [false, 1])
  end.resolve()
  await over
})
