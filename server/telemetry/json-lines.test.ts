// Lines of JSON are read completely, whatever their number and size.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { readLines } from './json-lines.ts'

const linesOf = (rows: readonly unknown[]) =>
  Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))

test('no row, one row and many rows are read in their order', async () => {
  for (const count of [0, 1, 2, 20_000]) {
    const rows = Array.from({ length: count }, (_, n) => ({ n, text: `row ${n} é€🙂\n`.repeat(n % 5) }))
    assert.deepEqual(await readLines(linesOf(rows)), rows, `${count} rows`)
  }
})

test('a line longer than a piece is read, at any position', async () => {
  const long = { text: 'xé€🙂'.repeat(300_000) }
  for (const rows of [[long], [{ n: 1 }, long], [long, { n: 1 }], [long, long]])
    assert.deepEqual(await readLines(linesOf(rows)), rows)
})

test('the event loop runs while a large result is read', async () => {
  const rows = Array.from({ length: 50_000 }, (_, n) => ({ n }))
  let isRead = false
  const read = readLines(linesOf(rows)).finally(() => {
    isRead = true
  })
  let rounds = 0
  while (!isRead) {
    rounds++
    await nextRound()
  }
  assert.equal((await read).length, rows.length)
  assert.ok(rounds >= 4, `${rounds} rounds`)
})

test('a large result takes a turn for each piece, and a small one none', async () => {
  const row = { text: 'x'.repeat(50_000) }
  const turnsFor = async (count: number) => {
    let turns = 0
    await readLines(linesOf(Array.from({ length: count }, () => row)), async () => {
      turns++
    })
    return turns
  }
  assert.equal(await turnsFor(1), 0)
  assert.equal(await turnsFor(30), 10)
})
