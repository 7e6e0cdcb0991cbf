// Counts of refusals: what is one kind, how far back they reach, and that their memory is bounded whatever
// clients send.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusalKindsMax } from '../../contract/organisation/refusals.ts'
import { tokenActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import type { RefusedRequest } from '../http/refused-request.ts'
import { RefusalCounts } from './refusals.ts'

const startMs = 1_763_717_400_000
const minuteMs = 60_000

function refused(
  given: Partial<RefusedRequest> & { tenantId?: string; token?: string } = {},
): RefusedRequest {
  const { tenantId = 'acme', token = 'tok_1', ...rest } = given
  return {
    sender: { tenantId, actor: tokenActor(token, 'collector') },
    reason: 'quota_exceeded',
    status: 429,
    protocol: 'http',
    method: 'POST',
    path: '/v1/logs',
    hasOperation: true,
    ...rest,
  }
}

test('refusals of the same reason, operation and token are one kind, in all and by minute', async () => {
  const clock = new ManualClock(startMs)
  const counts = new RefusalCounts(clock)
  counts.count(refused())
  await clock.advance(30_000)
  counts.count(refused())
  await clock.advance(30_000)
  counts.count(refused())
  counts.count(refused({ token: 'tok_2' }))
  counts.count(refused({ reason: 'undecodable_body', status: 400 }))
  const { items, since } = counts.of('acme')
  assert.equal(since, '2025-11-21T09:30:00.000Z')
  assert.deepEqual(
    items.map(({ code, count, token }) => [code, count, token?.id]),
    [
      ['undecodable_body', 1, 'tok_1'],
      ['quota_exceeded', 1, 'tok_2'],
      ['quota_exceeded', 3, 'tok_1'],
    ],
  )
  const { first_at, last_at, meaning, minutes } = items[2] ?? assert.fail()
  assert.deepEqual([first_at, last_at], ['2025-11-21T09:30:00.000Z', '2025-11-21T09:31:00.000Z'])
  assert.match(meaning, /quota/)
  assert.deepEqual(minutes, [
    { time: '2025-11-21T09:30:00.000Z', count: 2 },
    { time: '2025-11-21T09:31:00.000Z', count: 1 },
  ])
})

test('an organisation sees its own refusals only', () => {
  const counts = new RefusalCounts(new ManualClock(startMs))
  counts.count(refused({ tenantId: 'globex' }))
  assert.deepEqual(counts.of('acme').items, [])
  assert.equal(counts.of('globex').items.length, 1)
})

test('minutes of more than an hour ago are not listed, and a kind of more than a day ago is forgotten', async () => {
  const clock = new ManualClock(startMs)
  const counts = new RefusalCounts(clock)
  counts.count(refused())
  await clock.advance(60 * minuteMs)
  assert.deepEqual(counts.of('acme').items[0]?.minutes, [])
  await clock.advance(23 * 60 * minuteMs)
  const { items, since } = counts.of('acme')
  assert.deepEqual([items, since], [[], '2025-11-21T09:30:00.000Z'])
})

test('the minutes of the last hour are listed where refusals never pause', async () => {
  const clock = new ManualClock(startMs)
  const counts = new RefusalCounts(clock)
  for (let i = 0; i < 200; i++) {
    counts.count(refused())
    await clock.advance(minuteMs)
  }
  const [only] = counts.of('acme').items
  assert.equal(only?.count, 200)
  assert.ok((only?.minutes.length ?? 0) >= 59 && (only?.minutes.length ?? 0) <= 60)
})

test('kinds are bounded: the one refused longest ago is forgotten, and long paths are cut', () => {
  const counts = new RefusalCounts(new ManualClock(startMs))
  counts.count(refused({ path: '/first' }))
  counts.count(refused({ path: '/second' }))
  for (let i = 0; i < refusalKindsMax - 2; i++) counts.count(refused({ path: `/${i}/${'x'.repeat(10_000)}` }))
  counts.count(refused({ path: '/first' }))
  counts.count(refused({ path: '/new' }))
  const { items } = counts.of('acme')
  assert.equal(items.length, refusalKindsMax)
  assert.deepEqual(
    items.slice(0, 2).map(({ count, path }) => [path, count]),
    [
      ['/new', 1],
      ['/first', 2],
    ],
  )
  assert.ok(!items.some(({ path }) => path === '/second'))
  assert.ok(items.every(({ path }) => path.length < 200))
})

test('paths without an operation are one kind of a token, shown with the latest one', () => {
  const counts = new RefusalCounts(new ManualClock(startMs))
  const lost = { reason: 'not_found', status: 404, hasOperation: false } as const
  counts.count(refused())
  for (let i = 0; i < refusalKindsMax; i++) counts.count(refused({ ...lost, path: `/${i}` }))
  counts.count(refused({ ...lost, reason: 'method_not_allowed', status: 405, method: 'LINK', path: '/last' }))
  counts.count(refused({ ...lost, token: 'tok_2', path: '/other' }))
  assert.deepEqual(
    counts.of('acme').items.map(({ code, count, method, path }) => [code, count, method, path]),
    [
      ['not_found', 1, 'POST', '/other'],
      ['method_not_allowed', refusalKindsMax + 1, 'LINK', '/last'],
      ['quota_exceeded', 1, 'POST', '/v1/logs'],
    ],
  )
})

test('a token with many kinds of refusals replaces its own and not those of other tokens', () => {
  const counts = new RefusalCounts(new ManualClock(startMs))
  counts.count(refused())
  for (let i = 0; i <= refusalKindsMax; i++) counts.count(refused({ token: 'tok_2', path: `/${i}` }))
  const { items } = counts.of('acme')
  assert.equal(items.length, refusalKindsMax)
  assert.deepEqual(
    items.slice(-2).map(({ path, token }) => [path, token?.id]),
    [
      ['/2', 'tok_2'],
      ['/v1/logs', 'tok_1'],
    ],
  )
})

test('organisations are bounded: the one refused longest ago is forgotten', () => {
  const counts = new RefusalCounts(new ManualClock(startMs))
  for (let i = 0; i <= 1000; i++) counts.count(refused({ tenantId: `tenant-${i}` }))
  assert.deepEqual(counts.of('tenant-0').items, [])
  assert.equal(counts.of('tenant-1').items.length, 1)
})
