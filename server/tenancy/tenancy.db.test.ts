// Organisations and tokens with a real control-plane database and the real HTTP server: two organisations at
// a time, presence before absence, and a search for the secret in every stored byte.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { InjectOptions } from 'fastify'
import type { Role } from '../../contract/role.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { findBreak } from '../audit/chain.ts'
import { readChain } from '../audit/log.ts'
import { operatorActor, tokenActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { newTokenSecret } from './tenancy.ts'
import { tenancyHttp } from './tenancy-fixture.ts'

const msPerDay = 86_400_000
const { control, close, filesWith } = await openSharedControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const { http, store } = tenancyHttp(control, clock)
await http.ready()
after(async () => {
  await http.close()
  await close()
})

const nothingMore = async () => {}
for (const tenantId of ['acme', 'globex']) {
  await store.createOrganisation(
    { tenantId, name: tenantId.toUpperCase(), actor: operatorActor('command-line') },
    nothingMore,
  )
}

async function tokenOf(tenantId: string, role: Role, expiresAtMs: number | null = null) {
  const secret = newTokenSecret(role)
  const token = await store.createToken({
    tenantId,
    name: 'a test',
    role,
    secret,
    expiresAtMs,
    actor: operatorActor('command-line'),
  })
  return { ...token, secret }
}

const owner = await tokenOf('acme', 'owner')
const admin = await tokenOf('acme', 'admin')
const stranger = await tokenOf('globex', 'owner')

async function ask(secret: string, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: unknown) {
  const options: InjectOptions = { method, url, headers: { authorization: `Bearer ${secret}` } }
  const answer = await http.inject(
    payload === undefined ? options : { ...options, payload: payload as object },
  )
  return { status: answer.statusCode, body: answer.json(), text: answer.body }
}

const auditOf = async (tenantId: string) =>
  (await readChain(control, 'audit_entries', tenantId)).map(({ text }) => JSON.parse(text))

describe('organisations', () => {
  test('each has a placement of its own, which it keeps', async () => {
    const [acme, globex] = [await store.findOrganisation('acme'), await store.findOrganisation('globex')]
    assert.deepEqual([acme?.placement, globex?.placement], [0, 1])
    assert.equal(await store.findOrganisation('nobody'), null)
  })

  test('one that exists is not created again, and nothing of the attempt remains', async () => {
    const before = await auditOf('acme')
    let isRun = false
    const again = store.createOrganisation(
      { tenantId: 'acme', name: 'Other', actor: operatorActor('command-line') },
      async () => {
        isRun = true
      },
    )
    await assert.rejects(again, { code: 'name_taken' })
    assert.equal(isRun, false)
    assert.deepEqual(await auditOf('acme'), before)
  })

  test('one whose first records fail is not created', async () => {
    const failing = store.createOrganisation(
      { tenantId: 'stillborn', name: 'x', actor: operatorActor('command-line') },
      async () => {
        throw new Error('no detectors')
      },
    )
    await assert.rejects(failing, /no detectors/)
    assert.equal(await store.findOrganisation('stillborn'), null)
    assert.deepEqual(await auditOf('stillborn'), [])
  })

  test('two that are created at once don’t share a placement', async () => {
    const places = await Promise.all(
      ['first-of-two', 'second-of-two'].map((tenantId) =>
        store.createOrganisation(
          { tenantId, name: tenantId, actor: operatorActor('command-line') },
          nothingMore,
        ),
      ),
    )
    assert.notEqual(places[0]?.placement, places[1]?.placement)
  })
})

describe('secrets', () => {
  test('a secret is in no byte of the database; its hash and its first characters are', async () => {
    const { secret, id } = await tokenOf('acme', 'viewer')
    assert.deepEqual((await store.findCaller(secret))?.requester, {
      ...tokenActor(id, 'a test'),
      credential: { sessionId: null },
    })
    assert.notDeepEqual(filesWith(id), [], 'the token is there')
    assert.notDeepEqual(filesWith(secret.slice(0, 'lethe_viewer_'.length + 4)), [], 'so is its prefix')
    assert.deepEqual(filesWith(secret), [])
    assert.deepEqual(filesWith(secret.slice('lethe_viewer_'.length)), [])
    assert.deepEqual(filesWith(secret.slice(-20)), [])
  })

  test('a created token shows its secret in that response and in no other, nor in the audit log', async () => {
    const created = await ask(owner.secret, 'POST', '/tokens', { name: 'ci', role: 'ingest' })
    assert.equal(created.status, 201)
    const { token, id } = created.body
    assert.match(token, /^lethe_ingest_/)
    assert.equal((await ask(token, 'GET', '/me')).body.requester, `token:ci (${id})`)
    const list = await ask(owner.secret, 'GET', '/tokens?limit=500')
    assert.ok(list.text.includes(id))
    assert.ok(!list.text.includes(token))
    const audit = JSON.stringify(await auditOf('acme'))
    assert.ok(audit.includes(id))
    assert.ok(!audit.includes(token) && !audit.includes(token.slice(-20)))
  })

  test('a secret must be complete: a part of it, its hash or other letters are unknown', async () => {
    const { secret } = owner
    for (const other of [secret.slice(0, -1), `${secret}a`, secret.toUpperCase(), '', '%', "' or 1=1 --"]) {
      assert.equal(await store.findCaller(other), null, other)
    }
    const row = await control.selectFrom('access_tokens').select('secret_hash').executeTakeFirstOrThrow()
    assert.equal(await store.findCaller(row.secret_hash), null)
  })
})

describe('the end of a token', () => {
  test('a revoked token stops with the next request, and the others continue to work', async () => {
    const revoked = await tokenOf('acme', 'viewer')
    assert.equal((await ask(revoked.secret, 'GET', '/me')).status, 200)
    const answer = await ask(admin.secret, 'DELETE', `/tokens/${revoked.id}`)
    assert.deepEqual([answer.status, answer.body.revoked_at], [200, '2025-11-21T09:30:00.000Z'])
    assert.equal((await ask(revoked.secret, 'GET', '/me')).status, 401)
    assert.equal((await ask(admin.secret, 'GET', '/me')).status, 200)
  })

  test('revoking again returns the first revocation and is in the audit log once', async () => {
    const revoked = await tokenOf('acme', 'viewer')
    const first = await ask(owner.secret, 'DELETE', `/tokens/${revoked.id}`)
    await clock.advance(1000)
    const second = await ask(owner.secret, 'DELETE', `/tokens/${revoked.id}`)
    assert.deepEqual(second.body, first.body)
    const entries = (await auditOf('acme')).filter(({ target }) => target === revoked.id)
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['token.created', 'token.revoked'],
    )
  })

  test('a token is valid until its last millisecond and not in the one after', async () => {
    const created = await ask(owner.secret, 'POST', '/tokens', {
      name: 'a day',
      role: 'viewer',
      expires_in_days: 1,
    })
    const secret: string = created.body.token
    assert.equal(Date.parse(created.body.expires_at), clock.nowMs() + msPerDay)
    await clock.advance(msPerDay - 1)
    assert.equal((await ask(secret, 'GET', '/me')).status, 200)
    await clock.advance(1)
    assert.equal((await ask(secret, 'GET', '/me')).status, 401)
    assert.equal((await ask(owner.secret, 'GET', '/me')).status, 200)
  })
})

describe('the roles that may make and revoke tokens', () => {
  test('an admin can’t make an owner token, and nothing is created', async () => {
    const before = (await store.listTokens('acme', { limit: 500, beforeId: null })).length
    const answer = await ask(admin.secret, 'POST', '/tokens', { name: 'x', role: 'owner' })
    assert.deepEqual([answer.status, answer.body.code], [403, 'role_not_permitted'])
    assert.equal((await store.listTokens('acme', { limit: 500, beforeId: null })).length, before)
    for (const role of ['admin', 'member', 'viewer', 'ingest']) {
      assert.equal((await ask(admin.secret, 'POST', '/tokens', { name: 'x', role })).status, 201, role)
    }
  })

  test('an admin can’t revoke an owner token, which continues to work', async () => {
    const other = await tokenOf('acme', 'owner')
    const answer = await ask(admin.secret, 'DELETE', `/tokens/${other.id}`)
    assert.deepEqual([answer.status, answer.body.code], [403, 'role_not_permitted'])
    assert.equal((await ask(other.secret, 'GET', '/me')).status, 200)
    assert.equal((await ask(owner.secret, 'DELETE', `/tokens/${other.id}`)).status, 200)
    assert.equal((await ask(other.secret, 'GET', '/me')).status, 401)
  })

  test('roles below admin neither see, make nor revoke tokens', async () => {
    for (const role of ['member', 'viewer', 'ingest'] as const) {
      const { secret } = await tokenOf('acme', role)
      assert.equal((await ask(secret, 'GET', '/tokens')).status, 403)
      assert.equal((await ask(secret, 'POST', '/tokens', { name: 'x', role: 'viewer' })).status, 403)
      assert.equal((await ask(secret, 'DELETE', `/tokens/${admin.id}`)).status, 403)
      assert.equal((await ask(secret, 'GET', '/me')).body.role, role)
    }
  })

  test('another organisation’s token looks exactly like one that doesn’t exist, and stays valid', async () => {
    const foreign = await ask(stranger.secret, 'DELETE', `/tokens/${owner.id}`)
    const unknown = await ask(stranger.secret, 'DELETE', '/tokens/tok_00000000000000000000000000')
    assert.deepEqual([foreign.status, foreign.text], [404, unknown.text])
    assert.equal((await ask(owner.secret, 'GET', '/me')).status, 200)
    const seen = await ask(stranger.secret, 'GET', '/tokens?limit=500')
    assert.deepEqual(
      seen.body.items.map(({ id }: { id: string }) => id),
      [stranger.id],
    )
  })

  test('all problems of a new token are in one response', async () => {
    const answer = await ask(owner.secret, 'POST', '/tokens', {
      name: '',
      role: 'king',
      expires_in_days: 0,
      tenant_id: 'globex',
    })
    assert.equal(answer.status, 422)
    assert.deepEqual(answer.body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')).sort(), [
      'body.expires_in_days',
      'body.name',
      'body.role',
      'body.tenant_id',
    ])
  })
})

test('lists of tokens continue where the previous page ended, each token once, newest first', async () => {
  const seen: string[] = []
  for (let cursor = ''; ; ) {
    const { body } = await ask(owner.secret, 'GET', `/tokens?limit=3${cursor}`)
    seen.push(...body.items.map(({ id }: { id: string }) => id))
    if (body.next_cursor === null) break
    cursor = `&cursor=${body.next_cursor}`
  }
  const all = await store.listTokens('acme', { limit: 500, beforeId: null })
  assert.ok(all.length > 6)
  assert.deepEqual(
    seen,
    all.map(({ id }) => id),
  )
  assert.deepEqual(seen, seen.toSorted().reverse())
})

test('an organisation reads its own name and since when it exists', async () => {
  const { body, status } = await ask(stranger.secret, 'GET', '/organisation')
  const created_at = '2025-11-21T09:30:00.000Z'
  assert.deepEqual([status, body], [200, { tenant_id: 'globex', name: 'GLOBEX', created_at }])
  const { secret } = await tokenOf('globex', 'ingest')
  assert.equal((await ask(secret, 'GET', '/organisation')).status, 403)
})

test('after all of this the audit logs are consistent', async () => {
  for (const tenantId of ['acme', 'globex']) {
    const chain = await readChain(control, 'audit_entries', tenantId)
    assert.ok(chain.length > 0)
    assert.equal(findBreak(chain), null)
  }
})
