// How many requests an organisation may have in progress and how often it may send them, over real
// connections: which ones are refused, which are not, and that aborted requests no longer count.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import pino from 'pino'
import { z } from 'zod'
import { waitFor } from '../../../tests/wait-for.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import type { Caller } from '../../core/caller.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../authentication.ts'
import { testOperation } from '../operation-fixture.ts'
import { serve } from '../serve.ts'
import { createHttp } from '../server.ts'
import { RequestsInProgress, requestLimits } from './requests-in-progress.ts'

const clock = new ManualClock(1_763_717_400_000)
const errors: string[] = []
const http = createHttp({
  clock,
  logger: pino({ level: 'error' }, { write: (line: string) => void errors.push(line) }),
  // A secret is the organisation and the name of the token.
  authenticate: byAccessToken(async (secret): Promise<Caller> => {
    const [tenantId = '', name = ''] = secret.split('/')
    return { tenantId, requester: tokenNamed(name), placement: 0, organisationName: tenantId, role: 'viewer' }
  }),
  isReady: () => true,
})
/** Handlers that wait, each until the test releases it or its client disconnects. */
const waiting = new Set<() => void>()
let given = 0
const shared = { access: ['viewer'], result: z.object({}) } as const
serve(http, testOperation({ ...shared, path: '/slow' }), {
  handle: ({ caller: { signal } }) =>
    new Promise((resolve, reject) => {
      const leave = () => resolve({ body: {} })
      waiting.add(leave)
      signal?.addEventListener('abort', () => {
        waiting.delete(leave)
        given++
        reject(signal.reason)
      })
    }),
})
serve(http, testOperation({ ...shared, path: '/dear', rate: { perMinute: 6, burst: 3 } }), {
  handle: async () => ({ body: {} }),
})

let address = ''
before(async () => {
  address = await http.listen({ host: '127.0.0.1', port: 0 })
})
after(async () => {
  // A client that aborts requests may leave connections on which none was sent.
  http.server.closeAllConnections()
  await http.close()
})
afterEach(() => letGo())

function letGo(): void {
  for (const leave of waiting) leave()
  waiting.clear()
}

const ask = (path: string, secret: string, signal?: AbortSignal) =>
  fetch(`${address}${path}`, { headers: { authorization: `Bearer ${secret}` }, signal: signal ?? null })

describe('requests in progress', () => {
  test('above the limit of a token are refused with 429, and other tokens and organisations are not', async () => {
    const { byToken } = requestLimits
    const first = Array.from({ length: byToken }, () => ask('/slow', 'acme/viewer'))
    await waitFor(async () => waiting.size === byToken, Boolean)
    const refused = await ask('/slow', 'acme/viewer')
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '1')
    const { code } = (await refused.json()) as { code: string }
    assert.equal(code, 'too_many_requests')
    const others = [ask('/dear', 'acme/owner'), ask('/dear', 'globex/viewer')]
    assert.deepEqual(
      (await Promise.all(others)).map(({ status }) => status),
      [200, 200],
    )
    letGo()
    assert.ok((await Promise.all(first)).every(({ status }) => status === 200))
    assert.equal((await ask('/dear', 'acme/viewer')).status, 200)
  })

  test('that were aborted no longer count, get the signal, and are no errors', async () => {
    const { byToken } = requestLimits
    for (let round = 1; round <= 2; round++) {
      const gone = new AbortController()
      const all = Array.from({ length: byToken }, () => ask('/slow', 'acme/viewer', gone.signal))
      const rejected = Promise.allSettled(all)
      await waitFor(async () => waiting.size === byToken, Boolean)
      gone.abort()
      await rejected
      await waitFor(async () => given === round * byToken, Boolean)
    }
    assert.deepEqual(errors, [])
  })

  test('that were pipelined on a closed connection no longer count either', async () => {
    const request = 'GET /slow HTTP/1.1\r\nhost: x\r\nauthorization: Bearer acme/pipes\r\n\r\n'
    for (let round = 0; round < 2; round++) {
      const before = given
      const socket = connect((http.server.address() as AddressInfo).port, '127.0.0.1')
      socket.write(request.repeat(20))
      await waitFor(async () => waiting.size === 1, Boolean)
      socket.destroy()
      await once(socket, 'close')
      await waitFor(async () => given === before + 1, Boolean)
    }
  })

  test('are limited for an organisation and in all', () => {
    const bounded = new RequestsInProgress({ byToken: 2, byOrganisation: 3, inAll: 4 })
    const begin = (tenantId: string, name: string) => bounded.begin({ tenantId, requester: tokenNamed(name) })
    const end = begin('a', 'x')
    begin('a', 'x')
    assert.throws(() => begin('a', 'x'), /This token has 2 requests under way/)
    begin('a', 'y')
    assert.throws(() => begin('a', 'y'), /Your organisation has 3 requests under way/)
    begin('b', 'x')
    begin('b', 'x')
    assert.throws(() => begin('a', 'z'), /Your organisation has 3 requests under way/)
    assert.throws(() => begin('b', 'y'), /The service has too many/)
    end()
    assert.throws(() => begin('a', 'z'), /The service has too many/)
  })

  test('of organisations that have everything together leave another its share', () => {
    const bounded = new RequestsInProgress({ byToken: 50, byOrganisation: 50, inAll: 100 })
    const begin = (tenantId: string) => bounded.begin({ tenantId, requester: tokenNamed('x') })
    for (let i = 0; i < 50; i++) for (const tenantId of ['a', 'b']) begin(tenantId)
    for (let i = 0; i < 34; i++) begin('c')
    for (const tenantId of ['a', 'b', 'c']) assert.throws(() => begin(tenantId), /under way/)
    for (let i = 0; i < 25; i++) begin('d')
    assert.throws(() => begin('d'), /The service has too many/)
  })

  const shared = (limits: { readonly byOrganisation: number; readonly inAll: number }) => {
    const bounded = new RequestsInProgress({ byToken: 1_000, ...limits })
    const begin = (root: string, branch: string, tenantId = 'a') =>
      bounded.begin({ tenantId, requester: tokenNamed(branch), line: { root, branch } })
    /** Begins requests until one is refused; returns how many were not. */
    const fill = (root: string, branch: string, tenantId?: string) => {
      for (let taken = 0; ; taken++) {
        try {
          begin(root, branch, tenantId)
        } catch {
          return taken
        }
      }
    }
    return { begin, fill }
  }

  test('above the limit of an organisation are refused where a line, and a branch of it, has its equal share', () => {
    const { fill } = shared({ byOrganisation: 12, inAll: 100 })
    assert.equal(fill('r', 'b1'), 12)
    assert.equal(fill('r', 'b2'), 6)
    assert.equal(fill('s', 's'), 6)
    assert.equal(fill('r', 'b1'), 0)
    assert.equal(fill('s', 's', 'neighbour'), 12)
  })

  test('of many branches are at most twice the limit, and above it a root and another line get theirs', () => {
    const { begin, fill } = shared({ byOrganisation: 12, inAll: 100 })
    let taken = 0
    for (let branch = 0; branch < 100; branch++) taken += fill('r', `b${branch}`)
    assert.equal(taken, 24)
    const end = begin('r', 'r')
    assert.throws(() => begin('r', 'r'), /Your organisation has 25 requests under way/)
    end()
    begin('r', 'r')
    assert.equal(fill('s', 'b'), 6)
    assert.equal(fill('t', 'b'), 4)
  })

  test('of other organisations that have everything leave a line its share of what is left', () => {
    const { fill } = shared({ byOrganisation: 12, inAll: 24 })
    assert.equal(fill('r', 'b', 'a'), 12)
    assert.equal(fill('r', 'b', 'b'), 12)
    assert.equal(fill('s', 's', 'a'), 6)
    assert.equal(fill('r', 'b', 'c'), 8)
  })
})

describe('an expensive operation', () => {
  test('may be used at a rate by an organisation, whichever of its tokens calls, and others are not affected', async () => {
    const statuses = async (secret: string, times: number) => {
      const all: number[] = []
      for (let i = 0; i < times; i++) all.push((await ask('/dear', secret)).status)
      return all
    }
    assert.deepEqual(await statuses('initech/a', 2), [200, 200])
    assert.deepEqual(await statuses('initech/b', 2), [200, 429])
    assert.equal((await ask('/dear', 'initech/a')).headers.get('retry-after'), '10')
    assert.deepEqual(await statuses('hooli/a', 3), [200, 200, 200])
    await clock.advance(10_000)
    assert.deepEqual(await statuses('initech/a', 2), [200, 429])
  })
})
