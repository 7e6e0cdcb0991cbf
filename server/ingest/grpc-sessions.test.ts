// Connections of real HTTP/2 clients, with a manual clock: how many each may have, and for how long.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, connect, createServer, type Http2Session } from 'node:http2'
import { connect as connectSocket, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ManualClock } from '../core/manual-clock.ts'
import { GrpcSessions, resetsMax } from './grpc-sessions.ts'

interface Pair {
  readonly client: ClientHttp2Session
  readonly server: Http2Session
  /** Of the server's side. */
  readonly socket: Socket
}

/** More than the system keeps for a peer that does not read. */
const muchBytes = 32 * 1024 * 1024

/** A server that answers every call with many bytes, and what its clients see. */
async function scene(
  test: TestContext,
  limits: { readonly known?: number; readonly unknown?: number } = {},
  proxies: readonly string[] = [],
) {
  const clock = new ManualClock(1_000_000)
  const sessions = new GrpcSessions(clock, limits)
  const server = createServer()
  const clients: ClientHttp2Session[] = []
  const waiting: ((session: Http2Session) => void)[] = []
  const sockets: Socket[] = []
  server.prependListener('connection', (socket: Socket) => sockets.push(socket))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    stream.end(Buffer.alloc(muchBytes))
  })
  server.on('session', (session) => {
    session.on('error', () => {})
    const socket = sockets.at(-1) ?? assert.fail()
    const address = socket.remoteAddress ?? ''
    sessions.add(session, { address, isProxy: proxies.includes(address) }, socket)
    waiting.shift()?.(session)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : assert.fail()
  test.after(async () => {
    for (const client of clients) client.destroy()
    server.close()
    await sessions.close(0)
  })
  return {
    clock,
    sessions,
    async open(localAddress = '127.0.0.1'): Promise<Pair> {
      const arrived = new Promise<Http2Session>((resolve) => waiting.push(resolve))
      const createConnection = () => connectSocket({ port, host: '127.0.0.1', localAddress })
      const client = connect(`http://127.0.0.1:${port}`, { createConnection })
      client.on('error', () => {})
      clients.push(client)
      return { client, server: await arrived, socket: sockets.at(-1) ?? assert.fail() }
    },
    /** Opens a connection whose client makes a call and reads nothing of the answer. */
    async openUnread(): Promise<Pair> {
      const arrived = new Promise<Http2Session>((resolve) => waiting.push(resolve))
      const [line, stopReading] = stoppable(port)
      const settings = { initialWindowSize: 2 * muchBytes }
      const client = connect(`http://127.0.0.1:${port}`, { createConnection: () => line, settings })
      client.on('error', () => {})
      clients.push(client)
      await once(client, 'remoteSettings')
      client.setLocalWindowSize(2 * muchBytes)
      stopReading()
      const [server, socket] = [await arrived, sockets.at(-1) ?? assert.fail()]
      const called = once(server, 'stream')
      client.request({ ':path': '/' }).on('error', () => {})
      await called
      await full(socket)
      return { client, server, socket }
    },
  }
}

/** A connection to the port, and a function after which its client reads no more. */
function stoppable(port: number): [Duplex, () => void] {
  const socket = connectSocket({ port, host: '127.0.0.1' })
  const line = new Duplex({
    read() {},
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk) => line.push(chunk)).on('close', () => line.destroy())
  socket.on('error', () => {})
  return [line, () => socket.pause()]
}

/** Resolves when the system accepts no more bytes for the peer: it would, in each of these turns. */
async function full(socket: Socket): Promise<void> {
  let [written, turns] = [0, 0]
  while (written === 0 || turns < 50) {
    await turn()
    turns = socket.bytesWritten === written ? turns + 1 : 0
    written = socket.bytesWritten
  }
}

const isOpen = ({ client, server }: Pair) => !server.destroyed && !server.closed && !client.destroyed

async function pass(clock: ManualClock, seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i += 5) {
    await clock.advance(5000)
    await turn()
  }
}

test('a connection of an unknown caller ends after a minute, and of a known one after five without a call', async (t) => {
  const { clock, sessions, open } = await scene(t)
  const [silent, idle, busy] = [await open(), await open(), await open()]
  for (const { server } of [idle, busy]) {
    sessions.callBegins(server)
    sessions.isKnown(server, 'acme')
  }
  sessions.callEnds(idle.server)
  await pass(clock, 55)
  assert.deepEqual([silent, idle, busy].map(isOpen), [true, true, true])
  await pass(clock, 10)
  assert.deepEqual([silent, idle, busy].map(isOpen), [false, true, true])
  await pass(clock, 240)
  assert.deepEqual([silent, idle, busy].map(isOpen), [false, false, true])
})

test('a flood from one address ends its own oldest connections, and never one from elsewhere', async (t) => {
  const { open } = await scene(t, { unknown: 5 })
  const calm = await open('127.0.0.1')
  const flood: Pair[] = []
  for (let i = 0; i < 8; i++) flood.push(await open('127.0.0.2'))
  const late = await open('127.0.0.3')
  assert.ok(isOpen(calm) && isOpen(late))
  assert.deepEqual(flood.map(isOpen), [false, false, false, false, false, true, true, true])
})

test('organisations share the connections: one with few gets another, and the one with the most loses one', async (t) => {
  const { sessions, open } = await scene(t, { known: 4 })
  const known = async (tenantId: string) => {
    const pair = await open()
    sessions.isKnown(pair.server, tenantId)
    return pair
  }
  const flood = [await known('flood'), await known('flood'), await known('flood'), await known('flood')]
  const beyond = await known('flood')
  assert.ok(!isOpen(beyond) && flood.every(isOpen))
  const calm = await known('calm')
  assert.ok(isOpen(calm))
  assert.deepEqual(flood.map(isOpen), [true, true, true, false])
})

test('calls that are refused because of a missing token end their connection, unless one of them has a token', async (t) => {
  const { sessions, open } = await scene(t)
  const [guessing, mixed] = [await open(), await open()]
  for (let i = 0; i < 1500; i++) {
    sessions.strike(guessing.server)
    sessions.strike(mixed.server)
    if (i % 500 === 0) sessions.isKnown(mixed.server, 'acme')
  }
  assert.deepEqual([guessing, mixed].map(isOpen), [false, true])
})

test('a connection of a proxy stays, however many calls of its clients are refused', async (t) => {
  const { sessions, open } = await scene(t, {}, ['127.0.0.2'])
  const [direct, proxied] = [await open('127.0.0.1'), await open('127.0.0.2')]
  for (let call = 0; call < 1500; call++) {
    sessions.strike(direct.server)
    sessions.strike(proxied.server)
  }
  assert.deepEqual([direct, proxied].map(isOpen), [false, true])
})

test('a proxy may connect again, however many of its connections have ended for their frames', async (t) => {
  const { sessions, open } = await scene(t, {}, ['127.0.0.2'])
  for (let connection = 0; connection < 21; connection++) {
    const { server } = await open('127.0.0.2')
    for (let sent = 0; sent <= 1000; sent++) server.emit('ping', Buffer.alloc(8))
    assert.ok(server.destroyed)
  }
  const next = await open('127.0.0.2')
  assert.ok(sessions.isProxied(next.server) && isOpen(next))
})

test('a client that sends a PING for each response keeps its connection, and one that only sends PINGs does not', async (t) => {
  const { sessions, open } = await scene(t)
  const [useful, useless] = [await open(), await open()]
  const ping = ({ client }: Pair) => new Promise<void>((resolve) => void client.ping(() => resolve()))
  for (let i = 0; i < 1100 && !useless.client.destroyed; i++) {
    await ping(useful)
    sessions.isKnown(useful.server, 'acme')
    await ping(useless)
  }
  assert.deepEqual([useful, useless].map(isOpen), [true, false])
})

test('an address whose connections are reset again and again waits before its next one, and another does not', async (test) => {
  const { clock, open, sessions } = await scene(test)
  const abuse = async () => {
    const pair = await open('127.0.0.2')
    for (let call = 0; call < resetsMax; call++) sessions.countReset(pair.server)
    return pair
  }
  const first: Pair[] = []
  for (let connection = 0; connection < 20; connection++) first.push(await abuse())
  assert.ok(first.every(isOpen), 'nghttp2 ends them')
  const refused = await open('127.0.0.2')
  await once(refused.client, 'close')
  assert.ok(isOpen(await open('127.0.0.1')))
  await pass(clock, 5)
  assert.ok(isOpen(await abuse()))
  const again = await open('127.0.0.2')
  await once(again.client, 'close')
})

test('an ended connection whose client does not read keeps its socket for a few seconds only', async (t) => {
  const { clock, openUnread, sessions } = await scene(t)
  const [abusive, known] = [await openUnread(), await openUnread()]
  sessions.isKnown(known.server, 'acme')
  for (let call = 0; call < 1001; call++) sessions.strike(abusive.server)
  assert.ok(abusive.server.destroyed && !known.server.destroyed)
  await pass(clock, 5)
  assert.ok(!abusive.socket.destroyed, 'its client may still read why')
  await pass(clock, 10)
  assert.deepEqual([abusive.socket.destroyed, known.socket.destroyed], [true, false])
  await pass(clock, 320)
  assert.ok(known.socket.destroyed, 'it was idle')
})

test('the socket of an ended connection whose client does not read is closed where its place is needed', async (t) => {
  const { open, openUnread } = await scene(t, { unknown: 2 })
  const unread = [await openUnread(), await openUnread(), await openUnread()]
  const closed = () => unread.map(({ socket }) => socket.destroyed)
  assert.deepEqual(closed(), [false, false, false])
  const calm = [await open('127.0.0.2'), await open('127.0.0.3')]
  assert.deepEqual(closed(), [true, true, false])
  assert.ok(calm.every(isOpen))
})
