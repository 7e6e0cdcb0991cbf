// The life of a deletion over HTTP beyond the simple case: waiting, cancelled, approved, rejected, held,
// retried and verified again. Refusals change nothing. acme decides alone and with delays; globex requires a
// second person for everything. Attempts fail and wait where a test requests it.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { DeletionPolicy, LegalHold, Retention } from '../../contract/deletion/governance.ts'
import {
  DeletionRequest,
  type DeletionStatus,
  LedgerEntry,
  ReadBackResult,
} from '../../contract/deletion/requests.ts'
import { AuditEntry } from '../../contract/organisation/audit.ts'
import { CreatedAccessToken } from '../../contract/organisation/tenancy.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { systemClock } from '../../server/core/clock.ts'
import { openOfPersonMax } from '../../server/deletion/requests/states.ts'
import { waitFor } from '../wait-for.ts'
import { Barrier, deletionsUrl, instant, minute, minutesOf, requestIn } from './erasing.ts'
import {
  type Answer,
  assertRefused,
  placesOf,
  problemsOf,
  type Sent,
  type Service,
  startService,
  tenants,
  type Who,
  waitUntilCompleted,
} from './service.ts'
import { sendSample } from './telemetry.ts'

const holds = '/usage/storage/holds'
const policy = '/usage/storage/deletion-policy'

let service: Service
const barrier = new Barrier()
let isFailing = false
/** Where set, the service's wall clock stands still there: no pause before another attempt ends. */
let standingMs: number | null = null
const nowMs = () => standingMs ?? systemClock.nowMs()
const clock = { ...systemClock, nowMs, nowNs: () => BigInt(nowMs()) * 1_000_000n }

before(async () => {
  service = await startService({
    clock,
    async failpoint(name) {
      await barrier.failpoint(name)
      if (name === 'fenced' && isFailing) throw new Error('the test makes it fail')
    },
  })
  for (const tenant of tenants)
    await sendSample(service, `${tenant}/ingest`, [0, 1, 2, 3, 4, 5, 6, 7].map(minute))
})
after(() => service.stop())
afterEach(() => {
  isFailing = false
  standingMs = null
  barrier.open()
})

/** Requests the erasure of one minute. */
function erase(at: number, more: object = {}, as: Who = 'acme/owner'): Promise<Answer> {
  const confirm = as.split('/')[0]
  const json = { scope: 'range', confirm, range_start: instant(at), range_end: instant(at + 1), ...more }
  return service.send('POST', deletionsUrl, { as, json })
}

const decide = (id: string, verb: string, sent: Sent = {}) =>
  service.send('POST', `${deletionsUrl}/${id}/${verb}`, sent)
const get = (id: string, as: Who = 'acme/owner') => service.read(`${deletionsUrl}/${id}`, DeletionRequest, as)

async function waitUntil(
  id: string,
  status: DeletionStatus,
  as: Who = 'acme/owner',
): Promise<DeletionRequest> {
  return waitFor(
    () => get(id, as),
    (request) => request.status === status,
  )
}

/** The states that a request went through, and its actions in the audit log. */
async function recordOf(id: string, as: Who = 'acme/owner') {
  const ledger = await service.read('/ledger?limit=500', pageOf(LedgerEntry), as)
  const audit = await service.read('/audit-log?limit=500', pageOf(AuditEntry), as)
  return {
    states: ledger.items
      .filter((entry) => entry.request_id === id)
      .map(({ to_status }) => to_status)
      .reverse(),
    acts: audit.items
      .filter(({ target }) => target === id)
      .map(({ action }) => action)
      .reverse(),
  }
}

describe('a deletion with a delay', () => {
  test('is hidden at the 202, waits, and shows everything again when it is cancelled, also rows that arrived meanwhile', async () => {
    const answer = await erase(0, { delay_minutes: 60 })
    const request = requestIn(answer, 202)
    assert.equal(request.status, 'scheduled')
    assert.equal(Date.parse(request.starts_at ?? '') - Date.parse(request.created_at), 3_600_000)
    assert.equal(answer.headers.get('retry-after'), '1')
    assert.deepEqual(await minutesOf(service, 'acme'), [1, 2, 3, 4, 5, 6, 7])
    await sendSample(service, 'acme/ingest', [minute(0)])
    assert.deepEqual(await minutesOf(service, 'acme'), [1, 2, 3, 4, 5, 6, 7])
    const cancelled = await decide(request.request_id, 'cancel', { as: 'acme/admin' })
    assert.equal(requestIn(cancelled, 200).status, 'cancelled')
    assert.equal(cancelled.headers.get('retry-after'), null)
    assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 1, 2, 3, 4, 5, 6, 7])
    const again = requestIn(await decide(request.request_id, 'cancel'), 200)
    assert.equal(again.finished_at, requestIn(cancelled, 200).finished_at)
    assert.deepEqual(await recordOf(request.request_id), {
      states: ['scheduled', 'cancelled'],
      acts: ['deletion.requested', 'deletion.cancelled'],
    })
    for (const verb of ['approve', 'retry', 'verify']) {
      assertRefused(await decide(request.request_id, verb), 409, 'deletion_state')
    }
  })

  test('counts towards the limit of open requests until it is cancelled', async () => {
    const ids: string[] = []
    for (let at = 0; at < openOfPersonMax; at++) {
      ids.push(requestIn(await erase(100 + at, { delay_minutes: 43_200 }), 202).request_id)
    }
    const refused = await erase(99)
    assertRefused(refused, 429, 'too_many_requests')
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(requestIn(await erase(100, { delay_minutes: 43_200 }), 200).request_id, ids[0])
    for (const id of ids) requestIn(await decide(id, 'cancel'), 200)
    const { request_id } = requestIn(await erase(99), 202)
    await waitUntilCompleted(service, request_id, 'acme/owner')
  })

  test('refuses invalid delays', async () => {
    for (const delay_minutes of [-1, 0.5, 43_201, '60', null]) {
      const [place = ''] = placesOf(problemsOf(await erase(0, { delay_minutes })))
      assert.match(place, /^body\.delay_minutes /)
    }
  })
})

test('a deletion in progress can’t be cancelled, approved, retried or verified', async () => {
  barrier.close()
  const { request_id } = requestIn(await erase(200), 202)
  for (const verb of ['cancel', 'approve', 'retry', 'verify']) {
    assertRefused(await decide(request_id, verb), 409, 'deletion_state')
  }
  const rejected = await decide(request_id, 'reject', { json: { reason: 'no' } })
  assertRefused(rejected, 409, 'deletion_state')
  barrier.open()
  await waitUntilCompleted(service, request_id, 'acme/owner')
  for (const verb of ['cancel', 'approve', 'retry']) {
    assertRefused(await decide(request_id, verb), 409, 'deletion_state')
  }
})

test('a failed deletion says so, stays hidden and fenced, and continues when it is retried', async () => {
  isFailing = true
  standingMs = systemClock.nowMs()
  const { request_id } = requestIn(await erase(1), 202)
  const ended = await waitUntil(request_id, 'incomplete')
  assert.ok(ended.detail.blocked_reason !== null && ended.detail.next_attempt_at !== null)
  assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 3, 4, 5, 6, 7])
  const counted = await decide(request_id, 'verify')
  const { is_clean, remaining, deletion } = ReadBackResult.parse(JSON.parse(counted.text))
  assert.deepEqual(
    [counted.status, is_clean, remaining.otel_logs, deletion.status],
    [200, false, 1, 'incomplete'],
  )
  isFailing = false
  standingMs = null
  assert.equal(requestIn(await decide(request_id, 'retry', { as: 'acme/admin' }), 200).finished_at, null)
  const done = await waitUntilCompleted(service, request_id, 'acme/owner')
  assert.ok(Number(done.detail.attempts) >= 2)
  assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 3, 4, 5, 6, 7])
  const { acts } = await recordOf(request_id)
  assert.deepEqual(acts, ['deletion.requested', 'deletion.read_back', 'deletion.start', 'deletion.completed'])
})

test('a new verification of a completed deletion finds nothing; later telemetry is neither hidden nor counted', async () => {
  const { request_id } = requestIn(await erase(2), 202)
  await waitUntilCompleted(service, request_id, 'acme/owner')
  const verify = async () => ReadBackResult.parse(JSON.parse((await decide(request_id, 'verify')).text))
  const clean = await verify()
  assert.equal(clean.is_clean, true)
  assert.ok(Object.values(clean.remaining).every((rows) => rows === 0))
  await sendSample(service, 'acme/ingest', [minute(2)])
  const late = await verify()
  assert.deepEqual([late.is_clean, late.remaining.otel_logs, late.deletion.status], [false, 1, 'completed'])
  assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 3, 4, 5, 6, 7])
})

describe('a legal hold', () => {
  test('keeps what it covers, hidden, until it is released; then the deletion continues', async () => {
    const placed = await service.send('POST', holds, {
      json: { case_ref: 'case 7', range_start: instant(4), range_end: instant(5), signals: ['logs'] },
    })
    assert.equal(placed.status, 201, placed.text)
    const hold = LegalHold.parse(JSON.parse(placed.text))
    assert.equal(placed.headers.get('location'), `${holds}/${hold.hold_id}`)
    assert.deepEqual(await service.read(`${holds}/${hold.hold_id}`, LegalHold), hold)
    const { request_id } = requestIn(await erase(4, { range_end: instant(6) }), 202)
    const held = await waitUntil(request_id, 'held')
    assert.deepEqual(held.detail.held_by, [hold.hold_id])
    assert.deepEqual([held.removed_at, held.verified_at, held.finished_at], [null, null, null])
    assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 3, 6, 7])
    assertRefused(await decide(request_id, 'cancel'), 409, 'deletion_state')
    await sendSample(service, 'acme/ingest', [minute(4)])
    assert.deepEqual(
      await minutesOf(service, 'acme'),
      [0, 0, 2, 3, 6, 7],
      'accepted, and hidden with the rest',
    )
    const counted = ReadBackResult.parse(JSON.parse((await decide(request_id, 'verify')).text))
    assert.equal(counted.deletion.status, 'held')
    const release = () => service.send('POST', `${holds}/${hold.hold_id}/release`, { as: 'acme/admin' })
    const released = LegalHold.parse(JSON.parse((await release()).text))
    assert.match(released.released_by ?? '', /^token:admin/)
    assert.deepEqual(LegalHold.parse(JSON.parse((await release()).text)), released, 'twice is once')
    await waitUntilCompleted(service, request_id, 'acme/owner')
    assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 3, 6, 7])
    const { states } = await recordOf(request_id)
    assert.deepEqual(states, ['running', 'verifying', 'held', 'running', 'verifying', 'completed'])
    assert.deepEqual((await recordOf(hold.hold_id)).acts, ['legal_hold.placed', 'legal_hold.released'])
  })

  test('of the whole selection allows cancelling the deletion', async () => {
    const placed = await service.send('POST', holds, { json: { case_ref: 'case 8', range_end: instant(4) } })
    const { hold_id } = LegalHold.parse(JSON.parse(placed.text))
    const { request_id } = requestIn(await erase(3), 202)
    await waitUntil(request_id, 'held')
    assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 6, 7])
    assert.equal(requestIn(await decide(request_id, 'cancel'), 200).status, 'cancelled')
    assert.deepEqual(await minutesOf(service, 'acme'), [0, 0, 2, 3, 6, 7])
    const active = await service.read(`${holds}?active=true`, pageOf(LegalHold))
    assert.deepEqual(
      active.items.map((hold) => hold.hold_id),
      [hold_id],
    )
    await service.send('POST', `${holds}/${hold_id}/release`)
    assert.deepEqual((await service.read(`${holds}?active=true`, pageOf(LegalHold))).items, [])
    assert.equal((await service.read(`${holds}?active=false&limit=1`, pageOf(LegalHold))).items.length, 1)
  })

  test('that is invalid is refused with all its problems', async () => {
    const json = { case_ref: '', range_start: instant(2), range_end: instant(2), signals: [], extra: 1 }
    assert.deepEqual(placesOf(problemsOf(await service.send('POST', holds, { json }))), [
      'body.case_ref string_too_short',
      'body.extra extra_forbidden',
      'body.range_end value_error',
      'body.signals too_short',
    ])
    const { items } = await service.read(`${holds}?active=true`, pageOf(LegalHold))
    assert.deepEqual(items, [])
  })
})

describe('a retention rule', () => {
  const deletionsUrl = '/usage/storage/retention'
  const rule = () => service.read(deletionsUrl, Retention)
  const whole = { metrics_days: 3650, logs_days: 3000, traces_days: null }

  test('is put as a whole: a rule without a signal is refused and changes nothing', async () => {
    const put = (json: unknown) => service.send('PUT', deletionsUrl, { json })
    const set = await put(whole)
    assert.equal(set.status, 200, set.text)
    assert.deepEqual(JSON.parse(set.text), whole)
    assert.deepEqual(placesOf(problemsOf(await put({ logs_days: 3650 }))), [
      'body.metrics_days missing',
      'body.traces_days missing',
    ])
    assert.deepEqual(placesOf(problemsOf(await put({ ...whole, logs_days: undefined, log_days: 1 }))), [
      'body.log_days extra_forbidden',
      'body.logs_days missing',
    ])
    assert.deepEqual(await rule(), whole)
    const cleared = await put({ metrics_days: null, logs_days: null, traces_days: null })
    assert.equal(cleared.status, 200, cleared.text)
    assert.deepEqual(await rule(), { metrics_days: null, logs_days: null, traces_days: null })
  })

  test('is changed in part by a PATCH, which does not change absent fields', async () => {
    assert.equal((await service.send('PUT', deletionsUrl, { json: whole })).status, 200)
    const merge = { 'content-type': 'application/merge-patch+json' }
    for (const [json, headers, after] of [
      [{ traces_days: 3649 }, {}, { ...whole, traces_days: 3649 }],
      [{}, {}, { ...whole, traces_days: 3649 }],
      [{ traces_days: null, metrics_days: 3648 }, merge, { ...whole, metrics_days: 3648 }],
    ] as const) {
      const answer = await service.send('PATCH', deletionsUrl, { json, headers })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(JSON.parse(answer.text), after)
    }
    assert.deepEqual(
      placesOf(problemsOf(await service.send('PATCH', deletionsUrl, { json: { logs_days: 0, x: 1 } }))),
      ['body.logs_days greater_than_equal', 'body.x extra_forbidden'],
    )
    const answer = await service.send('PATCH', deletionsUrl, {
      json: { metrics_days: null, logs_days: null },
    })
    assert.equal(answer.status, 200)
  })
})

describe('a second person', () => {
  const as = 'globex/owner'

  test('is required by the owner only; a stricter rule applies at once, a looser one a day later', async () => {
    const put = (approval: string, who: Who = as) =>
      service.send('PUT', policy, { as: who, json: { approval } })
    assertRefused(await put('every_deletion', 'globex/admin'), 403, 'role_not_permitted')
    const [problem, ...others] = problemsOf(await put('sometimes'))
    assert.deepEqual(others, [])
    assert.deepEqual(
      [problem?.loc, problem?.type, problem?.input, problem?.ctx],
      [
        ['body', 'approval'],
        'enum',
        'sometimes',
        { expected: "'none', 'full_erasures' or 'every_deletion'" },
      ],
    )
    assert.equal((await service.read(policy, DeletionPolicy, as)).approval, 'none')
    for (const [word, approval] of [
      ['full_erasures', 'full_erasures'],
      ['every_deletion', 'every_deletion'],
      ['always', 'every_deletion'],
    ] as const) {
      const answer = await put(word)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(DeletionPolicy.parse(JSON.parse(answer.text)).approval, approval)
    }
    const looser = DeletionPolicy.parse(JSON.parse((await put('all')).text))
    assert.equal(looser.pending?.approval, 'full_erasures', 'an old name')
    const loosened = DeletionPolicy.parse(JSON.parse((await put('none')).text))
    assert.deepEqual([loosened.approval, loosened.pending?.approval], ['every_deletion', 'none'])
    assert.ok(loosened.pending !== null)
    const kept = DeletionPolicy.parse(JSON.parse((await put('every_deletion')).text))
    assert.equal(kept.pending, null)
    assert.equal((await service.read(policy, DeletionPolicy)).approval, 'none', 'acme’s is its own')
  })

  test('approves another person’s request, and nothing is hidden before', async () => {
    const answer = await erase(0, {}, as)
    const request = requestIn(answer, 202)
    assert.deepEqual([request.status, request.hidden_at], ['awaiting_approval', null])
    assert.deepEqual(await minutesOf(service, 'globex'), [0, 1, 2, 3, 4, 5, 6, 7])
    assert.equal(
      requestIn(await erase(0, {}, 'globex/admin'), 200).status,
      'awaiting_approval',
      'the requester cannot approve',
    )
    assertRefused(await decide(request.request_id, 'approve', { as }), 403, 'own_request')
    const approved = requestIn(await decide(request.request_id, 'approve', { as: 'globex/admin' }), 200)
    assert.match(approved.approved_by ?? '', /^token:admin/)
    assert.ok(approved.hidden_at !== null)
    await waitUntilCompleted(service, request.request_id, as)
    assert.deepEqual(await minutesOf(service, 'globex'), [1, 2, 3, 4, 5, 6, 7])
    const { states, acts } = await recordOf(request.request_id, as)
    assert.deepEqual(states, ['awaiting_approval', 'scheduled', 'running', 'verifying', 'completed'])
    assert.deepEqual(acts, ['deletion.requested', 'deletion.approve', 'deletion.completed'])
  })

  test('must not be the same person with another token', async () => {
    const make = async (name: string, headers: Sent['headers'] = {}) => {
      const sent = { as, headers, json: { name, role: 'admin' } } as const
      const { token } = CreatedAccessToken.parse(
        JSON.parse((await service.send('POST', '/tokens', sent)).text),
      )
      return { authorization: `Bearer ${token}` }
    }
    const second = await make('second')
    const third = await make('third', second)
    const sibling = await make('sibling')
    const { request_id } = requestIn(
      await service.send('POST', deletionsUrl, {
        headers: second,
        json: { scope: 'range', confirm: 'globex', range_start: instant(1), range_end: instant(2) },
      }),
      202,
    )
    for (const sent of [{ as }, { headers: second }, { headers: third }, { headers: sibling }] as const) {
      assertRefused(await decide(request_id, 'approve', sent), 403, 'own_request')
    }
    const reason = 'still needed'
    const as2 = 'globex/admin'
    assert.deepEqual(placesOf(problemsOf(await decide(request_id, 'reject', { as: as2, json: {} }))), [
      'body.reason missing',
    ])
    const rejected = requestIn(await decide(request_id, 'reject', { as: as2, json: { reason } }), 200)
    assert.equal(rejected.status, 'rejected')
    assertRefused(await decide(request_id, 'approve', { as: as2 }), 409, 'deletion_state')
    assert.deepEqual(await minutesOf(service, 'globex'), [1, 2, 3, 4, 5, 6, 7])
    const ledger = await service.read('/ledger?limit=1', pageOf(LedgerEntry), as)
    assert.equal(ledger.items[0]?.facts.reason, reason)
  })
})
