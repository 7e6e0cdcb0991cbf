// Descendants of tokens: none is valid longer than its line, nothing is made with an ended token, and a
// revocation ends the whole line where requested. With the real HTTP server and a manual clock.

import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import type { InjectOptions } from 'fastify'
import { sql } from 'kysely'
import { tokenUseMinutes } from '../../contract/organisation/tenancy.ts'
import type { Role } from '../../contract/role.ts'
import { openControlPlane } from '../../tests/control-planes.ts'
import { readChain } from '../audit/log.ts'
import { operatorActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { newTokenSecret } from './tenancy.ts'
import { tenancyHttp } from './tenancy-fixture.ts'
import { activeTokensMax } from './token-share.ts'

const msPerDay = 86_400_000
const { control, close } = await openControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const { http, store } = tenancyHttp(control, clock)
await http.ready()
after(async () => {
  await http.close()
  await close()
})

let organisations = 0
let tenantId = ''
let owner: Token
beforeEach(async () => {
  tenantId = `acme-${++organisations}`
  await store.createOrganisation(
    { tenantId, name: tenantId, actor: operatorActor('command-line') },
    async () => {},
  )
  owner = await operatorToken('owner')
})

interface Token {
  readonly id: string
  readonly secret: string
}

async function operatorToken(role: Role, days: number | null = null): Promise<Token> {
  const secret = newTokenSecret(role)
  const expiresAtMs = days === null ? null : clock.nowMs() + days * msPerDay
  const { id } = await store.createToken({
    tenantId,
    name: role,
    role,
    secret,
    expiresAtMs,
    actor: operatorActor('command-line'),
  })
  return { id, secret }
}

async function ask(by: Token, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) {
  const options: InjectOptions = { method, url, headers: { authorization: `Bearer ${by.secret}` } }
  const answer = await http.inject(payload === undefined ? options : { ...options, payload })
  return { status: answer.statusCode, body: answer.json() }
}

/** Requests a token with the token `by`. */
const tryMake = (by: Token, more: object = {}) =>
  ask(by, 'POST', '/tokens', { name: 'x', role: 'admin', ...more })

async function make(by: Token, more: object = {}): Promise<Token & { readonly expiresAt: string | null }> {
  const { status, body } = await tryMake(by, more)
  assert.equal(status, 201, JSON.stringify(body))
  return { id: body.id, secret: body.token, expiresAt: body.expires_at }
}

/** Writes a token into a line as older versions did: they let a token outlast its maker. */
async function bindByHand(id: string, madeWith: string, lineExpiresAtMs: number): Promise<void> {
  await sql`update access_tokens
    set made_with = ${madeWith}, root_id = ${madeWith}, line_expires_at_ms = ${lineExpiresAtMs}
    where id = ${id}`.execute(control)
}

/** Writes many tokens that were made with one of a line, as past requests would have left them. */
async function makeMany(by: Token, root: Token, count: number): Promise<void> {
  await sql`insert into access_tokens (id, tenant_id, name, role, prefix, secret_hash, created_at_ms, created_by_kind, created_by_id, created_by_name, made_with, root_id)
    with recursive n (i) as (select 1 union all select i + 1 from n where i < ${sql.lit(count)})
    select ${by.id} || i, ${tenantId}, 'x', 'viewer', '', ${by.id} || i, 0, 'token', ${by.id}, 'x', ${by.id}, ${root.id}
    from n`.execute(control)
}

const works = async (token: Token) => (await ask(token, 'GET', '/me')).status === 200
const revoke = (by: Token, { id }: Pick<Token, 'id'>, query = '') =>
  ask(by, 'DELETE', `/tokens/${id}${query}`)
const inDays = (days: number) => new Date(clock.nowMs() + days * msPerDay).toISOString()

describe('the number of tokens', () => {
  test('is limited for an organisation, by those that are active, and not for the operator or a neighbour', async () => {
    const [first] = [await operatorToken('ingest', 1)]
    for (let made = 2; made < activeTokensMax; made++) await operatorToken('ingest')
    const { status, body } = await tryMake(owner)
    assert.deepEqual([status, body.code], [409, 'too_many_tokens'])
    assert.match(body.detail, /1000 access tokens/)
    await operatorToken('owner')
    await revoke(owner, first)
    assert.equal((await tryMake(owner)).status, 409, 'one more than the most, by the operator')
    const own = tenantId
    tenantId = 'neighbour'
    await store.createOrganisation(
      { tenantId, name: tenantId, actor: operatorActor('command-line') },
      async () => {},
    )
    assert.equal((await tryMake(await operatorToken('owner'))).status, 201)
    tenantId = own
    const expiring = await operatorToken('ingest', 1)
    assert.equal((await revoke(owner, expiring)).status, 200)
    const [oldest] = await store.listTokens(tenantId, { limit: 1, beforeId: null })
    assert.ok(oldest)
    await revoke(owner, oldest)
    assert.equal((await tryMake(owner)).status, 201, 'a revoked one makes room')
    assert.equal((await tryMake(owner)).status, 409)
  })
})

describe('an admin that makes as many tokens as there may be', () => {
  test('does not keep its owner, another token made with hers, or another line from making one', async () => {
    const [second, thief, other] = [
      await make(owner, { role: 'owner' }),
      await make(owner),
      await operatorToken('owner'),
    ]
    await makeMany(thief, owner, activeTokensMax - 4)
    const refused = await tryMake(thief)
    assert.deepEqual([refused.status, refused.body.code], [409, 'too_many_tokens'])
    for (const one of [owner, second, other]) await make(one)
  })

  test('makes no more by tokens that make tokens than a branch may have', async () => {
    const [second, thief] = [await make(owner), await make(owner)]
    const [child, sibling] = [await make(thief), await make(thief)]
    await makeMany(thief, owner, activeTokensMax - 6)
    const grandchild = await make(child)
    await makeMany(child, owner, Math.ceil(activeTokensMax / 3) - 2)
    for (const one of [thief, child, sibling, grandchild]) assert.equal((await tryMake(one)).status, 409)
    await make(second)
    await make(owner)
  })

  test('with the secret of a root makes at most twice as many, and another line still makes one', async () => {
    const [first, second] = [await make(owner), await operatorToken('owner')]
    await makeMany(owner, owner, 2 * activeTokensMax - 4)
    await make(first)
    for (const one of [first, owner]) assert.equal((await tryMake(one)).status, 409)
    await make(second)
  })
})

describe('the name of a token', () => {
  test('cannot imitate the text of another token in records', async () => {
    const disguises = [
      ...[`ben (${owner.id})`, 'ben （TOK_01)', 'ben [\u200b tok_01]', 'ben (t\u200bok_01)', 'tok_01'],
      ...['ben (tok\u00ad_01)', 'ben (\ufe0ftok_01)', 'ben (\u034ftok_01)', 'ben (\u3164tok_01)'],
      ...[
        'ben ‹tok_01›',
        'ben ﴾tok_01﴿',
        'ben (ｔｏｋ＿01)',
        'ben (𝐭𝐨𝐤_01)',
        'ben (to\u200ak_01)',
        'ben (tọk_01)',
      ],
    ]
    for (const name of disguises) {
      const { body, status } = await tryMake(owner, { name })
      assert.equal(status, 422, name)
      const [{ input, loc, msg }, ...others] = body.detail
      assert.deepEqual([loc, input, others], [['body', 'name'], name, []])
      assert.match(msg, /look like another token/)
    }
    for (const name of ['ben (at home)', 'tiktok_ads', 'stock_tokyo', 'auto k_means', 'é（1）'])
      await make(owner, { name })
  })
})

describe('the expiry of a token', () => {
  test('is that of the token it is made with, where none is requested', async () => {
    const parent = await operatorToken('owner', 10)
    const child = await make(parent)
    assert.equal(child.expiresAt, inDays(10))
    assert.equal((await make(child, { role: 'ingest' })).expiresAt, inDays(10))
    assert.equal((await make(owner)).expiresAt, null, 'of one that does not expire it is none')
    assert.equal((await make(owner, { expires_in_days: 3650 })).expiresAt, inDays(3650))
  })

  test('may be earlier, and a later one is refused with the limit', async () => {
    const parent = await operatorToken('admin', 10)
    assert.equal((await make(parent, { expires_in_days: 9 })).expiresAt, inDays(9))
    assert.equal((await make(parent, { expires_in_days: 10 })).expiresAt, inDays(10))
    const expires_at = inDays(10)
    await clock.advance(1)
    const { status, body } = await tryMake(parent, { expires_in_days: 10 })
    assert.equal(status, 422)
    const [{ loc, type, input, ctx, msg }, ...others] = body.detail
    assert.deepEqual(others, [])
    assert.deepEqual(
      { loc, type, input, ctx },
      { loc: ['body', 'expires_in_days'], type: 'less_than_equal', input: 10, ctx: { le: 9, expires_at } },
    )
    assert.match(msg, /at most 9/)
    assert.match(msg, new RegExp(expires_at))
  })

  test('with less than a day left gives no number of days, only the advice to leave the field out', async () => {
    const parent = await operatorToken('admin', 1)
    await clock.advance(1000)
    const { body } = await tryMake(parent, { expires_in_days: 1 })
    assert.match(body.detail[0].msg, /^Leave this field out/)
    assert.equal((await make(parent)).expiresAt, new Date(clock.nowMs() - 1000 + msPerDay).toISOString())
  })

  test('ends a whole line at once', async () => {
    const parent = await operatorToken('owner', 2)
    const child = await make(parent)
    const grandchild = await make(child)
    await clock.advance(2 * msPerDay - 1)
    assert.deepEqual(await Promise.all([parent, child, grandchild].map(works)), [true, true, true])
    await clock.advance(1)
    assert.deepEqual(await Promise.all([parent, child, grandchild].map(works)), [false, false, false])
  })

  test('of an older token that outlasts its line stays, and is not inherited', async () => {
    const parent = await operatorToken('owner', 5)
    const old = await operatorToken('admin')
    await bindByHand(old.id, parent.id, clock.nowMs() + 5 * msPerDay)
    assert.equal((await make(old)).expiresAt, inDays(5), 'what it makes is bound')
    assert.equal((await tryMake(old, { expires_in_days: 6 })).status, 422)
    await clock.advance(5 * msPerDay)
    assert.ok(await works(old), 'a collector continues')
    const { status, body } = await tryMake(old)
    assert.deepEqual([status, body.code], [403, 'token_line_expired'])
  })
})

describe('revoking a token', () => {
  test('leaves its descendants, reports their number, and ends them on a second request', async () => {
    const parent = await make(owner)
    const child = await make(parent)
    const grandchild = await make(child, { role: 'ingest' })
    const { status, body } = await revoke(owner, parent)
    assert.deepEqual([status, body.live_descendants, body.revoked_descendants], [200, 2, 0])
    assert.deepEqual(await Promise.all([parent, child, grandchild].map(works)), [false, true, true])
    const again = await revoke(owner, parent, '?descendants=true')
    assert.equal(again.body.revoked_at, body.revoked_at, 'it was revoked then')
    assert.deepEqual([again.body.live_descendants, again.body.revoked_descendants], [0, 2])
    assert.deepEqual(await Promise.all([child, grandchild, owner].map(works)), [false, false, true])
  })

  test('with its descendants ends those below a revoked one too, and no sibling', async () => {
    const parent = await make(owner)
    const [child, sibling] = [await make(parent), await make(owner)]
    const grandchild = await make(child)
    await revoke(owner, child)
    const { body } = await revoke(owner, parent, '?descendants=true')
    assert.equal(body.revoked_descendants, 1)
    assert.deepEqual(await Promise.all([parent, grandchild, sibling].map(works)), [false, false, true])
  })

  test('with its descendants ends expired ones too, which a clock that goes back would make valid again', async () => {
    const parent = await make(owner)
    const child = await make(parent, { expires_in_days: 1 })
    await clock.advance(2 * msPerDay)
    assert.equal((await revoke(owner, parent, '?descendants=true')).body.revoked_descendants, 1)
    const { status, body } = await ask(child, 'GET', '/me')
    assert.deepEqual([status, body.code], [401, 'token_revoked'])
  })

  test('prevents making others with it, also by a request that was admitted before', async () => {
    const parent = await make(owner)
    const caller = await store.findCaller(parent.secret)
    assert.ok(caller)
    await revoke(owner, parent)
    const secret = newTokenSecret('admin')
    const late = {
      tenantId,
      name: 'x',
      role: 'admin',
      secret,
      expiresAtMs: null,
      actor: caller.requester,
    } as const
    await assert.rejects(store.createToken(late), { code: 'token_revoked' })
    assert.equal(await store.findCaller(secret), null)
  })

  test('adds nothing to its descendants: role and expiry stay, and their children are limited as before', async () => {
    const parent = await operatorToken('admin', 10)
    const child = await make(parent, { expires_in_days: 5 })
    await revoke(owner, parent)
    assert.equal((await tryMake(child, { role: 'owner' })).status, 403)
    assert.equal((await tryMake(child, { expires_in_days: 6 })).status, 422)
    assert.equal((await make(child)).expiresAt, inDays(5))
    assert.equal((await ask(child, 'GET', '/me')).body.role, 'admin')
  })

  test('may end the token of the request, alone or with all its descendants', async () => {
    const parent = await make(owner)
    const child = await make(parent)
    assert.equal((await revoke(parent, parent)).body.live_descendants, 1)
    assert.deepEqual(await Promise.all([parent, child].map(works)), [false, true])
    // From below: the line of the requesting token ends with it.
    const other = await make(child)
    assert.equal((await revoke(child, child, '?descendants=true')).status, 200)
    assert.deepEqual(await Promise.all([child, other, owner].map(works)), [false, false, true])
  })

  test('by a non-owner never ends an owner’s token, not even below: then nothing is revoked', async () => {
    const admin = await operatorToken('admin')
    const child = await make(admin)
    const heir = await operatorToken('owner')
    await bindByHand(heir.id, child.id, clock.nowMs())
    const { status, body } = await revoke(admin, child, '?descendants=true')
    assert.deepEqual([status, body.code], [403, 'role_not_permitted'])
    assert.deepEqual(await Promise.all([child, heir].map(works)), [true, true])
    assert.equal((await revoke(owner, child, '?descendants=true')).body.revoked_descendants, 1)
  })

  test('of the last owner is allowed: the operator can make another one', async () => {
    const child = await make(owner, { role: 'owner' })
    assert.equal((await revoke(child, owner, '?descendants=true')).body.revoked_descendants, 1)
    assert.deepEqual(await Promise.all([owner, child].map(works)), [false, false])
    assert.ok(await works(await operatorToken('owner')))
  })

  test('reaches nothing of another organisation', async () => {
    const child = await make(owner)
    const [foreign, foreignId] = [owner, tenantId]
    tenantId = `${tenantId}-other`
    await store.createOrganisation(
      { tenantId, name: tenantId, actor: operatorActor('command-line') },
      async () => {},
    )
    const stranger = await operatorToken('owner')
    assert.equal((await revoke(stranger, foreign, '?descendants=true')).status, 404)
    await bindByHand(stranger.id, foreign.id, clock.nowMs() + msPerDay)
    tenantId = foreignId
    assert.equal((await revoke(child, foreign, '?descendants=maybe')).status, 422)
    assert.equal((await revoke(foreign, child, '?descendants=true')).body.revoked_descendants, 0)
    assert.deepEqual(await Promise.all([foreign, stranger].map(works)), [true, true])
  })

  test('is in the audit log once, with the ids that ended and the number that did not', async () => {
    const parent = await make(owner)
    const [child, other] = [await make(parent), await make(parent)]
    await revoke(owner, child)
    await revoke(owner, parent)
    await revoke(owner, parent)
    await revoke(owner, parent, '?descendants=true')
    await revoke(owner, parent, '?descendants=true')
    const entries = (await readChain(control, 'audit_entries', tenantId)).map(({ text }) => JSON.parse(text))
    const ends = entries.filter(({ action }) => action === 'token.revoked')
    assert.deepEqual(
      ends.map(({ target, facts }) => [target, facts]),
      [
        [child.id, { descendants_revoked: [], descendants_left: 0 }],
        [parent.id, { descendants_revoked: [], descendants_left: 1 }],
        [parent.id, { descendants_revoked: [other.id], descendants_left: 0 }],
      ],
    )
  })
})

test('the list has the maker of each token and the number of its active descendants', async () => {
  const parent = await make(owner, { expires_in_days: 9 })
  const child = await make(parent)
  const brief = await make(child, { expires_in_days: 1 })
  const gone = await make(child)
  await revoke(owner, gone)
  const listed = async () => {
    const { body } = await ask(owner, 'GET', '/tokens')
    const items: { id: string; made_with: string | null; live_descendants: number }[] = body.items
    return new Map(items.map((item) => [item.id, [item.made_with, item.live_descendants]]))
  }
  assert.deepEqual(
    await listed(),
    new Map([
      [gone.id, [child.id, 0]],
      [brief.id, [child.id, 0]],
      [child.id, [parent.id, 1]],
      [parent.id, [owner.id, 2]],
      [owner.id, [null, 3]],
    ]),
  )
  await clock.advance(msPerDay)
  assert.deepEqual((await listed()).get(child.id), [parent.id, 0], 'what has expired is not counted')
})

describe('the list of tokens', () => {
  const sorted = (...tokens: readonly Token[]) => tokens.map(({ id }) => id).sort()
  /** Sorted, because ids of one millisecond have no order. */
  const idsOf = async (by: Token, query: string): Promise<string[]> => {
    const { status, body } = await ask(by, 'GET', `/tokens${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body.items.map(({ id }: { id: string }) => id).sort()
  }

  test('of descendants has those at any distance and nothing else, page by page', async () => {
    const parent = await make(owner)
    const [child, sibling] = [await make(parent), await make(owner)]
    const grandchild = await make(child)
    await revoke(owner, child)
    const below = `?descendants_of=${parent.id}`
    assert.deepEqual(await idsOf(owner, below), sorted(child, grandchild))
    assert.deepEqual(await idsOf(owner, `${below}&active=true`), [grandchild.id])
    assert.deepEqual(await idsOf(owner, `${below}&active=false`), [child.id])
    assert.deepEqual(await idsOf(owner, `?descendants_of=${sibling.id}`), [])
    const first = await ask(owner, 'GET', `/tokens${below}&limit=1`)
    const second = await ask(owner, 'GET', `/tokens${below}&limit=1&cursor=${first.body.next_cursor}`)
    const paged = [...first.body.items, ...second.body.items]
    assert.deepEqual(sorted(...paged), sorted(child, grandchild))
    assert.equal(second.body.next_cursor, null)
    assert.equal((await ask(owner, 'GET', '/tokens?descendants_of=')).status, 422)
    const foreignId = `${tenantId}-other`
    await store.createOrganisation(
      { tenantId: foreignId, name: 'Other', actor: operatorActor('command-line') },
      async () => {},
    )
    tenantId = foreignId
    assert.deepEqual(await idsOf(await operatorToken('owner'), below), [])
  })

  test('of active ones leaves out what is revoked or has expired, and the other list has exactly that', async () => {
    const [brief, gone] = [await make(owner, { expires_in_days: 1 }), await make(owner)]
    await revoke(owner, gone)
    assert.deepEqual(await idsOf(owner, '?active=true'), sorted(brief, owner))
    assert.deepEqual(await idsOf(owner, '?active=false'), [gone.id])
    await clock.advance(msPerDay)
    assert.deepEqual(await idsOf(owner, '?active=true'), [owner.id])
    assert.deepEqual(await idsOf(owner, '?active=false'), sorted(gone, brief))
  })

  test('has the time of each last use, to some minutes, and none after its end', async () => {
    const token = await make(owner, { expires_in_days: 1 })
    const lastUsed = async () => {
      const { body } = await ask(owner, 'GET', '/tokens')
      return body.items.find(({ id }: { id: string }) => id === token.id).last_used_at
    }
    assert.equal(await lastUsed(), null)
    const first = inDays(0)
    assert.equal(await works(token), true)
    await clock.advance(tokenUseMinutes * 60_000 - 1)
    assert.equal(await works(token), true)
    assert.equal(await lastUsed(), first, 'not written for each request')
    await clock.advance(1)
    const later = inDays(0)
    assert.deepEqual(await Promise.all([works(token), works(token)]), [true, true])
    assert.equal(await lastUsed(), later)
    await clock.advance(msPerDay)
    assert.equal(await works(token), false)
    assert.equal(await lastUsed(), later)
  })
})

test('a circle that was written to the database ends neither in an endless list nor an endless revocation', async () => {
  const parent = await make(owner)
  const child = await make(parent)
  await bindByHand(parent.id, child.id, clock.nowMs() + msPerDay)
  assert.equal((await ask(owner, 'GET', '/tokens')).status, 200)
  assert.equal((await revoke(owner, parent, '?descendants=true')).body.revoked_descendants, 1)
  assert.deepEqual(await Promise.all([parent, child].map(works)), [false, false])
})
