// The type of an attack, and the attacker that runs it: HTTP with the tokens of another organisation, raw
// sockets for what no client library sends, and counts of the responses. The attacker has its own address on
// the loopback interface, so that a limit per address distinguishes it from the honest organisation.

import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Role } from '../../contract/role.ts'
import { type Answer, ask, codeOf } from '../http-client.ts'

export interface Attack {
  /** Unique among all attacks; letters and hyphens. */
  readonly name: string
  /** One sentence for the report. */
  readonly does: string
  /** Sends what the attack needs, before its effect is measured. */
  readonly prepare?: (attacker: Attacker) => Promise<void>
  /** Runs until {@link Attacker.isOver}; what it leaves open ends with the process. */
  readonly run: (attacker: Attacker) => Promise<void>
}

export interface Organisation {
  readonly tenantId: string
  readonly secrets: Readonly<Record<Role, string>>
}

/** Where the service is, and with which tokens to attack. */
export interface AttackerOrders extends Organisation {
  readonly host: string
  readonly port: number
  readonly grpcPort: number
  /** Organisations that attack together with this one; each has the same history. */
  readonly accomplices: readonly Organisation[]
  readonly seconds: number
}

/** Linux accepts connections on all of 127.0.0.0/8. */
export const attackerAddress = '127.0.0.2'

/** Timeout of a request without a response. */
const patienceMs = 30_000

/** Pause after a failed connection, so that the attacker doesn't spin while the service is down. */
const pauseMs = 20

interface Call {
  /** Whose token is used; the attacker's where absent. */
  readonly as?: Organisation
  readonly role?: Role
  readonly json?: unknown
  readonly body?: Buffer
  readonly headers?: Readonly<Record<string, string>>
}

export class Attacker {
  readonly orders: AttackerOrders
  /** Number of responses by status, and of failures by system error code. */
  readonly tally = new Map<string, number>()
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4096 })
  #endsMs = Number.POSITIVE_INFINITY

  constructor(orders: AttackerOrders) {
    this.orders = orders
  }

  /** Starts the time of the attack. */
  begin(): void {
    this.#endsMs = performance.now() + this.orders.seconds * 1000
  }

  /** The attacker and its accomplices. */
  get everyone(): readonly Organisation[] {
    return [this.orders, ...this.orders.accomplices]
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsMs
  }

  count(what: string, times = 1): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + times)
  }

  /** Runs `count` loops of `work` in parallel until the time is over. */
  async loops(count: number, work: (loop: number) => Promise<unknown>): Promise<void> {
    const loop = async (at: number) => {
      while (!this.isOver) await work(at)
    }
    await Promise.all(Array.from({ length: count }, (_, at) => loop(at)))
  }

  /** Waits until the time is over. */
  async wait(everyMs = 100, work: () => void = () => {}): Promise<void> {
    while (!this.isOver) {
      await sleep(everyMs)
      work()
    }
  }

  /** Sends a request and reads its response completely. Never rejects: failures are counted in the tally. */
  async call(
    method: string,
    path: string,
    { as = this.orders, role, json, body, headers }: Call = {},
  ): Promise<Answer> {
    const { host, port } = this.orders
    const sent = json === undefined ? body : Buffer.from(JSON.stringify(json))
    const all = {
      ...(role !== undefined && { authorization: `Bearer ${as.secrets[role]}` }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...(sent !== undefined && { 'content-length': sent.length }),
      ...headers,
    }
    const from = { host, port, localAddress: attackerAddress, agent: this.#agent, timeout: patienceMs }
    const answer = await ask({ ...from, method, path, headers: all }, sent)
    this.count(answer.status === 0 ? answer.text : String(answer.status))
    if (answer.status === 0) await sleep(pauseMs)
    return answer
  }

  /**
   * Opens a plain connection to the HTTP port, or another; its failures and the statuses that it reads are
   * counted.
   */
  socket(port = this.orders.port): Socket {
    const socket = connect({ host: this.orders.host, port, localAddress: attackerAddress })
    socket.on('error', (error) => this.count(codeOf(error)))
    return socket
  }

  /** Writes to a socket; resolves when it accepts more, or has closed. */
  write(socket: Socket, chunk: Buffer | string): Promise<void> {
    if (socket.destroyed || socket.write(chunk)) return sleep(1)
    return new Promise((resolve) => {
      const go = () => {
        socket.off('drain', go).off('close', go)
        resolve()
      }
      socket.on('drain', go).on('close', go)
    })
  }

  /** Reads all HTTP responses on a socket and counts their statuses. */
  countAnswers(socket: Socket): void {
    socket.on('data', (chunk: Buffer) => {
      for (const [, status] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g))
        this.count(String(status))
    })
  }

  /**
   * Keeps `count` connections open; a closed one is opened again a moment later. Returns when the time is
   * over.
   */
  async keepOpen(count: number, open: () => Socket): Promise<void> {
    const sockets = new Set<Socket>()
    const add = () => {
      const socket = open()
      sockets.add(socket)
      socket.on('close', () => {
        sockets.delete(socket)
        this.count('closed')
      })
    }
    // A few at a time: a thousand at once overflow the queue of connections that are not yet accepted.
    await this.wait(pauseMs, () => {
      for (let opened = 0; opened < 100 && sockets.size < count; opened++) add()
    })
    for (const socket of sockets) socket.destroy()
  }
}

/** The head of an HTTP request as text, with an empty line after it. */
export function requestHead(
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>>,
): string {
  const lines = Object.entries({ host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** Makes an expensive value at the first call, which an attack's `prepare` does, and keeps it. */
export function madeOnce<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
