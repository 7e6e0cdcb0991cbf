// Lets the event loop breathe between bodies, and gives organisations their turns. What many senders send at once would
// be decoded in one breath, tens of milliseconds and more, and every commit, query and acknowledgement has steps that
// wait for the loop to come round. So no more than so many bytes are decoded in one turn of it. Each organisation has a
// queue of its own, and next is the one that has been given the least: start-time fair queueing (Goyal, Vin and Cheng,
// "Start-time Fair Queuing", SIGCOMM 1996), by bytes and with equal weights. So however much one sends, another one's
// body waits for at most one body of each of the others.

/** Bytes of bodies that are decoded in one turn, some three milliseconds of work; the last may go beyond. */
const turnBytes = 256 * 1024

interface Waiting {
  readonly bytes: number
  readonly resolve: () => void
}

/** What waits for one organisation. */
interface Queue {
  readonly waiting: Waiting[]
  /** Virtual time at which its first one starts: what each of those who always waited has been given until then, bytes. */
  start: number
}

export class Turns {
  /** Of organisations that wait, and of those that were given more than the virtual time says. */
  readonly #queues = new Map<string, Queue>()
  #waiting = 0
  #virtualBytes = 0
  #leftBytes = turnBytes
  #isScheduled = false

  /** Resolves when a body of so many bytes may be decoded, which is to be done at once. */
  async take(tenantId: string, bytes: number): Promise<void> {
    const mayGo = this.#waiting === 0 && this.#leftBytes > 0
    this.#schedule()
    if (mayGo) {
      this.#leftBytes -= bytes
      this.#charge(tenantId, bytes)
      return
    }
    this.#waiting++
    const queue = this.#queueOf(tenantId)
    await new Promise<void>((resolve) => queue.waiting.push({ bytes, resolve }))
  }

  #queueOf(tenantId: string): Queue {
    const known = this.#queues.get(tenantId)
    const queue = known ?? { waiting: [], start: this.#virtualBytes }
    // Nobody saves turns for later by not taking any.
    if (queue.waiting.length === 0) queue.start = Math.max(queue.start, this.#virtualBytes)
    if (known === undefined) this.#queues.set(tenantId, queue)
    return queue
  }

  #charge(tenantId: string, bytes: number): void {
    const queue = this.#queueOf(tenantId)
    this.#virtualBytes = queue.start
    queue.start += bytes
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#begin())
  }

  /** A new turn of the loop. */
  #begin(): void {
    this.#isScheduled = false
    this.#leftBytes = turnBytes
    while (this.#leftBytes > 0 && this.#waiting > 0) this.#letNext()
    if (this.#waiting > 0) this.#schedule()
    else this.#forget()
  }

  #letNext(): void {
    let next: Queue | undefined
    for (const queue of this.#queues.values()) {
      if (queue.waiting.length > 0 && queue.start < (next?.start ?? Number.POSITIVE_INFINITY)) next = queue
    }
    const first = next?.waiting.shift()
    if (next === undefined || first === undefined) return
    this.#waiting--
    this.#leftBytes -= first.bytes
    this.#virtualBytes = next.start
    next.start += first.bytes
    first.resolve()
  }

  /** Nobody waits, so nobody has to be held against anybody else any more. */
  #forget(): void {
    this.#queues.clear()
    this.#virtualBytes = 0
  }
}
