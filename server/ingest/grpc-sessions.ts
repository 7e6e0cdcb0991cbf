// Bounds on HTTP/2 connections. Whoever may connect gets one without having said who it is, so those that
// have not are few and do not last; the others are shared fairly by organisations (core/fair-shares). Much of
// what can be sent on a connection asks for no answer worth counting: what Node and nghttp2 don't bound of
// that is bound here. docs/decisions/0033 has what each of them bounds, and the measurements.

import { constants, type Http2Session } from 'node:http2'
import type { Clock } from '../core/clock.ts'
import { FairShares, type Share } from '../core/fair-shares.ts'

/**
 * Connections of callers that are known, in all. Each has some 15 to 40 kB while it is idle; a fleet beyond
 * this sends through Collectors.
 */
const knownMax = 2_048

/**
 * Connections on which nobody has said yet who it is. Whoever sends says it in its first
 * call, within milliseconds.
 */
const unknownMax = 512

/**
 * How long a connection may stay without a call of somebody known: the interval in which SDKs export metrics.
 */
const unknownMs = 60_000

/** How long a known one may be without a call; exporters connect again by themselves. */
const idleMs = 300_000

/**
 * PING and SETTINGS frames between two calls that were answered. A client that measures its bandwidth sends a
 * PING for each answer at most, and one that keeps its connection alive two a minute.
 */
const controlFramesMax = 1_000

/**
 * Calls refused for want of a token or a method, between two that were not. Wrong tokens
 * are throttled long before.
 */
const strikesMax = 1_000

/** How often is looked for connections that are over their time, milliseconds. */
const lookMs = 5_000

interface Connection {
  readonly session: Http2Session
  readonly address: string
  /** Null while nobody has said who it is. */
  holder: { readonly tenantId: string; readonly share: Share } | null
  lastCallMs: number
  calls: number
  controlFrames: number
  strikes: number
}

export class GrpcSessions {
  readonly #clock: Clock
  readonly #shares: FairShares
  readonly #unknownMax: number
  /** Oldest first. */
  readonly #connections = new Map<Http2Session, Connection>()
  readonly #unknown = new Set<Connection>()
  readonly #closing = new AbortController()
  #loop: Promise<void> | null = null

  constructor(clock: Clock, limits: { readonly known?: number; readonly unknown?: number } = {}) {
    this.#clock = clock
    this.#shares = new FairShares(limits.known ?? knownMax)
    this.#unknownMax = limits.unknown ?? unknownMax
  }

  /**
   * A new connection. Where there are too many unknown ones, the oldest of the address with the most ends.
   */
  add(session: Http2Session, address: string): void {
    const connection: Connection = {
      session,
      address,
      holder: null,
      lastCallMs: this.#clock.nowMs(),
      calls: 0,
      controlFrames: 0,
      strikes: 0,
    }
    this.#connections.set(session, connection)
    this.#unknown.add(connection)
    session.on('close', () => this.#remove(connection))
    session.on('ping', () => this.#countControl(connection))
    session.on('remoteSettings', () => this.#countControl(connection))
    if (this.#unknown.size > this.#unknownMax) end(this.#oldestUnknown())
    this.#loop ??= this.#look()
  }

  /**
   * Who takes the turns of a connection on the event loop: the organisation, or the
   * address of one that is unknown.
   */
  holderOf(session: Http2Session | undefined): string {
    const connection = this.#of(session)
    return connection?.holder?.tenantId ?? `address ${connection?.address}`
  }

  /** A call begins; to be answered by {@link callEnds}. */
  callBegins(session: Http2Session | undefined): void {
    const connection = this.#of(session)
    if (connection !== undefined) connection.calls++
  }

  callEnds(session: Http2Session | undefined): void {
    const connection = this.#of(session)
    if (connection === undefined) return
    connection.calls--
    if (connection.holder !== null) connection.lastCallMs = this.#clock.nowMs()
  }

  /**
   * The caller of a call is known. The connection ends where its organisation has the
   * most of all and no more fit.
   */
  isKnown(session: Http2Session | undefined, tenantId: string): void {
    const connection = this.#of(session)
    if (connection === undefined) return
    connection.controlFrames = 0
    connection.strikes = 0
    if (connection.holder?.tenantId === tenantId) return
    connection.holder?.share.release()
    this.#unknown.delete(connection)
    const share = this.#shares.open(tenantId, () => end(connection))
    connection.holder = { tenantId, share }
    if (!share.grow(1)) end(connection)
  }

  /** A call was refused that nobody known made, or to a method that doesn't exist. */
  strike(session: Http2Session | undefined): void {
    const connection = this.#of(session)
    if (connection !== undefined && ++connection.strikes > strikesMax) end(connection)
  }

  /** Lets calls under way end and takes no more of them. */
  async close(graceMs: number): Promise<void> {
    const ended = [...this.#connections.keys()].map(
      (session) => new Promise<void>((resolve) => session.once('close', resolve)),
    )
    for (const session of this.#connections.keys()) session.close()
    const done = new AbortController()
    await Promise.race([Promise.all(ended), this.#clock.sleep(graceMs, done.signal)])
    done.abort()
    for (const session of [...this.#connections.keys()]) session.destroy()
    this.#closing.abort()
    await this.#loop
  }

  #of(session: Http2Session | undefined): Connection | undefined {
    return session === undefined ? undefined : this.#connections.get(session)
  }

  #remove(connection: Connection): void {
    this.#connections.delete(connection.session)
    this.#unknown.delete(connection)
    connection.holder?.share.release()
  }

  #countControl(connection: Connection): void {
    if (++connection.controlFrames > controlFramesMax) end(connection)
  }

  /** Of the address that has the most of them, which need not be the one that connects. */
  #oldestUnknown(): Connection | undefined {
    const counts = new Map<string, number>()
    for (const { address } of this.#unknown) counts.set(address, (counts.get(address) ?? 0) + 1)
    const most = Math.max(...counts.values())
    return this.#unknown.values().find(({ address }) => counts.get(address) === most)
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing
    while (this.#connections.size > 0 && !signal.aborted) {
      await this.#clock.sleep(lookMs, signal)
      const nowMs = this.#clock.nowMs()
      for (const connection of [...this.#connections.values()]) this.#lookAt(connection, nowMs)
    }
    this.#loop = null
  }

  #lookAt(connection: Connection, nowMs: number): void {
    // A clock that stepped back must not keep anybody for longer.
    connection.lastCallMs = Math.min(connection.lastCallMs, nowMs)
    const restMs = nowMs - connection.lastCallMs
    if (connection.holder === null && restMs >= unknownMs) end(connection)
    else if (connection.calls === 0 && restMs >= idleMs) connection.session.close()
  }
}

/** At once: whoever has to be ended may not be reading. */
function end(connection: Connection | undefined): void {
  connection?.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
}
