// Turns of attempts: short pieces of work stay together, and nobody waits for more than a turn and a piece.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import type { StoredDeletion } from '../requests/request.ts'
import { PartitionQueue } from './partition-queue.ts'

/** Retention requests what is named so. */
const requestOf = (tenantId: string) =>
  ({ tenantId, requestedBy: { kind: tenantId === 'retention' ? 'system' : 'token' } }) as StoredDeletion

/** Runs two attempts beside each other, each with pieces of equal length, and returns whose pieces ran. */
async function orderOf(lengthsMs: Readonly<Record<string, number>>, pieces: number): Promise<string[]> {
  let nowMs = 0
  const queue = new PartitionQueue(() => nowMs)
  const ran: string[] = []
  const attempt = (tenantId: string, ms: number) =>
    queue.during(requestOf(tenantId), async ({ inTurn }) => {
      for (let at = 0; at < pieces; at++) {
        await inTurn(async () => {
          ran.push(tenantId)
          await nextRound()
          nowMs += ms
        })
        await nextRound()
      }
    })
  await Promise.all(Object.entries(lengthsMs).map(([tenantId, ms]) => attempt(tenantId, ms)))
  return ran
}

test('short pieces of an attempt stay together, and long ones of a neighbour do not come between them', async () => {
  assert.deepEqual(
    (await orderOf({ neighbour: 600, own: 100 }, 4)).join(' '),
    'neighbour own own own own neighbour neighbour neighbour',
  )
})

test('a turn ends after half a second, so many short pieces do not keep a neighbour waiting', async () => {
  const ran = await orderOf({ many: 100, other: 100 }, 8)
  assert.deepEqual(ran.slice(0, 10), [...Array(5).fill('many'), ...Array(5).fill('other')])
})

test('what a person requests gets four turns for one of another organisation’s retention', async () => {
  const ran = await orderOf({ retention: 500, person: 500 }, 10)
  assert.ok(ran.slice(0, 10).filter((one) => one === 'retention').length <= 3, ran.join(' '))
})

test('an attempt that fails ends its turn', async () => {
  const queue = new PartitionQueue(() => 0)
  const failed = queue.during(requestOf('failing'), ({ inTurn }) =>
    inTurn(() => Promise.reject(new Error('The disk is full.'))),
  )
  await assert.rejects(failed, /The disk is full/)
  assert.equal(await queue.during(requestOf('next'), ({ inTurn }) => inTurn(async () => 'done')), 'done')
})

test('short work of a neighbour comes between the pieces of a large copy, and no other large copy does', async () => {
  let nowMs = 0
  const queue = new PartitionQueue(() => nowMs)
  const ran: string[] = []
  const piece = (name: string) => async () => {
    ran.push(name)
    await nextRound()
    nowMs += 600
  }
  const large = (tenantId: string) =>
    queue.during(requestOf(tenantId), async ({ inTurn, withLargeCopy }) => {
      await inTurn(piece(`${tenantId} drops`))
      await withLargeCopy(async () => {
        for (let at = 1; at <= 3; at++) await inTurn(piece(`${tenantId} ${at}`))
      })
    })
  const short = () =>
    queue.during(requestOf('short'), async ({ inTurn }) => {
      for (let at = 1; at <= 2; at++) await inTurn(piece(`short ${at}`))
    })
  await Promise.all([large('first'), large('second'), short()])
  const copies = ran.filter((name) => /^(first|second) \d/.test(name))
  assert.deepEqual(copies, ['first 1', 'first 2', 'first 3', 'second 1', 'second 2', 'second 3'])
  assert.ok(ran.indexOf('short 2') < ran.indexOf('first 3'), ran.join(', '))
})
