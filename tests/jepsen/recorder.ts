// Writes the history to a file, line by line, and passes it to the checker. Also counts responses of 500 and
// above: each is a fault unless the documents of the service allow it during the current disturbance.

import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { Checker } from './checker.ts'
import type { Event, Operation, Outcome, Value, Violation } from './history.ts'

/** A disturbance by the harness. `start` is the time from the launch of a process until it is ready. */
type Disturbance = 'start' | 'pause' | 'disk' | 'backup' | 'clock'

/** After a disturbance has ended, its refusals may still arrive. */
const afterMs = 15_000

/** Documented codes of 503 and 507, and the disturbances during which they may occur; null means always. */
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

  /** Writes a remark for people. */
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

  /** Records an operation around the code that carries it out; an error is an unknown outcome. */
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
      // There was no process that could have done it.
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

  /** Whether it is in progress now. */
  isDuring(disturbance: Disturbance): boolean {
    return (this.#lasting.get(disturbance) ?? 0) > 0
  }

  /** Whether it is in progress, or its refusals may still arrive. */
  isUnder(disturbance: Disturbance): boolean {
    if (this.isDuring(disturbance)) return true
    const endedMs = this.#endedMs.get(disturbance)
    return endedMs !== undefined && this.ms - endedMs < afterMs
  }

  /** Checks a response by its status; `body` is its text. */
  answered(call: string, status: number, body: string): void {
    if (status < 500) return
    this.count(`answers ${status}`)
    const code = /"(?:code|status)":\s*"([a-z_]+)"/.exec(body)?.[1] ?? ''
    const under = status === 503 || status === 507 ? documented[code] : []
    if (under === null || under?.some((disturbance) => this.isUnder(disturbance))) return
    // The body of an OTLP refusal has no code of the service.
    if (under === undefined && (status === 503 || status === 507) && call.startsWith('POST /v1/')) return
    this.count('faults')
    this.violate(`answer ${status}`, `${call}: ${body.slice(0, 300)}`)
  }

  async close(): Promise<void> {
    this.#file.end()
    await once(this.#file, 'close')
  }

  #write(line: object): void {
    this.#file.write(`${JSON.stringify({ ms: this.ms, ...line })}\n`)
  }
}
