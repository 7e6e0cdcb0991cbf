// Writes the history down, line by line, and hands it to the checker at the same time. Also counts
// answers of 500 and above: each is a fault unless the service's documents say that it may come while the
// named disturbance lasts.

import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { Checker } from './checker.ts'
import type { Event, Operation, Outcome, Value, Violation } from './history.ts'

/**
 * A disturbance by the harness, by name. `start` is the time from the launch of a process until it is ready.
 */
type Disturbance = 'start' | 'pause' | 'disk' | 'backup' | 'clock'

/** After a disturbance has ended, its refusals may still be on their way. */
const afterMs = 15_000

/** Codes of 503 and 507 that are documented, and the disturbances under which; null is always. */
const documented: Readonly<Record<string, readonly Disturbance[] | null>> = {
  not_ready: ['start'],
  starting: ['start'],
  erasing: null,
  overloaded: ['pause', 'disk', 'backup', 'start'],
  storage_full: ['disk'],
  storage_unavailable: ['disk'],
}

export class Recorder {
  readonly checker: Checker
  readonly counts: Record<string, number> = {}
  readonly violations: (Violation & { readonly ms: number })[] = []
  readonly #file: WriteStream
  readonly #beganMs = performance.now()
  readonly #say: (line: string) => void
  #next = 0
  readonly #lasting = new Map<Disturbance, number>()
  readonly #endedMs = new Map<Disturbance, number>()

  constructor(path: string, say: (line: string) => void) {
    this.#file = createWriteStream(path, { flags: 'w' })
    this.#say = say
    this.checker = new Checker((violation) => this.violate(violation.kind, violation.about))
  }

  get ms(): number {
    return Math.round(performance.now() - this.#beganMs)
  }

  count(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by
  }

  /** Something that only people read. */
  note(text: string): void {
    this.#write({ note: text })
    this.#say(`${(this.ms / 1000).toFixed(1).padStart(7)} ${text}`)
  }

  invoke(op: Operation): number {
    const id = this.#next++
    this.#write({ id, ...op })
    this.checker.invoke(id, op)
    return id
  }

  complete(id: number, outcome: Outcome, value: Value = {}): void {
    this.#write({ id, outcome, ...value })
    this.checker.complete(id, outcome, value)
  }

  /** Records an operation around what carries it out; whatever it throws is an unknown outcome. */
  async run(
    op: Operation,
    act: () => Promise<readonly [Outcome, Value]>,
  ): Promise<readonly [Outcome, Value]> {
    const id = this.invoke(op)
    let done: readonly [Outcome, Value]
    try {
      done = await act()
    } catch (error) {
      const cause = error instanceof Error ? (error.cause ?? error) : error
      // Nobody was there who could have done it.
      const isRefused = cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
      done = [isRefused ? 'fail' : 'unknown', { note: String(cause) }]
    }
    this.complete(id, ...done)
    return done
  }

  event(event: Event): void {
    this.#write(event)
    this.checker.event(event)
  }

  violate(kind: string, about: string): void {
    const violation = { ms: this.ms, kind, about }
    this.violations.push(violation)
    this.#write({ violation })
    this.#say(`${(this.ms / 1000).toFixed(1).padStart(7)} VIOLATION ${kind}: ${about}`)
  }

  begin(disturbance: Disturbance): void {
    this.#lasting.set(disturbance, (this.#lasting.get(disturbance) ?? 0) + 1)
  }

  end(disturbance: Disturbance): void {
    this.#lasting.set(disturbance, (this.#lasting.get(disturbance) ?? 1) - 1)
    this.#endedMs.set(disturbance, this.ms)
  }

  /** Whether it is going on at this moment. */
  isDuring(disturbance: Disturbance): boolean {
    return (this.#lasting.get(disturbance) ?? 0) > 0
  }

  /** Whether it is going on, or its refusals may still come. */
  isUnder(disturbance: Disturbance): boolean {
    if (this.isDuring(disturbance)) return true
    const endedMs = this.#endedMs.get(disturbance)
    return endedMs !== undefined && this.ms - endedMs < afterMs
  }

  /** Judges an answer by its status; `body` is what it said. */
  answered(door: string, status: number, body: string): void {
    if (status < 500) return
    this.count(`answers ${status}`)
    const code = /"(?:code|status)":\s*"([a-z_]+)"/.exec(body)?.[1] ?? ''
    const under = status === 503 || status === 507 ? documented[code] : []
    if (under === null || under?.some((disturbance) => this.isUnder(disturbance))) return
    // The body of an OTLP refusal has no code of ours.
    if (under === undefined && (status === 503 || status === 507) && door.startsWith('POST /v1/')) return
    this.count('faults')
    this.violate(`answer ${status}`, `${door}: ${body.slice(0, 300)}`)
  }

  async close(): Promise<void> {
    this.#file.end()
    await once(this.#file, 'close')
  }

  #write(line: object): void {
    this.#file.write(`${JSON.stringify({ ms: this.ms, ...line })}\n`)
  }
}
