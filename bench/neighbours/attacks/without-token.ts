// Attacks without a token: they need only network access to the port.

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, type Attacker, requestHead } from '../attack.ts'

/** Writes a pipeline of requests again and again on connections that read their responses. */
function pipelines(attacker: Attacker, connections: number, pipeline: () => string): Promise<void> {
  return attacker.loops(connections, async () => {
    const socket = attacker.socket()
    attacker.countAnswers(socket)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    while (!attacker.isOver && !socket.destroyed) await attacker.write(socket, pipeline())
    socket.destroy()
    await closed
  })
}

const openApi = requestHead('GET', '/openapi.json', {})

/** A path near the maximum length that Node accepts in a request head. */
const longPath = `/${'a/'.repeat(5_000)}`

export const attacksWithoutToken: readonly Attack[] = [
  {
    name: 'openapi-pipelined',
    does: 'Ten sockets request /openapi.json 400 times in one write and close, again and again.',
    run: (attacker) =>
      attacker.loops(10, async () => {
        const socket = attacker.socket()
        await new Promise((resolve) => socket.write(openApi.repeat(400), resolve))
        await sleep(20)
        socket.destroy()
        attacker.count('rounds')
        await sleep(200)
      }),
  },
  {
    name: 'openapi-read',
    does: 'Thirty-two connections request /openapi.json and read it.',
    run: (attacker) => attacker.loops(32, () => attacker.call('GET', '/openapi.json')),
  },
  {
    name: 'metrics-and-docs-read',
    does: 'Thirty-two connections request /metrics, /docs/, the signing keys and the health page.',
    run: (attacker) =>
      attacker.loops(32, (loop) =>
        attacker.call('GET', ['/metrics', '/docs/', '/.well-known/jwks.json', '/readyz'][loop % 4] ?? '/'),
      ),
  },
  {
    name: 'long-paths',
    does: 'Sixteen connections pipeline 404 and 405 with paths of 10 kB.',
    run: (attacker) =>
      pipelines(attacker, 16, () =>
        `${requestHead('GET', longPath, {})}${requestHead('DELETE', '/telemetry/logs', {})}`.repeat(10),
      ),
  },
  {
    name: 'token-guessing',
    does: 'Sixty-four connections pipeline requests with made-up tokens.',
    run: (attacker) =>
      pipelines(attacker, 64, () =>
        Array.from({ length: 20 }, () =>
          requestHead('GET', '/me', { authorization: `Bearer ${randomBytes(24).toString('base64url')}` }),
        ).join(''),
      ),
  },
  {
    name: 'slow-headers',
    does: 'Six hundred connections send a byte of a header a second.',
    run: (attacker) =>
      attacker.keepOpen(600, () => {
        const socket = attacker.socket()
        attacker.countAnswers(socket)
        socket.write('GET /me HTTP/1.1\r\nhost: localhost\r\nx-slow: ')
        drip(socket)
        return socket
      }),
  },
  {
    name: 'idle-connections',
    does: 'Three thousand connections send nothing.',
    run: (attacker) => attacker.keepOpen(3000, () => attacker.socket()),
  },
  {
    name: 'connection-churn',
    does: 'Connections are opened and closed as fast as possible, 64 at a time.',
    run: (attacker) =>
      attacker.loops(64, async () => {
        const socket = attacker.socket()
        await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
        attacker.count('connections')
        socket.destroy()
        await sleep(1)
      }),
  },
]

/** Writes a byte a second while the socket is open. */
export function drip(socket: ReturnType<Attacker['socket']>): void {
  const timer = setInterval(() => socket.write('a'), 1000)
  socket.once('close', () => clearInterval(timer))
}
