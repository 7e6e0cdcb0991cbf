// No token can use up the requests or the rates of its organisation so that another person's are refused:
// what is held open, what is repeated, and what is not read, by real clients with tokens of a real control
// plane.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import type { Role } from '../../contract/role.ts'
import { openControlPlane } from '../../tests/control-planes.ts'
import { waitFor } from '../../tests/wait-for.ts'
import { type Actor, operatorActor } from '../core/actor.ts'
import { furtherBranch } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { requestLimits } from '../http/limits/requests-in-progress.ts'
import { responseLimits } from '../http/limits/responses-in-progress.ts'
import { addSessionRoutes } from './session-routes.ts'
import { SessionStore } from './sessions.ts'
import { newTokenSecret } from './tenancy.ts'
import { tenancyHttp } from './tenancy-fixture.ts'

const { control, close } = await openControlPlane()
const clock = new ManualClock(1_763_717_400_000)
const { http, store } = tenancyHttp(control, clock)
addSessionRoutes(http, new SessionStore(control, clock))
http.get('/large', { config: { access: ['owner', 'admin'] } }, (_request, reply) =>
  reply.send(Buffer.alloc(responseLimits.ownerBytes + 1)),
)
const address = await http.listen({ host: '127.0.0.1', port: 0 })
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
after(async () => {
  http.server.closeAllConnections()
  await http.close()
  await close()
})

let organisations = 0
let tenantId = ''
const operator = operatorActor('command-line')
beforeEach(async () => {
  tenantId = `acme-${++organisations}`
  await store.createOrganisation({ tenantId, name: tenantId, actor: operator }, async () => {})
})

interface Token {
  readonly id: string
  readonly secret: string
  readonly actor: Actor
}

async function make(role: Role, by?: Token): Promise<Token> {
  const secret = newTokenSecret(role)
  const actor = by?.actor ?? operator
  const { id } = await store.createToken({ tenantId, name: role, role, secret, expiresAtMs: null, actor })
  const caller = await store.findCaller(secret)
  return { id, secret, actor: caller?.requester ?? assert.fail('the token is not known') }
}

async function ask({ secret }: Token, method: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` }
  const { body, status } = await fetch(`${address}${path}`, { method, headers })
  await body?.cancel()
  return status
}

const revoke = (by: Token, { id }: Token) => ask(by, 'DELETE', `/tokens/${id}`)

function connectTo(): Socket {
  const socket = connect((http.server.address() as AddressInfo).port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  return socket
}

/** Sends a request without the rest of its body, and again where it is refused. */
function hold(token: Token): void {
  const socket = connectTo()
  socket.once('data', () => {
    socket.destroy()
    hold(token)
  })
  socket.write(
    `POST /tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token.secret}\r\n` +
      'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
  )
}

/** Holds as many requests open as an organisation may have. */
async function holdAll(tokens: readonly Token[]): Promise<void> {
  const each = requestLimits.byOrganisation / tokens.length
  for (const token of tokens) for (let i = 0; i < each; i++) hold(token)
  for (const token of tokens) {
    await waitFor(
      () => ask(token, 'DELETE', '/tokens/nonsense'),
      (status) => status === 429,
    )
  }
}

/** Repeats a request until it is refused. */
async function useUp(token: Token, method: string, path: string): Promise<void> {
  while ((await ask(token, method, path)) !== 429);
}

describe('an admin that holds every request of the organisation open', () => {
  const thief = async (by?: Token) => {
    const admin = await make('admin', by)
    return [admin, await make('admin', admin), await make('admin', admin)] as const
  }

  test('cannot keep an owner of another line from revoking the token', async () => {
    const owner = await make('owner')
    const held = await thief()
    await holdAll(held)
    assert.equal(await revoke(owner, held[0]), 200)
    assert.equal(await ask(held[0], 'GET', '/me'), 401)
  })

  test('cannot keep the owner that it descends from, or another descendant of hers, from revoking it', async () => {
    const owner = await make('owner')
    const [second, third] = [await make('owner', owner), await make('admin', owner)]
    const held = await thief(third)
    await holdAll(held)
    assert.equal(await revoke(second, held[1]), 200)
    assert.equal(await revoke(owner, held[0]), 200)
  })
})

describe('an admin that does not read its answers', () => {
  test('cannot keep an owner of another line or branch from finding the token and revoking it', async () => {
    const owner = await make('owner')
    const [second, other] = [await make('owner', owner), await make('owner')]
    const admin = await make('admin', owner)
    const socket = connectTo()
    socket.write(`GET /large HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${admin.secret}\r\n\r\n`)
    await once(socket, 'data')
    socket.pause()
    assert.equal(await ask(admin, 'GET', '/tokens'), 429)
    for (const { secret } of [owner, second, other]) {
      const headers = { authorization: `Bearer ${secret}` }
      const answer = await fetch(`${address}/tokens`, { headers })
      assert.equal(answer.status, 200)
      assert.ok((await answer.text()).includes(admin.id))
    }
    assert.equal(await revoke(other, admin), 200)
    assert.equal(await ask(admin, 'GET', '/me'), 401)
  })
})

describe('a rate that another token has used up', () => {
  test('does not keep an owner from signing in', async () => {
    const owner = await make('owner')
    const second = await make('owner', owner)
    await useUp(await make('viewer', second), 'POST', '/session')
    await useUp(await make('viewer'), 'POST', '/session')
    for (const token of [owner, second]) assert.equal(await ask(token, 'POST', '/session'), 201)
  })

  test('does not keep an owner from revoking the token', async () => {
    const owner = await make('owner')
    const admin = await make('admin', owner)
    await useUp(admin, 'DELETE', '/tokens/nonsense')
    assert.equal(await revoke(owner, admin), 200)
    assert.equal(await ask(admin, 'GET', '/me'), 401)
  })
})

test('only the operator makes lines, and only a root makes branches of its line', async () => {
  const lineOf = async ({ secret }: Token) => (await store.findCaller(secret))?.line
  const owner = await make('owner')
  const admin = await make('admin', owner)
  const further = await make('admin', admin)
  const last = await make('admin', further)
  assert.deepEqual(await lineOf(owner), { root: owner.id, branch: owner.id })
  assert.deepEqual(await lineOf(admin), { root: owner.id, branch: admin.id })
  for (const token of [further, last]) {
    assert.deepEqual(await lineOf(token), { root: owner.id, branch: furtherBranch })
  }
})
