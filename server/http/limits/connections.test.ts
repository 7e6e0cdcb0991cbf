// What one connection, and many, can make the service do, over real sockets on loopback: pipelined requests
// whose connection has ended, more of them than may wait, connections that send nothing, and what can't be
// parsed as HTTP.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import pino from 'pino'
import { z } from 'zod'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { elapsedMs } from '../../core/clock.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { LoopTurns } from '../../core/turns/loop-turns.ts'
import { byAccessToken } from '../authentication.ts'
import { testOperation } from '../operation-fixture.ts'
import { serve } from '../serve.ts'
import { createHttp } from '../server.ts'
import { ClientAddresses } from './client-address.ts'
import { type ConnectionLimits, Connections } from './connections.ts'

const secret = 'the-one-valid-token-0123456789'
const otherSecret = 'the-token-of-a-neighbour-0123456789'
const open: { http: FastifyInstance; sockets: Socket[] }[] = []
afterEach(async () => {
  for (const { http, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy()
    await http.close()
  }
})

/** A listener with an operation that waits until the test releases it, and one that responds at once. */
async function listen(limits: ConnectionLimits = { total: 100, perAddress: 100 }, proxies: string[] = []) {
  const turns = new LoopTurns({ nowMs: elapsedMs })
  const clock = new ManualClock(1_763_717_400_000)
  const addresses = new ClientAddresses(proxies, 'x-forwarded-for')
  const connections = new Connections(limits, addresses, turns, clock)
  const http = createHttp({
    clock,
    logger: pino({ level: 'silent' }),
    authenticate: byAccessToken(async (given) =>
      given === secret || given === otherSecret
        ? {
            tenantId: given === secret ? 'acme' : 'globex',
            placement: 0,
            organisationName: 'An organisation',
            role: 'viewer',
            requester: tokenNamed('x'),
          }
        : null,
    ),
    isReady: () => true,
    connections,
  })
  const shared = {
    access: ['viewer'] as const,
    params: z.object({ id: z.string() }),
    result: z.object({}),
  }
  const begun: string[] = []
  const letGo: (() => void)[] = []
  serve(http, testOperation({ ...shared, path: '/slow/:id' }), {
    handle: async ({ params }) => {
      begun.push(params.id)
      await new Promise<void>((resolve) => letGo.push(resolve))
      return { body: {} }
    },
  })
  serve(http, testOperation({ ...shared, method: 'POST', path: '/quick/:id', body: z.object({}) }), {
    handle: async ({ params }) => {
      begun.push(params.id)
      return { body: {} }
    },
  })
  http.get('/open', { config: { access: 'public' } }, async () => 'open')
  await http.listen({ host: '127.0.0.1', port: 0 })
  const { port } = http.server.address() as AddressInfo
  const sockets: Socket[] = []
  open.push({ http, sockets })
  const dial = async () => {
    const socket = connect(port, '127.0.0.1')
      .setEncoding('utf8')
      .on('error', () => undefined)
    sockets.push(socket)
    const [accepted] = await Promise.all([once(http.server, 'connection'), once(socket, 'connect')])
    return { socket, accepted: accepted[0] as Socket, text: textOf(socket) }
  }
  return { http, clock, connections, begun, letGo, dial }
}

/** Collects received bytes; resolves to all of them when the other side ends the connection. */
function textOf(socket: Socket) {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  const ended = new Promise<string>((resolve) => socket.once('close', () => resolve(text)))
  return { now: () => text, ended }
}

const head = `host: lethe\r\nauthorization: Bearer ${secret}\r\n`
const get = (path: string) => `GET ${path} HTTP/1.1\r\n${head}\r\n`
const post = (path: string, body = '{}') =>
  `POST ${path} HTTP/1.1\r\n${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** Also where the connection was reset, which is an error besides. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
}

const count = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].length

describe('requests pipelined on one connection', () => {
  test('are served one at a time, in their order, bodies included', async () => {
    const { begun, dial, letGo } = await listen()
    const { socket, text } = await dial()
    socket.write(get('/slow/1') + post('/quick/2') + get('/slow/3') + post('/quick/4'))
    await until(() => letGo.length === 1)
    // When a request of another connection has its response, anything that could begin beside it has begun.
    const other = await dial()
    other.socket.write(post('/quick/other'))
    await until(() => other.text.now().includes('200 OK'))
    assert.deepEqual(begun, ['1', 'other'])
    letGo[0]?.()
    await until(() => letGo.length === 2)
    assert.deepEqual(begun, ['1', 'other', '2', '3'])
    letGo[1]?.()
    await until(() => count(text.now(), /HTTP\/1\.1 200 OK/g) === 4)
    assert.deepEqual(begun, ['1', 'other', '2', '3', '4'])
  })

  test('that end with their connection create errors without a stack, and later errors have one', async () => {
    const { dial, http, letGo } = await listen()
    const { accepted, socket } = await dial()
    const failed = new Promise<Error>((resolve) =>
      http.server.on('request', (request) => request.on('error', resolve)),
    )
    const gone = closed(accepted)
    socket.write(get('/slow/1') + post('/quick/2').slice(0, -1))
    await until(() => letGo.length === 1)
    socket.resetAndDestroy()
    const { stack } = await failed
    await gone
    assert.doesNotMatch(stack ?? '', /\n +at /)
    assert.match(new Error('later').stack ?? '', /\n +at /)
  })

  test('are dropped where the connection has ended before their turn, and counted', async () => {
    const { begun, connections, dial, letGo } = await listen()
    const { accepted, socket } = await dial()
    const gone = closed(accepted)
    socket.write(Array.from({ length: 20 }, (_, i) => get(`/slow/${i}`)).join(''))
    await until(() => letGo.length === 1)
    socket.resetAndDestroy()
    await gone
    letGo[0]?.()
    const other = await dial()
    other.socket.write(post('/quick/other'))
    await until(() => other.text.now().includes('200 OK'))
    assert.deepEqual(begun, ['0', 'other'])
    assert.equal(connections.totals.dropped, 19)
    assert.equal(connections.size, 1)
  })

  test('above the waiting limit are refused with 429 in their turn, and the connection ends', async () => {
    const { begun, dial, letGo } = await listen()
    const { socket, text } = await dial()
    socket.write(
      Array.from({ length: 100 }, (_, i) => (i === 0 ? get('/slow/0') : post(`/quick/${i}`))).join(''),
    )
    await until(() => letGo.length === 1)
    letGo[0]?.()
    const all = await text.ended
    assert.equal(count(all, /HTTP\/1\.1 200 OK/g), 33)
    assert.equal(count(all, /HTTP\/1\.1 429 Too Many Requests/g), 1)
    assert.match(
      all.slice(all.lastIndexOf('HTTP/1.1')),
      /retry-after: 1\r\n.*connection: close.*"code":"too_many_requests"/s,
    )
    assert.equal(begun.length, 33)
  })

  test('far above the waiting limit end the connection at once', async () => {
    const { begun, connections, dial, letGo } = await listen()
    const { socket, text } = await dial()
    socket.write(get('/slow/0'))
    await until(() => letGo.length === 1)
    socket.write(post('/quick/1').repeat(500))
    assert.equal(await text.ended, '')
    assert.deepEqual(begun, ['0'])
    assert.equal(connections.size, 0)
  })

  test('above the limit on many connections of an address delay its next connections, which are then read one by one', async () => {
    const { begun, clock, dial } = await listen()
    for (let i = 0; i < 20; i++) {
      const { socket, text } = await dial()
      socket.write(post('/quick/flood').repeat(500))
      await text.ended
    }
    begun.length = 0
    const [first, second, third] = [await dial(), await dial(), await dial()]
    for (const [i, { socket }] of [first, second, third].entries()) socket.write(post(`/quick/${i}`))
    await until(() => first.text.now().includes('200 OK'))
    assert.deepEqual(begun, ['0'])
    assert.equal(second.accepted.bytesRead + third.accepted.bytesRead, 0)
    await clock.advance(50)
    await until(() => second.text.now().includes('200 OK'))
    assert.equal(third.accepted.bytesRead, 0)
    await clock.advance(50)
    await until(() => third.text.now().includes('200 OK'))
    assert.deepEqual(begun, ['0', '1', '2'])
  })

  test('that are still arriving when their connection ends never reach their operation', async () => {
    const { begun, connections, dial } = await listen()
    const { accepted, socket } = await dial()
    const gone = closed(accepted)
    socket.write(post('/quick/1').slice(0, -1))
    await until(() => accepted.bytesRead > 0)
    socket.resetAndDestroy()
    await gone
    assert.deepEqual(begun, [])
    assert.equal(connections.size, 0)
  })
})

describe('many connections', () => {
  test('that send nothing are closed for a sender, the oldest first, and one that has sent a token stays', async () => {
    const { connections, dial } = await listen({ total: 100, perAddress: 5 })
    const known = await dial()
    known.socket.write(post('/quick/known'))
    await until(() => known.text.now().includes('200 OK'))
    const idle = [await dial(), await dial(), await dial(), await dial()]
    const oldest = closed(idle[0]?.socket ?? assert.fail())
    const sender = await dial()
    await oldest
    sender.socket.write(post('/quick/sender'))
    await until(() => sender.text.now().includes('200 OK'))
    assert.deepEqual(connections.totals, { refused: 0, evicted: 1, dropped: 0 })
    assert.equal(connections.size, 5)
    const gone = idle.slice(1).map(({ socket }) => closed(socket))
    for (const _ of gone) (await dial()).socket.write(post('/quick/another'))
    await Promise.all(gone)
    known.socket.write(post('/quick/known'))
    await until(() => count(known.text.now(), /200 OK/g) === 2)
  })

  test('with unfinished requests of one organisation are closed for another, which keeps its own', async () => {
    const { connections, dial } = await listen({ total: 100, perAddress: 6 })
    const honest = await dial()
    honest.socket.write(post('/quick/1').replace(secret, otherSecret))
    await until(() => honest.text.now().includes('200 OK'))
    const unfinished = []
    for (let i = 0; i < 5; i++) {
      const { accepted, socket } = await dial()
      unfinished.push(accepted)
      socket.write(post('/quick/never').slice(0, -1))
      await until(() => accepted.bytesRead > 0)
    }
    const { accepted: first } = await dial()
    await closed(unfinished[0] ?? assert.fail())
    assert.equal(first.destroyed, false)
    await dial()
    await closed(first)
    assert.equal(honest.accepted.destroyed, false)
    assert.equal(connections.size, 6)
  })

  test('that all work for callers are kept, and one more is refused', async () => {
    const { connections, dial, letGo } = await listen({ total: 100, perAddress: 3 })
    const busy = [await dial(), await dial(), await dial()]
    for (const [i, { socket }] of busy.entries()) socket.write(get(`/slow/${i}`))
    await until(() => letGo.length === 3)
    const refused = await dial()
    assert.equal(await refused.text.ended, '')
    for (const go of letGo) go()
    for (const { text } of busy) await until(() => text.now().includes('200 OK'))
    assert.deepEqual(connections.totals, { refused: 1, evicted: 0, dropped: 0 })
  })

  test('of more senders behind one address than its limit end without a reset while idle, and each that connects again is served', async () => {
    const { connections, dial } = await listen({ total: 100, perAddress: 4 })
    const errors: Error[] = []
    const ended: number[] = []
    for (let i = 0; i < 6; i++) {
      const { socket, text } = await dial()
      socket.on('error', (error) => errors.push(error)).on('end', () => ended.push(i))
      socket.write(post(`/quick/${i}`))
      await until(() => text.now().includes('200 OK'))
    }
    await until(() => ended.length + errors.length === 2)
    assert.deepEqual([ended, errors], [[0, 1], []])
    assert.deepEqual(connections.totals, { refused: 0, evicted: 2, dropped: 0 })
  })

  test('are limited in all also where they come from a proxy, which the limit of its address does not count', async () => {
    const { connections, dial } = await listen({ total: 6, perAddress: 2 }, ['127.0.0.1'])
    for (let i = 0; i < 10; i++) await dial()
    assert.equal(connections.size, 6)
    assert.equal(connections.totals.evicted, 4)
  })
})

describe('refusals below the framework', () => {
  const answers: readonly (readonly [string, string, number, string])[] = [
    ['what is no HTTP', 'nonsense\r\n\r\n', 400, 'bad_request'],
    ['a request without a host', 'GET /open HTTP/1.1\r\n\r\n', 400, 'bad_request'],
    [
      'headers past the limit',
      `GET /open HTTP/1.1\r\nx: ${'y'.repeat(17_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    [
      'another expectation',
      'GET /open HTTP/1.1\r\nhost: a\r\nexpect: tea\r\n\r\n',
      417,
      'expectation_failed',
    ],
  ]
  for (const [name, sent, status, code] of answers) {
    test(`${name} is refused with ${status} ${code} in the documented form, and the connection ends`, async () => {
      const { dial } = await listen()
      const { socket, text } = await dial()
      socket.write(sent)
      const [top = '', body = ''] = (await text.ended).split('\r\n\r\n')
      assert.match(top, new RegExp(`^HTTP/1\\.1 ${status} `))
      assert.match(top, /^content-type: application\/json/m)
      assert.match(top, /^cache-control: no-store/m)
      assert.match(top, /^x-content-type-options: nosniff/m)
      assert.match(top, /^connection: close/m)
      const { detail, ...rest } = JSON.parse(body)
      assert.deepEqual(rest, { code })
      assert.match(detail, /^[A-Z].*\.$/)
    })
  }

  test('garbage after a request in progress is not taken for its response', async () => {
    const { dial, letGo } = await listen()
    const { socket, text } = await dial()
    socket.write(get('/slow/1'))
    await until(() => letGo.length === 1)
    socket.write('nonsense\r\n\r\n')
    assert.equal(await text.ended, '')
  })

  test('a head that stops is refused, and a connection that has sent nothing ends without a response', async () => {
    const { dial, http } = await listen()
    // As Node does it when its time is over.
    const timeOut = (accepted: Socket) =>
      http.server.emit(
        'clientError',
        Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
        accepted,
      )
    const halfway = await dial()
    halfway.socket.write('GET /open HT')
    await until(() => halfway.accepted.bytesRead > 0)
    timeOut(halfway.accepted)
    assert.match(await halfway.text.ended, /^HTTP\/1\.1 408 .*"code":"request_timeout"/s)
    const silent = await dial()
    timeOut(silent.accepted)
    assert.equal(await silent.text.ended, '')
    // A request that had arrived, and that a busy event loop had not read.
    const unread = await dial()
    unread.socket.write('GET /open HTTP/1.1\r\nhost: a\r\n\r\n')
    assert.equal(unread.accepted.bytesRead, 0)
    timeOut(unread.accepted)
    await until(() => count(unread.text.now(), /200 OK.*open$/gs) === 1)
  })

  test('a body that can’t be parsed is the fault of its request, which is refused', async () => {
    const { begun, dial } = await listen()
    const { socket, text } = await dial()
    const chunked = `${head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`
    socket.write(`POST /quick/1 HTTP/1.1\r\n${chunked}`)
    assert.match(await text.ended, /^HTTP\/1\.1 400 .*"code":"bad_request"/s)
    assert.deepEqual(begun, [])
  })

  test('a client that expects 100 Continue receives it at its turn', async () => {
    const { dial, letGo } = await listen()
    const { socket, text } = await dial()
    const expecting = post('/quick/2').replace('\r\n\r\n', '\r\nexpect: 100-continue\r\n\r\n')
    socket.write(get('/slow/1') + expecting)
    await until(() => letGo.length === 1)
    assert.equal(text.now(), '')
    letGo[0]?.()
    await until(() => count(text.now(), /200 OK/g) === 2)
    assert.match(text.now(), /^HTTP\/1\.1 200.*HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200/s)
  })
})
