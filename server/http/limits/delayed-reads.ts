// Delays the first read of new connections from addresses whose connections pipelined more requests than may
// wait. One read brings up to 64 kB, which is parsed at once: some hundred requests and several milliseconds
// of the event loop. A limit of a connection ends only that connection, and a client that connects again and
// again would occupy the loop with first reads. Nobody is refused here: such connections are read one after
// the other, the next one always of the address that was read least, so other clients of the same network
// still get through.

import type { Socket } from 'node:net'
import process from 'node:process'
import type { Clock } from '../../core/clock.ts'
import { FairQueue } from '../../core/turns/fair-queue.ts'
import { RateLimit } from './rate-limit.ts'

/**
 * Connections of an address that may pipeline too much at once, and then one in five seconds; above it, its
 * new connections are delayed.
 */
const overruns = { burst: 20, perSecond: 0.2, keysMax: 20_000 }

/**
 * Time between two first reads of delayed connections, milliseconds. At most some 5 ms of parsing in each
 * interval, whatever the number of addresses and connections.
 */
const intervalMs = 50

export class DelayedReads {
  readonly #clock: Clock
  readonly #overruns: RateLimit
  readonly #queue = new FairQueue<Socket>()
  #isReading = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.#overruns = new RateLimit({ ...overruns, clock })
  }

  /** Counts a connection of the address that pipelined more requests than may wait. */
  overran(address: string): void {
    this.#overruns.take(address)
  }

  /** Call it for each new connection before anything is read from it: pauses it where it has to wait. */
  admit(address: string, socket: Socket): void {
    if (!this.#overruns.isOver(address)) return
    // Node has scheduled the start of reading for the next tick, which would end a pause of now.
    process.nextTick(() => {
      socket.pause()
      this.#queue.push(address, 1, socket)
      if (!this.#isReading) void this.#read()
    })
  }

  async #read(): Promise<void> {
    this.#isReading = true
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      if (next.item.destroyed) continue
      next.item.resume()
      await this.#clock.sleep(intervalMs)
    }
    this.#queue.forget()
    this.#isReading = false
  }
}
