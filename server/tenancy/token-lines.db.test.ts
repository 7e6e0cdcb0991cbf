// Lines of many tokens: lists and revocations are exact however deep and wide the lines are, no statement
// returns more than a piece, and others are served between two pieces.

import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { type Insertable, type KyselyPlugin, sql } from 'kysely'
import type { AccessToken } from '../../contract/organisation/tenancy.ts'
import { openControlPlane } from '../../tests/control-planes.ts'
import { readChain } from '../audit/log.ts'
import type { AccessTokensTable } from '../control/database.ts'
import { operatorActor, tokenActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { seededUniform } from '../detection/scoring/seeded-random.ts'
import { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'
import { tokensPerPiece } from './token-lines.ts'
import type { TokenPage } from './token-list.ts'

const { control, close } = await openControlPlane()
after(close)
const clock = new ManualClock(1_763_717_400_000)

/** Rows of the largest result since the test began. */
let most = 0
/** Called once, after the next result without rows. */
let afterNone: (() => Promise<void>) | null = null
const observer: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  async transformResult({ result }) {
    most = Math.max(most, result.rows.length)
    const work = afterNone
    if (result.rows.length > 0 || work === null) return result
    afterNone = null
    await work()
    return result
  },
}
const store = new TenancyStore(control.withPlugin(observer), clock)

let organisations = 0
let tenantId = ''
beforeEach(async () => {
  tenantId = await found(`lines-${++organisations}`)
  most = 0
})

async function found(id: string): Promise<string> {
  await store.createOrganisation({ tenantId: id, name: id, actor: operatorActor('test') }, async () => {})
  return id
}

interface Made {
  readonly id: string
  readonly madeWith: string | null
  readonly isActive: boolean
}

async function insert(tokens: readonly Made[]): Promise<void> {
  const rows = tokens.map(
    ({ id, isActive, madeWith }, i): Insertable<AccessTokensTable> => ({
      id,
      tenant_id: tenantId,
      name: id,
      role: 'admin',
      prefix: 'x',
      secret_hash: id,
      created_at_ms: 0,
      created_by_kind: 'operator',
      created_by_id: 'test',
      created_by_name: 'test',
      // Ended ones are revoked, or have expired.
      expires_at_ms: isActive || i % 2 === 0 ? null : 1,
      revoked_at_ms: isActive || i % 2 === 1 ? null : 1,
      made_with: madeWith,
      root_id: null,
      line_expires_at_ms: null,
    }),
  )
  for (let at = 0; at < rows.length; at += 500) {
    await control
      .insertInto('access_tokens')
      .values(rows.slice(at, at + 500))
      .execute()
  }
}

const idOf = (i: number) => `tok_${tenantId}_${String(i).padStart(5, '0')}`

/** Tokens of which each is made with the one before; the last one works. */
async function insertChain(length: number): Promise<Made[]> {
  const tokens = Array.from({ length }, (_, i) => ({
    id: idOf(i),
    madeWith: i === 0 ? null : idOf(i - 1),
    isActive: i === length - 1,
  }))
  await insert(tokens)
  return tokens
}

async function listAll(page: Partial<TokenPage>, limit: number): Promise<AccessToken[]> {
  const tokens: AccessToken[] = []
  for (;;) {
    const beforeId = tokens.at(-1)?.id ?? null
    const next = await store.listTokens(tenantId, { ...page, limit, beforeId })
    tokens.push(...next)
    if (next.length < limit) return tokens
  }
}

const revocationOf = (id: string, withDescendants: boolean) => ({
  tenantId,
  id,
  actor: operatorActor('test'),
  actorRole: 'owner' as const,
  withDescendants,
  onAdministratorRevoked: async () => {},
})

test('lists of deep and wide lines have exactly the descendants, and count those that work', async () => {
  const random = seededUniform(7)
  const tokens = Array.from({ length: 3 * tokensPerPiece }, (_, i): Made => {
    // Every fourth is made with any token before it, the others with one of the newest, or the same one.
    const maker =
      random() < 0.25 ? Math.floor(random() * i) : random() < 0.2 ? 3 : i - 1 - Math.floor(random() * 3)
    const madeWith = i === 0 || random() < 0.01 ? null : idOf(Math.max(0, Math.min(maker, i - 1)))
    return { id: idOf(i), madeWith, isActive: random() < 0.1 }
  })
  await insert(tokens)
  const below = new Map(tokens.map(({ id }) => [id, new Set<string>()]))
  const makers = new Map(tokens.map(({ id, madeWith }) => [id, madeWith]))
  for (const { id } of tokens) {
    for (let at = makers.get(id) ?? null; at !== null; at = makers.get(at) ?? null) below.get(at)?.add(id)
  }
  const active = new Set(tokens.filter(({ isActive }) => isActive).map(({ id }) => id))
  const newestFirst = tokens.map(({ id }) => id).reverse()
  const listed = await listAll({}, tokensPerPiece)
  assert.deepEqual(
    listed.map(({ id, live_descendants }) => [id, live_descendants]),
    newestFirst.map((id) => [id, [...(below.get(id) ?? [])].filter((one) => active.has(one)).length]),
  )
  const sizes = [0, 1, 3, 40, 400, 1200].map((i) => idOf(i))
  assert.ok(
    sizes.some((id) => (below.get(id)?.size ?? 0) > 2 * tokensPerPiece),
    'one has many',
  )
  for (const ancestor of sizes) {
    const descendants = newestFirst.filter((id) => below.get(ancestor)?.has(id))
    for (const isActive of [undefined, true, false]) {
      const page = { descendantsOf: ancestor, ...(isActive !== undefined && { isActive }) }
      assert.deepEqual(
        (await listAll(page, 400)).map(({ id }) => id),
        descendants.filter((id) => isActive === undefined || active.has(id) === isActive),
      )
    }
  }
})

test('a long line is read in pieces, and another organisation is served between two of them', async () => {
  const chain = await insertChain(3 * tokensPerPiece)
  const own = tenantId
  tenantId = await found(`${own}-neighbour`)
  const secret = newTokenSecret('owner')
  const common = { tenantId, name: 'x', role: 'owner', secret, expiresAtMs: null } as const
  await store.createToken({ ...common, actor: operatorActor('test') })
  let served = 0
  const serveNeighbour = async () => {
    assert.equal((await store.findCaller(secret))?.tenantId, tenantId)
    served++
  }
  const root = chain[0]?.id ?? ''
  const middle = chain[tokensPerPiece]?.id ?? ''
  const [newest] = await store.listTokens(own, { limit: 1, beforeId: `${root}~` }, serveNeighbour)
  assert.deepEqual([newest?.id, newest?.live_descendants], [root, 1])
  assert.ok(served >= 2, `${served} of the count`)
  served = 0
  await store.listTokens(own, { limit: 1, beforeId: null, descendantsOf: root }, serveNeighbour)
  assert.ok(served >= 4, `${served} of descendants and the count`)
  served = 0
  const revoked = { ...revocationOf(middle, false), tenantId: own }
  assert.equal((await store.revokeToken(revoked, serveNeighbour)).live_descendants, 1)
  assert.ok(served >= 2, `${served} of a revocation`)
  assert.ok(most <= tokensPerPiece, `${most} rows at once`)
})

test('the descendants of a token that made very many are all listed, with turns of others between', async () => {
  const made = Array.from({ length: 2 * tokensPerPiece + 1 }, (_, i) => ({
    id: idOf(i),
    madeWith: i === 0 ? null : idOf(0),
    isActive: i === 9,
  }))
  await insert(made)
  let turns = 0
  const page = { limit: 5000, beforeId: null, descendantsOf: idOf(0) }
  const listed = await store.listTokens(tenantId, page, async () => turns++)
  assert.deepEqual(
    listed.map(({ id }) => id),
    made
      .slice(1)
      .map(({ id }) => id)
      .reverse(),
  )
  assert.ok(turns >= 2, `${turns}`)
  assert.ok(most <= tokensPerPiece, `${most} rows at once`)
})

test('a revocation of a long line ends what is made while it is read, and nothing beside it', async () => {
  const chain = await insertChain(2 * tokensPerPiece)
  const leaf = chain.at(-1)?.id ?? ''
  const beside = { id: idOf(90_000), madeWith: chain[0]?.id ?? '', isActive: true }
  await insert([beside])
  const secrets: string[] = []
  const makeOne = async () => {
    const secret = newTokenSecret('admin')
    const common = { tenantId, name: 'x', role: 'admin', secret, expiresAtMs: null } as const
    await store.createToken({ ...common, actor: tokenActor(leaf, 'leaf') })
    secrets.push(secret)
  }
  const middle = chain[10]?.id ?? ''
  const { live_descendants, revoked_descendants } = await store.revokeToken(
    revocationOf(middle, true),
    makeOne,
  )
  assert.ok(secrets.length >= 2)
  const unrevoked = chain.slice(11).filter((_, i) => (i + 11) % 2 === 1).length
  assert.deepEqual([live_descendants, revoked_descendants], [0, unrevoked + secrets.length])
  for (const secret of secrets) await assert.rejects(store.findCaller(secret), { code: 'token_revoked' })
  const left = await sql<{ id: string }>`select id from access_tokens
    where tenant_id = ${tenantId} and revoked_at_ms is null and expires_at_ms is null`.execute(control)
  assert.deepEqual(
    left.rows.map(({ id }) => id),
    [beside.id],
  )
})

test('a revocation has the time of its transaction, and is refused where its own token ended meanwhile', async () => {
  const chain = await insertChain(2 * tokensPerPiece)
  const beganMs = clock.nowMs()
  let turns = 0
  const minutePasses = async () => {
    turns++
    await clock.advance(60_000)
  }
  const { revoked_at } = await store.revokeToken(revocationOf(chain[11]?.id ?? '', false), minutePasses)
  assert.ok(turns > 0)
  assert.equal(Date.parse(revoked_at ?? ''), beganMs + turns * 60_000)
  const last = JSON.parse((await readChain(control, 'audit_entries', tenantId)).at(-1)?.text ?? '{}')
  assert.deepEqual([last.action, last.at], ['token.revoked', revoked_at])

  const short = { tenantId, name: 'short', role: 'owner', secret: newTokenSecret('owner') } as const
  const expiresAtMs = clock.nowMs() + 30_000
  await store.createToken({ ...short, expiresAtMs, actor: operatorActor('test') })
  const actor = (await store.findCaller(short.secret))?.requester ?? assert.fail('the token is not known')
  const late = { ...revocationOf(chain[13]?.id ?? '', true), actor }
  await assert.rejects(store.revokeToken(late, minutePasses), { code: 'token_expired' })
})

test('a revocation counts a long line that is made just before its transaction', async () => {
  const [root] = await insertChain(1)
  const id = root?.id ?? ''
  afterNone = async () => {
    const line = Array.from({ length: 40 }, (_, i) => ({
      id: idOf(i + 1),
      madeWith: idOf(i),
      isActive: i % 10 === 0,
    }))
    await insert(line)
  }
  assert.equal((await store.revokeToken(revocationOf(id, false))).live_descendants, 4)
  assert.equal(afterNone, null)
})

test('revoking again begins no transaction, so that it writes nothing and waits for nobody', async () => {
  const [first] = await insertChain(3)
  const id = first?.id ?? ''
  for (const again of [revocationOf(id, false), revocationOf(id, true)]) {
    const { revoked_at } = await store.revokeToken(again)
    const noTransaction = control.withPlugin(observer)
    noTransaction.transaction = () => assert.fail('a transaction began')
    assert.equal((await new TenancyStore(noTransaction, clock).revokeToken(again)).revoked_at, revoked_at)
  }
})
