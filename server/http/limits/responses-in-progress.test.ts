// Clients over real sockets that send requests and do not read, with a manual clock. How much of a response
// the buffers of the systems accept is unknown here, so responses are larger than they are.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { z } from 'zod'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../authentication.ts'
import { testOperation } from '../operation-fixture.ts'
import { serve } from '../serve.ts'
import { createHttp } from '../server.ts'
import { type ResponseLimits, ResponsesInProgress, responseLimits } from './responses-in-progress.ts'

const mebibyte = 1024 * 1024
const largeBytes = 16 * mebibyte
const pieceTimeoutMs = responseLimits.pieceTimeoutMs

interface Scene {
  readonly http: FastifyInstance
  readonly answers: ResponsesInProgress
  readonly clock: ManualClock
  readonly port: number
  /** Sockets of the service, in the order in which they came. */
  readonly sockets: Socket[]
  readonly worked: string[]
  /** Organisations whose telemetry is hidden. */
  readonly hidden: Set<string>
  /** Secrets that do not work any more. */
  readonly revoked: Set<string>
}

const open: FastifyInstance[] = []
const clients: Socket[] = []
after(async () => {
  for (const client of clients) client.destroy()
  for (const http of open) {
    http.server.closeAllConnections()
    await http.close()
  }
})

async function sceneOf(limits: Partial<ResponseLimits> = {}): Promise<Scene> {
  const clock = new ManualClock(1_763_717_400_000)
  const revoked = new Set<string>()
  const answers = new ResponsesInProgress(clock, { ...responseLimits, ...limits })
  const http = createHttp({
    clock,
    logger: pino({ level: 'silent' }),
    // A secret is the organisation, and the root and the branch of a line of tokens where it has one.
    authenticate: byAccessToken(async (secret) => {
      if (revoked.has(secret)) return null
      const [tenantId = '', root, branch] = secret.split('/')
      return {
        tenantId,
        placement: 0,
        organisationName: tenantId,
        role: 'owner',
        requester: tokenNamed(secret),
        ...(root === undefined || branch === undefined ? {} : { line: { root, branch } }),
      }
    }),
    isReady: () => true,
    answers,
  })
  const worked: string[] = []
  const text = z.object({ text: z.string() })
  serve(http, testOperation({ path: '/large', result: text }), {
    handle: async ({ caller }) => {
      worked.push(caller.tenantId)
      return { body: { text: 'x'.repeat(largeBytes) } }
    },
  })
  const hidden = new Set<string>()
  serve(http, testOperation({ path: '/telemetry', result: text }), {
    handle: async ({ caller }) => ({
      body: { text: 'x'.repeat(largeBytes) },
      requireCurrent: () => {
        if (hidden.has(caller.tenantId)) throw new AppError('erasing', { retryAfterSeconds: 1 })
      },
    }),
  })
  // Their tokens end while they work, for a second or for less.
  const workFor = (elapsedMs: number) => async () => {
    await clock.advance(elapsedMs)
    revoked.add('acme')
    return { body: { text: 'x' }, requireCurrent: () => {} }
  }
  serve(http, testOperation({ path: '/long', result: text }), { handle: workFor(1_000) })
  serve(http, testOperation({ path: '/short', result: text }), { handle: workFor(999) })
  serve(http, testOperation({ method: 'POST', path: '/long', result: text }), { handle: workFor(1_000) })
  serve(http, testOperation({ method: 'PUT', path: '/long', result: text }), {
    handle: async () => ({ body: (await workFor(1_000)()).body }),
  })
  const handle = async () => ({ body: { text: 'x' } })
  serve(http, testOperation({ path: '/small', result: text }), { handle })
  serve(http, testOperation({ method: 'POST', path: '/change', result: text }), { handle })
  http.get('/stream', { config: { access: ['owner'] } }, (_request, reply) =>
    reply.send(
      Readable.from(
        (function* () {
          for (let i = 0; i < largeBytes / mebibyte; i++) yield 'x'.repeat(mebibyte)
        })(),
      ),
    ),
  )
  http.get<{ Params: { count: string } }>(
    '/mebibytes/:count',
    { config: { access: ['owner'] } },
    (request, reply) => reply.send(Buffer.alloc(Number(request.params.count) * mebibyte)),
  )
  serve(http, testOperation({ path: '/gone', result: text }), {
    handle: async ({ caller }) => {
      worked.push(caller.tenantId)
      await Promise.all(sockets.map((socket) => socket.destroyed || once(socket, 'close')))
      worked.push('gone')
      return { body: { text: 'x'.repeat(largeBytes) } }
    },
  })
  const sockets: Socket[] = []
  http.server.on('connection', (socket) => sockets.push(socket))
  const address = await http.listen({ host: '127.0.0.1', port: 0 })
  open.push(http)
  return { http, answers, clock, port: Number(new URL(address).port), sockets, worked, hidden, revoked }
}

/** Requests a response and reads its beginning only; returns the service's end of the connection. */
async function askAndStop({ port, sockets }: Scene, organisation: string, path = '/large') {
  const client = connect(port, '127.0.0.1')
  clients.push(client)
  client.on('error', () => {})
  client.write(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${organisation}\r\n\r\n`,
  )
  await once(client, 'data')
  client.pause()
  const own = sockets.find(({ remotePort }) => remotePort === client.localPort)
  if (own === undefined) assert.fail('The service has no such connection.')
  return { client, own }
}

const ask = ({ port }: Scene, organisation: string, path: string, method = 'GET') =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${organisation}` },
  })

/**
 * Advances the clock until the condition is true; the systems' buffers may accept some of a response
 * meanwhile.
 */
async function advanceUntil(scene: Scene, isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !isSo(); i++) {
    await scene.clock.advance(pieceTimeoutMs)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(isSo())
}

test('a response that its client does not read is ended with its connection', async () => {
  const scene = await sceneOf()
  for (const path of ['/large', '/stream']) {
    const { own } = await askAndStop(scene, 'acme', path)
    await advanceUntil(scene, () => own.destroyed)
  }
  assert.equal((await ask(scene, 'acme', '/small')).status, 200)
  assert.equal(scene.answers.totals.givenUp, 2)
})

test('a client that reads slowly gets all of its response', async () => {
  const scene = await sceneOf()
  for (const path of ['/large', '/stream']) {
    const { client, own } = await askAndStop(scene, 'acme', path)
    let sentBytes = own.bytesWritten
    client.on('data', () => {
      // More than the least amount for the time was read.
      if (own.bytesWritten - sentBytes < 2 * mebibyte) return
      sentBytes = own.bytesWritten
      client.pause()
      void scene.clock.advance(pieceTimeoutMs).then(() => client.resume())
    })
    client.resume()
    await once(client, 'end')
    assert.ok(client.bytesRead > largeBytes)
  }
})

test('a response that may no longer be sent ends at once, and the process hands out no more of it', async () => {
  const scene = await sceneOf({ ownerBytes: 3 * largeBytes })
  const hidden = await askAndStop(scene, 'acme', '/telemetry')
  const [other, neighbour] = [
    await askAndStop(scene, 'acme', '/large'),
    await askAndStop(scene, 'globex', '/telemetry'),
  ]
  scene.answers.endOutdated('acme')
  assert.deepEqual([scene.answers.totals.outdated, hidden.own.destroyed], [0, false])
  scene.hidden.add('acme')
  scene.answers.endOutdated('acme')
  assert.deepEqual([scene.answers.totals.outdated, hidden.own.destroyed], [1, true])
  const reset = once(hidden.client, 'error')
  hidden.client.resume()
  assert.equal((await reset)[0].code, 'ECONNRESET')
  // The system of the service drops what it has not sent.
  assert.ok(hidden.client.bytesRead < hidden.own.bytesWritten)
  for (const { client } of [other, neighbour]) {
    client.resume()
    await once(client, 'end')
    assert.ok(client.bytesRead > largeBytes)
  }
  assert.equal((await ask(scene, 'acme', '/telemetry')).status, 503)
  assert.equal(scene.answers.unreadBytes, 0)
})

test('a response whose token ends goes no further a second later, and others do', async () => {
  for (const path of ['/large', '/stream']) {
    const scene = await sceneOf({ ownerBytes: 3 * largeBytes })
    const [stolen, own, neighbour] = [
      await askAndStop(scene, 'acme/r/stolen', path),
      await askAndStop(scene, 'acme/r/r', path),
      await askAndStop(scene, 'globex/r/r', path),
    ]
    scene.revoked.add('acme/r/stolen')
    await scene.clock.advance(1_000)
    stolen.client.resume()
    await new Promise((resolve) => stolen.client.once('close', resolve))
    assert.ok(stolen.client.bytesRead < largeBytes)
    for (const { client } of [own, neighbour]) {
      client.resume()
      await once(client, 'end')
      assert.ok(client.bytesRead > largeBytes)
    }
    assert.equal(scene.answers.totals.outdated, 1)
    assert.equal(scene.answers.unreadBytes, 0)
  }
})

test('a read whose token has ended while it took a second is refused, and a change is answered', async () => {
  for (const [method, path, status] of [
    ['GET', '/long', 401],
    ['GET', '/short', 200],
    // It reads, as a preview does.
    ['POST', '/long', 401],
    ['PUT', '/long', 200],
  ] as const) {
    const scene = await sceneOf()
    assert.equal((await ask(scene, 'acme', path, method)).status, status, `${method} ${path}`)
    assert.equal((await ask(scene, 'acme', '/small')).status, 401)
    assert.equal((await ask(scene, 'globex', path, method)).status, 200)
  }
})

test('a client with too much unread is refused before the work is done, and a neighbour is not', async () => {
  const scene = await sceneOf({ ownerBytes: largeBytes })
  const { client } = await askAndStop(scene, 'acme')
  const refused = await ask(scene, 'acme', '/large')
  assert.equal(refused.status, 429)
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.deepEqual(await refused.json(), {
    detail:
      '17 MiB of answers to your organisation are not read yet; read them, and repeat after Retry-After.',
    code: 'too_many_requests',
  })
  assert.deepEqual(scene.worked, ['acme'])
  assert.equal(scene.answers.totals.refused, 1)
  assert.equal((await ask(scene, 'acme', '/small')).status, 429)
  assert.equal((await ask(scene, 'acme', '/change', 'POST')).status, 200)
  assert.equal(
    (await ask(scene, 'globex', '/large').then((answer) => answer.bytes())).length > largeBytes,
    true,
  )
  client.resume()
  client.destroy()
  while ((await ask(scene, 'acme', '/small')).status !== 200);
})

test('responses that began at once are limited as well', async () => {
  const scene = await sceneOf({ ownerBytes: 2 * largeBytes })
  const answers = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const { status, body } = await ask(scene, 'acme', '/large')
      return { status, body }
    }),
  )
  const taken = answers.filter(({ status }) => status === 200)
  assert.ok(taken.length >= 1)
  assert.ok(taken.length <= 2, `${taken.length} answers`)
  await Promise.all(answers.map(({ body }) => body?.cancel()))
})

test('where all together have too much, the oldest response of the owner with the most is ended', async () => {
  const scene = await sceneOf({ ownerBytes: 3 * largeBytes, totalBytes: 3.5 * largeBytes })
  const honest = await askAndStop(scene, 'globex')
  const first = await askAndStop(scene, 'acme')
  const second = await askAndStop(scene, 'acme')
  const third = await askAndStop(scene, 'initech')
  assert.equal(first.own.destroyed, true)
  for (const { own } of [honest, second, third]) assert.equal(own.destroyed, false)
})

test('above the limit of an organisation a line, and a branch of it, with less than its equal share is not refused', async () => {
  const scene = await sceneOf({ ownerBytes: 2 * largeBytes })
  const status = async (secret: string, path: string) => {
    const { body, status } = await ask(scene, secret, path)
    await body?.cancel()
    return status
  }
  await askAndStop(scene, 'acme/r/b1', '/mebibytes/33')
  assert.equal(await status('acme/r/b1', '/small'), 429)
  for (const secret of ['acme/r/r', 'acme/r/b2', 'acme/s/s']) {
    assert.equal(await status(secret, '/small'), 200)
    assert.equal(await status(secret, '/mebibytes/17'), 429)
  }
  await askAndStop(scene, 'acme/r/b2', '/mebibytes/15')
  assert.equal(await status('acme/r/b2', '/mebibytes/2'), 429)
  assert.equal(await status('acme/s/s', '/small'), 200)
})

test('of twice the limit of an organisation, the oldest response of the branch with the most is ended', async () => {
  const scene = await sceneOf({ ownerBytes: 64 * mebibyte })
  const begin = async (owner: string, count: number) =>
    (await askAndStop(scene, owner, `/mebibytes/${count}`)).own
  const others = [await begin('globex/r/r', 40), await begin('acme/s/s', 13), await begin('acme/r/b2', 10)]
  const oldest = await begin('acme/r/b1', 20)
  others.push(await begin('acme/r/b1', 20))
  // Each is a little less than an equal share.
  for (const [root, count] of Object.entries({ t: 21, u: 15, v: 12, w: 10 }))
    others.push(await begin(`acme/${root}/b`, count))
  assert.equal(scene.answers.unreadBytes, (40 + 121) * mebibyte)
  others.push(await begin('acme/x/b', 9))
  assert.equal(scene.answers.unreadBytes, (40 + 121 + 9 - 20) * mebibyte)
  assert.equal(oldest.destroyed, true)
  assert.ok(others.every(({ destroyed }) => !destroyed))
})

test('a response that is read leaves nothing', async () => {
  const scene = await sceneOf({ ownerBytes: largeBytes })
  for (let i = 0; i < 3; i++) {
    for (const path of ['/small', '/large', '/stream']) {
      const answer = await ask(scene, 'acme', path)
      assert.equal(answer.status, 200)
      await answer.bytes()
    }
  }
  const { statusCode, headers } = await scene.http.inject({
    method: 'HEAD',
    url: '/large',
    headers: { authorization: 'Bearer acme' },
  })
  assert.equal(statusCode, 200)
  assert.ok(Number(headers['content-length']) > largeBytes)
  assert.equal(scene.clock.waiting, 0)
  assert.equal(scene.answers.unreadBytes, 0)
})

test('a response whose client was gone before it is not counted as unread', async () => {
  const scene = await sceneOf()
  const client = connect(scene.port, '127.0.0.1')
  client.write('GET /gone HTTP/1.1\r\nhost: x\r\nauthorization: Bearer acme\r\n\r\n')
  while (scene.worked.length === 0) await new Promise(setImmediate)
  client.destroy()
  while (scene.worked.length === 1) await new Promise(setImmediate)
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  assert.equal(scene.answers.unreadBytes, 0)
})
