// Limits HTTP/2 connections. Any client can open one before it has authenticated, so unknown connections are
// few and short-lived; known ones are shared fairly by organisations (core/fair-shares). Many frames need no
// response that could be counted; those that Node and nghttp2 do not limit are limited here. Limits of a
// connection alone would only make an attacker connect again, so an address whose connections pass them again
// and again has to wait before its next one. A trusted proxy sends the calls of many clients over one
// connection. No client may end that connection for the others, so calls behind a proxy are limited by the
// address of their client.
// docs/decisions/0033 has what each limit prevents, and the measurements.

import { constants, type Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock } from '../core/clock.ts'
import { FairShares, type Share } from '../core/turns/fair-shares.ts'
import { loopOwner } from '../core/turns/loop-owner.ts'
import { RateLimit } from '../http/limits/rate-limit.ts'

/**
 * The most connections of known callers. Each takes some 15 to 40 kB while it is idle; larger fleets send
 * through Collectors.
 */
const knownMax = 2_048

/**
 * The most connections whose caller is not known yet. A sender is known from its first call, within
 * milliseconds.
 */
const unknownMax = 512

/**
 * How long a connection may stay without a call of a known caller: the interval in which SDKs export metrics.
 */
const unknownMs = 60_000

/** How long a known connection may be without a call; exporters reconnect by themselves. */
const idleMs = 300_000

/**
 * PING and SETTINGS frames between two answered calls. A client that measures its bandwidth sends at most one
 * PING for each response, and one that keeps its connection alive two a minute.
 */
const controlFramesMax = 1_000

/**
 * Calls that are refused because of a missing token or method, between two accepted ones. Wrong tokens are
 * throttled long before. Those behind a proxy are refused late instead (http/client-limits.ts).
 */
const strikesMax = 1_000

/**
 * Calls that a client may reset at once (CVE-2023-44487); nghttp2 ends the connection at the next one. All
 * calls of a connection may time out at once, twice in a row.
 */
export const resetsMax = 200

/** Further ones in a second. */
export const resetsPerSecond = 20

/** Addresses of clients behind proxies whose resets are remembered, some 100 bytes each. */
const resetKeysMax = 20_000

/** Where a connection comes from. */
export interface GrpcPeer {
  readonly address: string
  /** Whether it is a trusted proxy's, which sends the calls of many clients. */
  readonly isProxy: boolean
}

/**
 * Connections of an address that pass one of these limits: this many at once, and then one in five seconds.
 * Meanwhile every new connection of the address is closed. Each may have cost some 20 ms of the event loop.
 */
const abusive = { burst: 20, perSecond: 0.2, keysMax: 20_000 }

/** Interval of the checks for expired connections, milliseconds. */
const lookMs = 5_000

/**
 * How long the peer of an ended connection may take to read the reason. One that reads does so within its
 * round trip; one that doesn't would keep the socket, and what is queued for it, for as long as it likes.
 */
const endMs = 10_000

interface Connection {
  readonly session: Http2Session
  readonly address: string
  readonly isProxy: boolean
  /** Null while the caller is unknown. */
  owner: { readonly tenantId: string; readonly share: Share } | null
  lastCallMs: number
  calls: number
  controlFrames: number
  strikes: number
  resets: number
  /** When it was ended, although its peer may not have read that; null before. */
  endedMs: number | null
  /** Destroyed at once where its peer does not read, whatever is queued for it. */
  readonly socket: Socket
}

export class GrpcSessions {
  readonly #clock: Clock
  readonly #shares: FairShares
  readonly #unknownMax: number
  /** Oldest first. */
  readonly #connections = new Map<Http2Session, Connection>()
  readonly #unknown = new Set<Connection>()
  /** Connections that were ended and whose socket is still open, oldest first. */
  readonly #ending = new Set<Connection>()
  /** Also closed ones: their last calls may still wait for their turn. */
  readonly #all = new WeakMap<Http2Session, Connection>()
  readonly #abusive: RateLimit
  /** Of clients behind proxies. */
  readonly #resets: RateLimit
  readonly #closing = new AbortController()
  #loop: Promise<void> | null = null

  constructor(clock: Clock, limits: { readonly known?: number; readonly unknown?: number } = {}) {
    this.#clock = clock
    this.#shares = new FairShares(limits.known ?? knownMax)
    this.#unknownMax = limits.unknown ?? unknownMax
    this.#abusive = new RateLimit({ ...abusive, clock })
    this.#resets = new RateLimit({
      clock,
      burst: resetsMax,
      perSecond: resetsPerSecond,
      keysMax: resetKeysMax,
    })
  }

  /**
   * Adds a connection, or ends it where too many of its address passed a limit. Where there are too many
   * unknown ones, cuts those that were ended and are still open, and ends the oldest unknown one of the
   * address that has the most.
   *
   * @param socket of the session, which gives no access to it once it is destroyed
   */
  add(session: Http2Session, { address, isProxy }: GrpcPeer, socket: Socket): void {
    const connection: Connection = {
      session,
      address,
      isProxy,
      owner: null,
      lastCallMs: this.#clock.nowMs(),
      calls: 0,
      controlFrames: 0,
      strikes: 0,
      resets: 0,
      endedMs: null,
      socket,
    }
    session.on('close', () => this.#remove(connection))
    if (!isProxy && this.#abusive.isOver(address)) {
      this.#end(connection)
      this.#makePlace()
      return
    }
    this.#connections.set(session, connection)
    this.#all.set(session, connection)
    this.#unknown.add(connection)
    session.on('ping', () => this.#countControl(connection))
    session.on('remoteSettings', () => this.#countControl(connection))
    this.#makePlace()
  }

  /**
   * Returns the owner of a call's turn on the event loop: the organisation of the connection, or the address
   * of the client where the caller is unknown.
   */
  ownerOf(session: Http2Session | undefined, client: string): string {
    return loopOwner(this.#of(session)?.owner?.tenantId, client)
  }

  /** Whether a trusted proxy sends the calls of the connection, also where it has ended. */
  isProxied(session: Http2Session | undefined): boolean {
    return session !== undefined && this.#all.get(session)?.isProxy === true
  }

  /** A call begins; {@link callEnds} must follow. */
  callBegins(session: Http2Session | undefined): void {
    const connection = this.#of(session)
    if (connection !== undefined) connection.calls++
  }

  callEnds(session: Http2Session | undefined): void {
    const connection = this.#of(session)
    if (connection === undefined) return
    connection.calls--
    if (connection.owner !== null) connection.lastCallMs = this.#clock.nowMs()
  }

  /**
   * The caller of a call is known. Ends the connection where no more fit and its organisation has the most.
   */
  isKnown(session: Http2Session | undefined, tenantId: string): void {
    const connection = this.#of(session)
    if (connection === undefined || connection.endedMs !== null) return
    connection.controlFrames = 0
    connection.strikes = 0
    if (connection.owner?.tenantId === tenantId) return
    connection.owner?.share.release()
    this.#unknown.delete(connection)
    const share = this.#shares.open(tenantId, () => this.#end(connection))
    connection.owner = { tenantId, share }
    if (!share.grow(1)) this.#end(connection)
  }

  /**
   * Counts a call that was refused because its caller is unknown or its method doesn't exist; of a proxy's
   * connection none.
   */
  strike(session: Http2Session | undefined): void {
    const connection = this.#of(session)
    if (connection === undefined || connection.isProxy) return
    if (++connection.strikes > strikesMax) this.#endAbusive(connection)
  }

  /**
   * Counts a call on the connection of a client that reset it before its turn. A client whose calls time out
   * resets them seconds after it sent them, when they have had their turn long ago.
   */
  countReset(session: Http2Session | undefined): void {
    const connection = session === undefined ? undefined : this.#all.get(session)
    if (connection !== undefined && ++connection.resets === resetsMax) this.#abusive.take(connection.address)
  }

  /** Counts a call that a client behind a proxy reset, at any time. */
  countResetOf(client: string): void {
    this.#resets.take(client)
  }

  /** Whether a client behind a proxy has reset too many calls. */
  resetsTooMany(client: string): boolean {
    return this.#resets.isOver(client)
  }

  /** Lets running calls end and accepts no others. */
  async close(graceMs: number): Promise<void> {
    const ended = [...this.#connections.keys()].map(
      (session) => new Promise<void>((resolve) => session.once('close', resolve)),
    )
    for (const session of this.#connections.keys()) session.close()
    const done = new AbortController()
    await Promise.race([Promise.all(ended), this.#clock.sleep(graceMs, done.signal)])
    done.abort()
    for (const connection of [...this.#connections.values(), ...this.#ending]) {
      connection.session.destroy()
      connection.socket.destroy()
    }
    this.#closing.abort()
    await this.#loop
  }

  #of(session: Http2Session | undefined): Connection | undefined {
    return session === undefined ? undefined : this.#connections.get(session)
  }

  #remove(connection: Connection): void {
    this.#connections.delete(connection.session)
    this.#unknown.delete(connection)
    this.#ending.delete(connection)
    connection.owner?.share.release()
  }

  #countControl(connection: Connection): void {
    if (++connection.controlFrames > controlFramesMax) this.#endAbusive(connection)
  }

  #endAbusive(connection: Connection): void {
    if (!connection.isProxy) this.#abusive.take(connection.address)
    this.#end(connection)
  }

  /**
   * Destroys the session. Its socket closes when the peer has read what is queued for it; where it doesn't,
   * the socket is cut later.
   */
  #end(connection: Connection): void {
    if (connection.endedMs !== null) return
    connection.endedMs = this.#clock.nowMs()
    this.#unknown.delete(connection)
    this.#ending.add(connection)
    connection.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    this.#loop ??= this.#look()
  }

  /** Sockets of unknown and of ended connections share the places. */
  #makePlace(): void {
    this.#loop ??= this.#look()
    let over = this.#unknown.size + this.#ending.size - this.#unknownMax
    for (const connection of [...this.#ending].slice(0, Math.max(0, over))) {
      connection.socket.destroy()
      this.#ending.delete(connection)
      over--
    }
    const oldest = over > 0 ? this.#oldestUnknown() : undefined
    if (oldest !== undefined) this.#end(oldest)
  }

  /** Returns the oldest one of the address that has the most, which need not be the address that connects. */
  #oldestUnknown(): Connection | undefined {
    const counts = new Map<string, number>()
    for (const { address } of this.#unknown) counts.set(address, (counts.get(address) ?? 0) + 1)
    const most = Math.max(...counts.values())
    return this.#unknown.values().find(({ address }) => counts.get(address) === most)
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing
    while (this.#connections.size + this.#ending.size > 0 && !signal.aborted) {
      await this.#clock.sleep(lookMs, signal)
      const nowMs = this.#clock.nowMs()
      for (const connection of [...this.#connections.values(), ...this.#ending]) {
        this.#lookAt(connection, nowMs)
      }
    }
    this.#loop = null
  }

  #lookAt(connection: Connection, nowMs: number): void {
    // A clock that went back must not keep a connection longer.
    connection.lastCallMs = Math.min(connection.lastCallMs, nowMs)
    if (connection.endedMs !== null) {
      connection.endedMs = Math.min(connection.endedMs, nowMs)
      if (nowMs - connection.endedMs >= endMs) connection.socket.destroy()
      return
    }
    const restMs = nowMs - connection.lastCallMs
    if (connection.owner === null && restMs >= unknownMs) this.#end(connection)
    else if (connection.calls === 0 && restMs >= idleMs + endMs) this.#end(connection)
    else if (connection.calls === 0 && restMs >= idleMs) connection.session.close()
  }
}
