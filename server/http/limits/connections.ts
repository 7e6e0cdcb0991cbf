// Limits the connections of a listener: how many there may be, in all and from one address, and how many
// requests one may have in progress. A connection is served one request at a time, in the order of HTTP/1.1;
// callers take turns on the event loop (core/turns/loop-turns.ts); and a request whose connection has ended
// is dropped before it begins. So neither pipelining nor many connections make others wait. Where there are
// too many connections one is closed for the next: first one without a valid token, then one of the
// organisation that has the most, so that an attacker's idle connections and unfinished requests don't keep a
// sender out.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { loopOwner } from '../../core/turns/loop-owner.ts'
import type { LoopTurns } from '../../core/turns/loop-turns.ts'
import type { ClientAddresses } from './client-address.ts'
import { closeWithoutStacks } from './close-without-stacks.ts'
import { DelayedReads } from './delayed-reads.ts'
import { refuse } from './raw-refusal.ts'

export interface ConnectionLimits {
  /** Connections of the listener. */
  readonly total: number
  /** Connections from one address; those from a trusted proxy count for {@link total} only. */
  readonly perAddress: number
}

/** Requests that may wait behind the one that is served. Clients that pipeline at all send fewer. */
const waitingMax = 32

/**
 * Requests above {@link waitingMax} that one read may still bring. Node keeps some 2 kB for each until the
 * connection ends, so more of them end it at once, without a response.
 */
const excessMax = 128

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly begin: () => void
}

interface Connection {
  readonly socket: Socket
  /** Null for a proxy's, which has many clients. */
  readonly address: string | null
  /** The organisation of the last valid token on the connection; null where there was none. */
  tenantId: string | null
  current: Exchange | null
  readonly waiting: Exchange[]
  /** Requests that came when no more could wait. The first is refused, and the others are ignored. */
  excess: number
}

export class Connections {
  readonly #limits: ConnectionLimits
  readonly #addresses: ClientAddresses
  readonly #turns: LoopTurns
  readonly #delayed: DelayedReads
  /** The least recently used one first. */
  readonly #open = new Map<Socket, Connection>()
  readonly #byAddress = new Map<string, Set<Connection>>()
  /**
   * Since the start: connections that were refused, or closed for others, and requests that were dropped with
   * theirs.
   */
  readonly totals = { refused: 0, evicted: 0, dropped: 0 }

  constructor(limits: ConnectionLimits, addresses: ClientAddresses, turns: LoopTurns, clock: Clock) {
    this.#limits = limits
    this.#addresses = addresses
    this.#turns = turns
    this.#delayed = new DelayedReads(clock)
  }

  get size(): number {
    return this.#open.size
  }

  /** Counts the connections of this server from now on. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#take(socket))
  }

  /** Notes a valid token of this organisation on the connection. */
  trust(socket: Socket, tenantId: string): void {
    const connection = this.#open.get(socket)
    if (connection !== undefined) connection.tenantId = tenantId
  }

  /**
   * Counts a request that ends without a response because its client has disconnected. Returns its argument.
   */
  drop<T>(request: T): T {
    this.totals.dropped += 1
    return request
  }

  /** Begins the work of a request at its turn, or never where the connection ends before. */
  inTurn(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    const connection = this.#open.get(request.socket)
    if (connection === undefined || isGone(request.socket)) {
      this.drop(request)
      return
    }
    const exchange = { request, response, begin }
    if (connection.excess > 0 || connection.waiting.length >= waitingMax) {
      this.#exceed(connection, response)
    } else if (connection.current === null && connection.waiting.length === 0) {
      this.#begin(connection, exchange)
    } else {
      connection.waiting.push(exchange)
    }
  }

  /** Stops reading the connection, and answers the waiting requests and one refusal. */
  #exceed(connection: Connection, response: ServerResponse): void {
    connection.excess += 1
    if (connection.excess === 1) {
      if (connection.address !== null) this.#delayed.overran(connection.address)
      connection.socket.pause()
      refuse(response, 'too_many_requests', { 'retry-after': '1' })
      return
    }
    this.totals.dropped += 1
    if (connection.excess > excessMax) connection.socket.destroy()
  }

  /**
   * Whether a response may be written to the connection besides those of its requests: no request is in
   * progress, or the one that is still arriving has no response yet. Otherwise the client would take it for
   * the response to another request.
   */
  canAnswer(socket: Socket): boolean {
    const { current, waiting } = this.#open.get(socket) ?? { current: null, waiting: [] }
    if (waiting.length > 0) return false
    return current === null || (!current.request.complete && !current.response.headersSent)
  }

  #begin(connection: Connection, exchange: Exchange): void {
    connection.current = exchange
    this.#use(connection)
    exchange.response.once('close', () => {
      connection.current = null
      // Between two requests of one connection others are served, and its end is noticed.
      if (connection.waiting.length > 0) setImmediate(() => this.#next(connection))
    })
    this.#turns.take(loopOwner(connection.tenantId, connection.address), () => {
      if (!isGone(connection.socket)) return exchange.begin()
      this.drop(exchange)
      return false
    })
  }

  /** Moves it to the end of the order of use. */
  #use(connection: Connection): void {
    this.#open.delete(connection.socket)
    this.#open.set(connection.socket, connection)
    const neighbours = connection.address === null ? undefined : this.#byAddress.get(connection.address)
    if (neighbours?.delete(connection) === true) neighbours.add(connection)
  }

  #next(connection: Connection): void {
    if (isGone(connection.socket)) this.#drop(connection)
    const next = connection.waiting.shift()
    if (next !== undefined) this.#begin(connection, next)
  }

  #drop(connection: Connection): void {
    this.totals.dropped += connection.waiting.length
    connection.waiting.length = 0
  }

  #take(socket: Socket): void {
    closeWithoutStacks(socket)
    const peer = socket.remoteAddress
    const address = this.#addresses.isProxy(peer) ? null : this.#addresses.keyOf(peer, undefined)
    const neighbours = address === null ? undefined : this.#byAddress.get(address)
    const hasRoom =
      this.#makeRoom(neighbours ?? new Set(), this.#limits.perAddress) &&
      this.#makeRoom(this.#open.values(), this.#limits.total, this.#open.size)
    if (!hasRoom) {
      this.totals.refused += 1
      socket.destroy()
      return
    }
    const connection = { socket, address, tenantId: null, current: null, waiting: [], excess: 0 }
    this.#open.set(socket, connection)
    if (address !== null) {
      this.#byAddress.set(address, (neighbours ?? new Set()).add(connection))
      this.#delayed.admit(address, socket)
    }
    socket.once('close', () => this.#forget(connection))
  }

  #forget(connection: Connection): void {
    this.#drop(connection)
    this.#open.delete(connection.socket)
    if (connection.address === null) return
    const neighbours = this.#byAddress.get(connection.address)
    neighbours?.delete(connection)
    if (neighbours?.size === 0) this.#byAddress.delete(connection.address)
  }

  /** Whether one more fits below `max`, after closing one of them where that helps. */
  #makeRoom(
    among: Iterable<Connection> & { readonly size?: number },
    max: number,
    size = among.size ?? 0,
  ): boolean {
    if (size < max) return true
    const least = leastWorth(among)
    if (least === null) return false
    this.totals.evicted += 1
    this.#forget(least)
    least.socket.destroy()
    return true
  }
}

/**
 * Returns the connection that may be closed with the least loss. Without a valid token: the first idle one,
 * or else the first. With one: of the organisation that has the most, the first idle one, or else the first
 * whose request is still arriving. Null where all work for callers. The least recently used one is the first.
 */
function leastWorth(among: Iterable<Connection>): Connection | null {
  const byTenant = new Map<string, Connection[]>()
  let stranger: Connection | null = null
  for (const connection of among) {
    const { current, tenantId } = connection
    if (tenantId !== null) {
      const others = byTenant.get(tenantId)
      if (others === undefined) byTenant.set(tenantId, [connection])
      else others.push(connection)
      continue
    }
    if (current === null) return connection
    stranger ??= connection
  }
  if (stranger !== null) return stranger
  const shares = [...byTenant.values()].sort((a, b) => b.length - a.length)
  for (const share of shares) {
    const least = share.find(({ current }) => current === null) ?? share.find(isArriving)
    if (least !== undefined) return least
  }
  return null
}

function isArriving({ current }: Connection): boolean {
  return current !== null && !current.request.complete
}

/** Whether the connection can't receive a response any more. A test's stand-in for a socket never ends. */
export function isGone(socket: Pick<Socket, 'destroyed' | 'writableEnded'>): boolean {
  return socket.destroyed === true || socket.writableEnded === true
}
