// The people and programs of one organisation: senders that post numbered rows, readers that read them in
// every possible way, and an owner who erases, cancels, places holds, verifies and stores certificates. Each
// client draws its next action from its own random stream; the time of an action depends on the service.

import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import type { NumberedRow, Selected } from './history.ts'
import type { Asked, Held, PublicCalls } from './public-calls.ts'
import type { Recorder } from './recorder.ts'
import { pick, type Random, randomOf } from './schedule.ts'

const weekS = 7 * 86_400
const slotS = 3 * 86_400
/** Twelve weeks, so that a range drops some partitions and rewrites others. */
const slots = 28

/** Lets operations pass or makes them wait: while there is no service, and while a restore must be alone. */
export class Traffic {
  isEnding = false
  /** Whether there is a service; requests without one would show nothing. */
  isServed = false
  #isClosed = false
  #under = 0

  /** Does nothing where the traffic ends while it waits. */
  async pass(act: () => Promise<unknown>): Promise<void> {
    while (this.#isClosed || !this.isServed) {
      if (this.isEnding) return
      await sleep(50)
    }
    this.#under++
    try {
      await act()
    } finally {
      this.#under--
    }
  }

  /** Resolves when no operation is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#under > 0) await sleep(20)
  }

  open(): void {
    this.#isClosed = false
  }
}

interface Timeline {
  /** Seconds since 1970; a Monday. */
  readonly startS: number
  readonly endS: number
}

export function timelineBefore(nowMs: number): Timeline {
  const mondayS = Math.floor((nowMs / 1000 - 4 * 86_400) / weekS) * weekS + 4 * 86_400
  return { startS: mondayS - 13 * weekS, endS: mondayS - weekS }
}

interface ClientDeps {
  readonly seed: number
  readonly recorder: Recorder
  readonly traffic: Traffic
  readonly timeline: Timeline
  readonly backupDir: string
  readonly outFolder: string
  /** Returns the number of the next row. */
  readonly nextRow: () => number
}

const openStatuses = ['asked', 'scheduled', 'held', 'running', 'verifying', 'incomplete', 'failed']

export class Client {
  readonly calls: PublicCalls
  readonly asked: Asked[] = []
  readonly holds: Held[] = []
  /** Files of the ledger, oldest first, that the live ledger must continue. */
  exports: string[] = []
  readonly #deps: ClientDeps
  #keys = 0

  constructor(calls: PublicCalls, deps: ClientDeps) {
    this.calls = calls
    this.#deps = deps
  }

  get tenantId(): string {
    return this.calls.organisation.tenantId
  }

  /** Runs until the traffic ends. */
  async live(): Promise<void> {
    await Promise.all([
      this.#loop('sender', 250, (random) => this.#send(random)),
      this.#loop('reader', 700, (random) => this.#read(random)),
      this.#loop('owner', 900, (random) => this.#own(random)),
    ])
  }

  async #loop(name: string, meanMs: number, act: (random: Random) => Promise<unknown>): Promise<void> {
    const random = randomOf(this.#deps.seed, `${this.tenantId} ${name}`)
    const { traffic } = this.#deps
    while (!traffic.isEnding) {
      await sleep(meanMs * 2 * random())
      if (!traffic.isEnding) await traffic.pass(() => act(random))
    }
  }

  // Sending and reading

  async #send(random: Random): Promise<void> {
    const signal = pick(random, signals)
    const count = 1 + Math.floor(random() * 8)
    const rows = Array.from({ length: count }, () => this.#row(random))
    await this.calls.send(signal, rows, random() < 0.5)
  }

  #row(random: Random): NumberedRow {
    const slot = Math.floor(random() * slots)
    const timeS = this.#deps.timeline.startS + slot * slotS + Math.floor(random() * 20_000)
    return { n: this.#deps.nextRow(), timeS }
  }

  async #read(random: Random): Promise<void> {
    const { recorder, timeline } = this.#deps
    const way = random()
    const signal = pick(random, signals)
    const [from, to] = slotRange(random)
    if (way < 0.15) {
      await this.readAll(signal)
    } else if (way < 0.65) {
      await this.calls.read(signal, spanOf(timeline, from, to))
    } else if (way < 0.85) {
      await this.calls.count({ ...spanOf(timeline, from, to), signals: someSignals(random) })
    } else {
      const erased = recorder.checker.erasedRows().filter(({ org }) => org === this.tenantId)
      if (erased.length > 0) {
        const row = pick(random, erased)
        await this.calls.probe(row.signal, row.n, this.#whole())
      }
    }
  }

  #whole() {
    const { startS, endS } = this.#deps.timeline
    return { startS: startS - 86_400, endS: endS + 2 * weekS }
  }

  readAll(signal: Signal): Promise<unknown> {
    return this.calls.read(signal, this.#whole())
  }

  // Actions of the owner

  async #own(random: Random): Promise<void> {
    const way = random()
    const chosen = random()
    const open = this.asked.filter(({ id, status }) => id !== null && openStatuses.includes(status))
    const done = this.asked.filter(({ status }) => status === 'completed')
    const one = <T>(from: readonly T[]) => from[Math.floor(chosen * from.length)]
    const [opened, completed] = [one(open), one(done.slice(-20))]
    if (way < 0.08) await this.#erase(random)
    else if (way < 0.2) await this.#holdOrRelease(random)
    else if (way < 0.26 && opened !== undefined) await this.calls.cancel(opened)
    else if (way < 0.36 && completed !== undefined) await this.calls.verify(completed)
    else if (way < 0.46 && completed !== undefined) await this.certify(completed)
    else if (way < 0.48) await this.keepLedger()
    else if (opened !== undefined) await this.#follow(opened)
    for (const asked of this.asked) if (asked.status === 'asked') await this.#askAgain(asked)
  }

  async #erase(random: Random): Promise<void> {
    const [from, to] = slotRange(random)
    const way = random()
    const span = spanOf(this.#deps.timeline, from, Math.min(to, from + 5))
    const selected: Selected = {
      ...(way < 0.06 ? { startS: null, endS: null } : way < 0.15 ? { startS: null, endS: span.endS } : span),
      signals: someSignals(random),
    }
    const delayMinutes = random() < 0.35 ? pick(random, [1, 30, 600]) : 0
    const key = `${this.tenantId}-erasure-${++this.#keys}`
    const asked: Asked = { key, selected, delayMinutes, id: null, status: 'asked' }
    this.asked.push(asked)
    await this.#askAgain(asked)
  }

  async #askAgain(asked: Asked): Promise<void> {
    const outcome = await this.calls.erase(asked)
    if (outcome === 'fail') asked.status = 'refused'
  }

  async #follow(asked: Asked): Promise<void> {
    await this.calls.look(asked)
    if (asked.status === 'failed') await this.calls.retry(asked)
  }

  async #holdOrRelease(random: Random): Promise<void> {
    const active = this.holds.filter(({ isActive, id }) => isActive && id !== null)
    const unknown = this.holds.find(({ id }) => id === null)
    const [from, to] = slotRange(random)
    if (unknown !== undefined) {
      await this.calls.lookHold(unknown)
      if (unknown.id === null) this.holds.splice(this.holds.indexOf(unknown), 1)
    } else if (active.length > 1 || (active.length > 0 && random() < 0.5)) {
      await this.calls.release(pick(random, active))
    } else {
      const span = spanOf(this.#deps.timeline, from, Math.min(to, from + 8))
      const key = `${this.tenantId}-hold-${++this.#keys}`
      const held: Held = {
        key,
        selected: { ...span, signals: someSignals(random) },
        id: null,
        isActive: false,
      }
      this.holds.push(held)
      await this.calls.hold(held)
    }
  }

  async certify(asked: Asked): Promise<{ text: string } | null> {
    return this.calls.certificate(asked, backupsIn(this.#deps.backupDir))
  }

  async keepLedger(): Promise<void> {
    const text = await this.calls.exportLedger()
    if (text === null) return
    const path = join(this.#deps.outFolder, `${this.tenantId}-ledger-${this.exports.length}.ndjson`)
    writeFileSync(path, text)
    this.exports.push(path)
    this.#deps.recorder.count('ledger exports')
  }

  /** Reads the status of every request and hold, as after a restore. */
  async lookAtAll(): Promise<void> {
    for (const asked of this.asked) {
      if (asked.status === 'refused') continue
      if (asked.id === null) await this.#askAgain(asked)
      else await this.calls.look(asked)
    }
    for (const held of this.holds) await this.calls.lookHold(held)
  }

  /** Requests that have not ended. */
  get open(): Asked[] {
    return this.asked.filter(({ status }) => openStatuses.includes(status))
  }
}

/** Backups whose folder exists and is complete. */
export function backupsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /^bak_[^.]+$/.test(name))
  } catch {
    return []
  }
}

function slotRange(random: Random): [number, number] {
  const [a, b] = [Math.floor(random() * slots), Math.floor(random() * slots)]
  return [Math.min(a, b), Math.max(a, b) + 1]
}

function spanOf({ startS }: Timeline, from: number, to: number): { startS: number; endS: number } {
  return { startS: startS + from * slotS, endS: startS + to * slotS }
}

function someSignals(random: Random): Signal[] {
  return random() < 0.6 ? [...signals] : [pick(random, signals)]
}
