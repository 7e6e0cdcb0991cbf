// Pages of the two chains as their readers get them: filters, pages that stay the same while the chain grows,
// a search that ends, and nothing of another organisation.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { openControlPlane } from '../../tests/control-planes.ts'
import { CountedTurns } from '../../tests/with-turns.ts'
import { type Actor, systemActor, tokenActor } from '../core/actor.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { allTime } from '../core/time-range.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { type EntryFilter, readChainPage } from './chain-page.ts'
import { KeySeal } from './key-seal.ts'
import { appendAudit, appendLedger } from './log.ts'
import { addAuditRoutes } from './routes.ts'
import { SigningKeys } from './signing.ts'

const { control, close } = await openControlPlane()
const startMs = 1_763_717_400_000
const clock = new ManualClock(startMs)
const turns = new CountedTurns()
const http = createHttp({
  clock,
  turns,
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async (secret) => callerFor(secret)),
  isReady: () => true,
})
const keys = new SigningKeys(control, clock, new KeySeal('a sealing key that only this test has'))
addAuditRoutes(http, { control, clock, keys })
after(async () => {
  await http.close()
  await close()
})

/** A secret is the tenant. */
function callerFor(tenantId: string): Caller {
  return { tenantId, placement: 0, organisationName: tenantId, role: 'owner', requester: ada }
}

const ada = tokenActor('tok_1', 'ada')
const ben = tokenActor('tok_2', 'ben, "the \\ other" 👋')
const retention = systemActor('retention')
const minuteMs = 60_000

interface Act {
  readonly tenantId?: string
  readonly atMs?: number
  readonly actor?: Actor
  readonly action?: string
  readonly target?: string | null
  readonly outcome?: 'accepted' | 'refused'
}

function act(given: Act): Promise<void> {
  const {
    action = 'thing.done',
    actor = ada,
    atMs = startMs,
    outcome = 'accepted',
    target = null,
    tenantId = 'acme',
  } = given
  return control
    .transaction()
    .execute((trx) => appendAudit(trx, tenantId, atMs, { actor, action, target, outcome, facts: {} }))
}

function move(requestId: string, to: string, tenantId = 'acme'): Promise<number> {
  return control.transaction().execute((trx) =>
    appendLedger(trx, tenantId, startMs, {
      request_id: requestId,
      actor: retention,
      from_status: null,
      to_status: to,
      facts: {},
    }),
  )
}

before(async () => {
  // The clock was corrected between the third and the fourth entry.
  await act({ action: 'token.created', target: 'tok_9', atMs: startMs })
  await act({ action: 'deletion.requested', target: 'del_1', atMs: startMs + 2 * minuteMs, actor: ben })
  await act({ action: 'deletion.completed', target: 'del_1', atMs: startMs + 3 * minuteMs, actor: retention })
  await act({ action: 'deletion.requested', target: 'del_2', atMs: startMs + minuteMs, outcome: 'refused' })
  await act({ action: 'deletions.listed', target: 'del_1', atMs: startMs + 4 * minuteMs })
  await act({ tenantId: 'globex', action: 'deletion.requested', target: 'del_1', actor: ben })
  for (const [id, status] of [
    ['del_1', 'running'],
    ['del_2', 'running'],
    ['del_1', 'completed'],
  ] as const)
    await move(id, status)
  await move('del_1', 'running', 'globex')
})

async function ask(path: string, query: Record<string, string>, tenantId = 'acme') {
  const answer = await http.inject({ url: path, query, headers: { authorization: `Bearer ${tenantId}` } })
  return { status: answer.statusCode, body: answer.json() }
}

/** Numbers of the entries of a page, newest first. */
async function seqs(path: string, query: Record<string, string>, tenantId = 'acme'): Promise<number[]> {
  const { body, status } = await ask(path, query, tenantId)
  assert.equal(status, 200, JSON.stringify(body))
  return body.items.map(({ seq }: { seq: number }) => seq)
}

test('each filter of the audit log selects by its field, and several together', async () => {
  const audit = (query: Record<string, string>) => seqs('/audit-log', query)
  assert.deepEqual(await audit({}), [5, 4, 3, 2, 1])
  assert.deepEqual(await audit({ actor: 'token:ada (tok_1)' }), [5, 4, 1])
  assert.deepEqual(await audit({ actor: 'token:ben, "the \\ other" 👋 (tok_2)' }), [2])
  assert.deepEqual(await audit({ action: 'deletion.requested' }), [4, 2])
  assert.deepEqual(await audit({ action: 'deletion' }), [4, 3, 2])
  assert.deepEqual(await audit({ target: 'del_1' }), [5, 3, 2])
  assert.deepEqual(await audit({ outcome: 'refused' }), [4])
  assert.deepEqual(await audit({ action: 'deletion', target: 'del_1', actor: 'system:retention' }), [3])
  assert.deepEqual(await audit({ actor: 'token:a% (tok_1)' }), [])
})

test('a time range selects by the time of an entry, also where the clock went back', async () => {
  const at = (minutes: number) => new Date(startMs + minutes * minuteMs).toISOString()
  const audit = (query: Record<string, string>) => seqs('/audit-log', query)
  assert.deepEqual(await audit({ range_start: at(1), range_end: at(3) }), [4, 2])
  assert.deepEqual(await audit({ range_start: at(3) }), [5, 3])
  assert.deepEqual(await audit({ range_end: at(1) }), [1])
  const inside = at(1).replace('Z', '000001Z')
  assert.deepEqual(await audit({ range_start: inside }), [5, 3, 2], 'a nanosecond after an entry excludes it')
  assert.deepEqual(await audit({ range_end: inside }), [4, 1], 'and as an end includes it')
})

test('the ledger is filtered by request, status and actor', async () => {
  assert.deepEqual(await seqs('/ledger', { request_id: 'del_1' }), [3, 1])
  assert.deepEqual(await seqs('/ledger', { to_status: 'running' }), [2, 1])
  assert.deepEqual(await seqs('/ledger', { actor: 'system:retention', to_status: 'completed' }), [3])
})

test('a filter finds nothing of another organisation', async () => {
  assert.deepEqual(await seqs('/audit-log', { target: 'del_1' }, 'globex'), [1])
  assert.deepEqual(await seqs('/ledger', { request_id: 'del_1' }, 'globex'), [1])
  assert.deepEqual(await seqs('/audit-log', { actor: 'token:ada (tok_1)' }, 'globex'), [])
})

test('pages of a filtered list stay the same while the chain grows', async () => {
  const tenantId = 'grows'
  for (let i = 0; i < 6; i++) await act({ tenantId, actor: i % 2 === 0 ? ada : ben })
  const query = { limit: '2', actor: 'token:ada (tok_1)' }
  const first = await ask('/audit-log', query, tenantId)
  assert.deepEqual(
    first.body.items.map(({ seq }: { seq: number }) => seq),
    [5, 3],
  )
  for (let i = 0; i < 3; i++) await act({ tenantId })
  const next = await ask('/audit-log', { ...query, cursor: first.body.next_cursor }, tenantId)
  assert.deepEqual(
    next.body.items.map(({ seq }: { seq: number }) => seq),
    [1],
  )
  assert.equal(next.body.next_cursor, null)
})

test('a range relative to now is the same one on all pages', async () => {
  const tenantId = 'relative'
  for (let i = 0; i < 3; i++) await act({ tenantId, atMs: clock.nowMs() })
  const query = { limit: '1', range_start: '-1m' }
  const first = await ask('/audit-log', query, tenantId)
  await clock.advance(2 * minuteMs)
  assert.deepEqual(await seqs('/audit-log', query, tenantId), [], 'for a first page they are too old by now')
  const { next_cursor: cursor } = first.body
  assert.deepEqual(await seqs('/audit-log', { ...query, cursor }, tenantId), [2])
  await clock.advance(-2 * minuteMs)
})

const noTurn = async () => assert.fail('one statement finds it')

/** Fills the chains of an organisation with entries that no filter of these tests selects. */
async function fill(tenantId: string, entries: number): Promise<void> {
  const entry = JSON.stringify({ at: new Date(startMs).toISOString(), action: 'thing.done', facts: {} })
  for (const table of ['audit_entries', 'ledger_entries']) {
    await sql`
      with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${sql.lit(entries)})
      insert into ${sql.table(table)} (tenant_id, seq, entry, hash)
      select ${sql.lit(tenantId)}, i, ${sql.lit(entry)}, '' from numbers`.execute(control)
  }
}

test('a search through a chain, and its export, wait for turns of their organisation', async () => {
  await fill('turns', 3_500)
  const asked = async (path: string, query: Record<string, string>) => {
    turns.asked.length = 0
    const { statusCode } = await http.inject({ url: path, query, headers: { authorization: 'Bearer turns' } })
    assert.equal(statusCode, 200)
    assert.ok(turns.asked.every((tenantId) => tenantId === 'turns'))
    return turns.asked.length
  }
  assert.equal(await asked('/audit-log', { outcome: 'refused' }), 3)
  assert.equal(await asked('/ledger', { actor: 'token:x (tok_1)', to_status: 'running' }), 3)
  for (const path of ['/audit-log/export', '/ledger/export']) {
    const count = await asked(path, {})
    assert.ok(count >= 17, `${path}: ${count} turns between 18 pages`)
  }
})

test('many searches at once read a few stretches in a round of the loop, not one each', async () => {
  await fill('crowd', 40)
  let [round, isDone] = [0, false]
  const stretches = new Map<number, number>()
  const counted = control.withPlugin({
    transformQuery: ({ node }) => {
      // Called twice for a stretch: also for the query of the numbers inside its statement.
      stretches.set(round, (stretches.get(round) ?? 0) + 0.5)
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const filter: EntryFilter = { range: allTime, fields: { outcome: 'refused' } }
  const search = async () => {
    const turn = () => turns.turnOf('crowd')
    await turn()
    const page = { limit: 5, before: 41, filter, turn }
    await readChainPage(counted, 'audit_entries', 'crowd', page, { stretchEntries: 10, pageEntries: 40 })
  }
  const searches = Promise.all(Array.from({ length: 50 }, search)).then(() => {
    isDone = true
  })
  for (; !isDone; round++) await nextRound()
  await searches
  const all = [...stretches.values()]
  assert.equal(
    all.reduce((sum, count) => sum + count, 0),
    50 * 4,
  )
  assert.ok(Math.max(...all) <= 4, `${Math.max(...all)} in one round`)
})

test('a search that finds little ends, and its cursor continues until everything was searched', async () => {
  const tenantId = 'long'
  for (let i = 0; i < 25; i++)
    await act({ tenantId, outcome: i === 1 ? 'refused' : 'accepted', target: `${i}` })
  const limits = { stretchEntries: 3, pageEntries: 10 }
  const filter: EntryFilter = { range: allTime, fields: { outcome: 'refused' } }
  const pages: (readonly [number[], number | null, number])[] = []
  for (let before: number | null = null; ; ) {
    const page = { limit: 5, before, filter, turn: () => turns.turnOf(tenantId) }
    turns.asked.length = 0
    const part = await readChainPage(control, 'audit_entries', tenantId, page, limits)
    pages.push([part.entries.map(({ seq }) => seq), part.before, turns.asked.length])
    before = part.before
    if (before === null) break
  }
  assert.deepEqual(pages, [
    [[], 16, 3],
    [[], 6, 3],
    [[2], null, 1],
  ])
  const indexed: EntryFilter = { range: allTime, fields: { target: '1' } }
  const page = { limit: 5, before: null, filter: indexed, turn: noTurn }
  const whole = await readChainPage(control, 'audit_entries', tenantId, page, limits)
  assert.deepEqual(
    [whole.entries.map(({ seq }) => seq), whole.before],
    [[2], null],
    'an index finds it at once, however long ago it was',
  )
})

test('without a filter a chain is read in pages to its end', async () => {
  const read = async (before: number | null) => {
    const filter: EntryFilter = { range: allTime, fields: {} }
    const part = await readChainPage(control, 'audit_entries', 'acme', {
      limit: 2,
      before,
      filter,
      turn: noTurn,
    })
    return part.entries.map(({ seq }) => seq)
  }
  assert.deepEqual([await read(null), await read(4), await read(2), await read(1)], [[5, 4], [3, 2], [1], []])
  assert.deepEqual(await seqs('/audit-log', {}, 'nobody'), [])
})

test('a wrong filter, an empty range and a foreign cursor are refused where they are', async () => {
  const cases: readonly (readonly [string, Record<string, string>, string])[] = [
    ['/audit-log', { action: 'Deletion requested' }, 'action'],
    ['/audit-log', { outcome: 'lost' }, 'outcome'],
    ['/audit-log', { request_id: 'del_1' }, 'request_id'],
    ['/ledger', { to_status: 'gone' }, 'to_status'],
    ['/ledger', { range_start: '2026-01-02T00:00:00Z', range_end: '2026-01-01T00:00:00Z' }, 'range_end'],
    ['/ledger', { range_start: 'yesterday' }, 'range_start'],
    ['/ledger', { cursor: Buffer.from('["1"]').toString('base64url') }, 'cursor'],
    ['/ledger', { cursor: Buffer.from('["1","x",""]').toString('base64url') }, 'cursor'],
  ]
  for (const [path, query, field] of cases) {
    const { body, status } = await ask(path, query)
    assert.equal(status, 422, JSON.stringify(query))
    assert.deepEqual(
      body.detail.map(({ loc }: { loc: string[] }) => loc),
      [['query', field]],
    )
  }
})
