// Which piece of asynchronous work is next, with a clock and with ends of work that the test controls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { CoreUse } from './core-use.ts'
import { Headroom } from './headroom.ts'
import { ThreadTurns } from './thread-turns.ts'

/** @param busy the share of the cores that the process uses */
function scene({ busy = 0 } = {}) {
  let nowMs = 0
  const pauses: { readonly ms: number; readonly end: () => Promise<unknown> }[] = []
  const headroom = new Headroom({
    nowMs: () => nowMs,
    cores: new CoreUse({ nowMs: () => nowMs, cpuMs: () => nowMs * 2 * busy, cores: 2 }),
    sleep: (ms) =>
      new Promise((resolve) => {
        const end = () => {
          nowMs += ms
          resolve()
          return turn()
        }
        pauses.push({ ms, end })
      }),
  })
  const turns = new ThreadTurns({ nowMs: () => nowMs, headroom })
  const begun: string[] = []
  const running: (() => void)[] = []
  const run = (owner: string) =>
    turns.run(owner, () => {
      begun.push(owner)
      return new Promise<string>((resolve) => running.push(() => resolve(owner)))
    })
  /** Ends the running piece after it has taken this long. */
  const end = async (ms: number) => {
    nowMs += ms
    assert.equal(running.length, 1, 'one piece runs')
    running.shift()?.()
    await turn()
  }
  return { begun, end, headroom, pauses, run, turns }
}

test('one piece runs at a time, and another owner’s is next, however many one has waiting', async () => {
  const { begun, end, run } = scene()
  const all = ['flood', 'flood', 'flood', 'calm'].map(run)
  await turn()
  for (let piece = 0; piece < 4; piece++) await end(10)
  assert.deepEqual(begun, ['flood', 'calm', 'flood', 'flood'])
  assert.deepEqual(await Promise.all(all), ['flood', 'flood', 'flood', 'calm'])
})

test('turns are shared by the time that work took, not by its number', async () => {
  const { begun, end, run } = scene()
  const all = ['long', 'long', 'short', 'short', 'short', 'short'].map(run)
  await turn()
  for (let piece = 0; piece < 6; piece++) await end(begun.at(-1) === 'long' ? 30 : 10)
  await Promise.all(all)
  assert.deepEqual(begun, ['long', 'short', 'short', 'short', 'long', 'short'])
})

test('while cores are short an owner of most of the work pauses, and others do not', async () => {
  const { begun, end, headroom, pauses, run } = scene({ busy: 0.9 })
  headroom.used('calm', 1)
  const all = ['flood', 'flood'].map(run)
  await turn()
  await end(200)
  assert.deepEqual([begun, pauses.map(({ ms }) => ms)], [['flood'], [500]])
  all.push(run('calm'))
  await turn()
  assert.deepEqual(begun, ['flood', 'calm'])
  await end(10)
  await pauses[0]?.end()
  assert.deepEqual(begun, ['flood', 'calm', 'flood'])
  await end(10)
  await Promise.all(all)
})

test('work that fails gives its turn to the next', async () => {
  const { end, run, turns } = scene()
  const failing = assert.rejects(
    turns.run('acme', () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  const next = run('acme')
  await failing
  await turn()
  await end(1)
  assert.equal(await next, 'acme')
})
