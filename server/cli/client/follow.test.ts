// Following a deletion: each change is printed once. A service that restarts meanwhile is waited for; one
// that has never responded is not.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { after, before, test } from 'node:test'
import type { DeletionRequest } from '../../../contract/deletion/requests.ts'
import { deletionOperations } from '../../../contract/operations/deletions.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { ApiClient } from './api.ts'
import { deletionLines, progressFraction } from './deletion-view.ts'
import { followDeletion } from './follow.ts'

const at = (second: number) => new Date(Date.UTC(2026, 0, 5, 0, 0, second)).toISOString()

function deletionOf(more: Partial<DeletionRequest>): DeletionRequest {
  return {
    request_id: '01K',
    id: '01K',
    ...{ scope: 'range', status: 'running', range_start: null, range_end: at(0), detail: {} },
    ...{
      created_at: at(0),
      finished_at: null,
      requested_by: 'ada',
      signals: ['logs'],
      reason: null,
      note: null,
    },
    ...{ hidden_at: at(0), removed_at: null, verified_at: null, backups_clear_by: null, starts_at: null },
    ...{ approve_by: null, approved_by: null, refuse_late: false, late_rows: 0 },
    ...more,
  }
}

/**
 * Responses in turn; null is a service that is starting, `cut` one that ends in the middle of its response.
 */
let answers: (DeletionRequest | null | 'cut')[] = []
/** Idempotency keys of the HTTP requests, in their order. */
let keys: (string | undefined)[] = []
const service = createServer((request, response: ServerResponse) => {
  const next = answers.shift()
  assert.notEqual(next, undefined, 'a request was sent after the end')
  keys.push(request.headers['idempotency-key']?.toString())
  if (next === null) response.writeHead(503).end('{"detail":"It starts.","code":"not_ready"}')
  else if (next === 'cut')
    response.writeHead(200, { 'content-length': 1000 }).write('{', () => response.destroy())
  else response.end(JSON.stringify(next))
})
let address = ''
before(async () => {
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  const found = service.address()
  assert.ok(typeof found === 'object' && found !== null)
  address = `http://127.0.0.1:${found.port}`
})
after(() => service.close())

const clock: Clock = { ...systemClock, nowMs: () => 0, nowNs: () => 0n, sleep: async () => {} }
const follower = () => ({ api: new ApiClient({ url: address, token: 't' }), clock })

test('each change is printed once, and a service that restarts meanwhile is waited for', async () => {
  const half = deletionOf({ detail: { steps_done: 1, steps_total: 2 } })
  const done = deletionOf({ status: 'completed', removed_at: at(2), verified_at: at(3), finished_at: at(3) })
  answers = [half, half, null, null, half, done]
  const reported: string[] = []
  const ended = await followDeletion(follower(), '01K', ({ value }) => reported.push(value.status))
  assert.deepEqual([ended.value.status, reported], ['completed', ['running', 'completed']])
})

test('following continues while a deletion waits for its next attempt, and after a response that is cut off', async () => {
  const detail = { blocked_reason: 'The disk is full.', next_attempt_at: at(9) }
  const waiting = deletionOf({ status: 'incomplete', detail })
  const done = deletionOf({ status: 'completed', removed_at: at(12), verified_at: at(12) })
  answers = [deletionOf({}), waiting, 'cut', done]
  const reported: string[] = []
  const ended = await followDeletion(follower(), '01K', ({ value }) => reported.push(value.status))
  assert.deepEqual([ended.value.status, reported], ['completed', ['running', 'incomplete', 'completed']])
})

test('a service is waited for up to a minute', async () => {
  let nowMs = 0
  const sleep = async (ms: number) => {
    nowMs += ms
  }
  const asleep: Clock = { ...clock, nowMs: () => nowMs, sleep }
  answers = [deletionOf({}), ...Array<null>(200).fill(null)]
  await assert.rejects(
    followDeletion({ api: follower().api, clock: asleep }, '01K', () => {}),
    /503 not_ready/,
  )
  assert.equal(nowMs, 500 + 60_000)
})

test('a request with a key is retried once if its response is lost; without a key, the error says that it may have been accepted', async () => {
  const { api } = follower()
  answers = ['cut', deletionOf({})]
  keys = []
  await api.call(deletionOperations.create, { json: {}, idempotencyKey: 'k1' })
  assert.deepEqual(keys, ['k1', 'k1'])
  answers = ['cut']
  await assert.rejects(
    api.call(deletionOperations.create, { json: {} }),
    /may still have accepted the request/,
  )
  assert.deepEqual(answers, [])
})

test('a service that has never responded is not waited for, unless it accepted the request', async () => {
  answers = [null]
  await assert.rejects(
    followDeletion(follower(), '01K', () => {}),
    /It starts\. \(503 not_ready\)/,
  )
  answers = [null, deletionOf({ status: 'completed' })]
  const ended = await followDeletion(follower(), '01K', () => {}, true)
  assert.equal(ended.value.status, 'completed')
})

test('the picture has the times, the share of the steps, and what the deletion waits for', () => {
  const half = deletionOf({
    detail: { steps_done: 1, steps_total: 2, rows_erased: 1234, bytes_erased: 5_600_000 },
  })
  assert.equal(progressFraction(half), 0.45)
  assert.deepEqual(deletionLines(half), [
    '01K  everything before 2026-01-05T00:00:00.000Z',
    `  [${'█'.repeat(14)}${'░'.repeat(16)}]  45 %  running`,
    '  signals   logs',
    '  erased    1,234 rows, 5.60 MB, in 1 of 2 steps',
    '  hidden    2026-01-05T00:00:00.000Z  (0 ms after it was asked for)',
    '  removed   -',
    '  verified  -',
    '  backups   none is known to have a copy',
  ])
  const held = deletionOf({
    ...{ status: 'held', removed_at: at(90), backups_clear_by: at(59) },
    detail: { held_by: ['H1'], blocked_reason: 'held' },
  })
  const lines = deletionLines(held).slice(1)
  assert.match(lines[0] ?? '', / 90 % {2}held$/)
  assert.match(lines[3] ?? '', /\(1 min 30 s after it was asked for\)$/)
  assert.deepEqual(lines.slice(5), [
    '  backups   have a copy until 2026-01-05T00:00:59.000Z',
    '  legal holds keep a part of it: H1',
    '  blocked: held',
  ])
})
