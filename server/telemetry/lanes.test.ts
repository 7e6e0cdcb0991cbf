// Who gets a lane and when, with work that ends when the test says so.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Lanes } from './lanes.ts'

/** Begins work named `name` and answers how to end it. */
function scene(all: readonly string[]) {
  const lanes = new Lanes(all)
  const begun: [name: string, lane: string][] = []
  const begin = (name: string) => {
    const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<string>()
    const used = lanes.use((lane) => {
      begun.push([name, lane])
      return ended
    })
    return { used, end: () => end(name), fail: () => fail(new Error(name)) }
  }
  return { begin, begun }
}

test('each lane serves one at a time, and who finds none free is served in the order of coming', async () => {
  const { begin, begun } = scene(['a', 'b'])
  const [first, second, third, fourth] = ['1', '2', '3', '4'].map(begin)
  await turn()
  assert.deepEqual(new Set(begun.map(([, lane]) => lane)), new Set(['a', 'b']))
  assert.deepEqual(
    begun.map(([name]) => name),
    ['1', '2'],
  )
  const freed = begun[1]?.[1]
  second?.end()
  assert.equal(await second?.used, '2')
  await turn()
  assert.deepEqual(begun.slice(2), [['3', freed]])
  for (const one of [first, third, fourth]) one?.end()
  assert.deepEqual(await Promise.all([first?.used, third?.used, fourth?.used]), ['1', '3', '4'])
})

test('work that fails is reported to its own user alone, and its lane serves on', async () => {
  const { begin, begun } = scene(['a'])
  const [failing, next] = [begin('1'), begin('2')]
  await turn()
  failing.fail()
  await assert.rejects(failing.used, /^Error: 1$/)
  next.end()
  assert.equal(await next.used, '2')
  assert.deepEqual(begun, [
    ['1', 'a'],
    ['2', 'a'],
  ])
})
