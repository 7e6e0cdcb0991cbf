// What a simulated service runs on: a clock that the test moves, an engine that the test can disconnect, and
// the points at which its erasures fail or pause. After its end nothing of it continues, as if the
// process had ended: its clock never wakes it, and none of its statements reaches the engine.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type SteadyTime, systemClock } from '../../server/core/clock.ts'
import { sideTables } from '../../server/deletion/attempt/side-tables.ts'
import type { TelemetryEngine } from '../../server/telemetry/engine.ts'
import { EngineFolder, type LocalEngine } from '../../server/telemetry/engine-files.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { raw, sql } from '../../server/telemetry/sql.ts'
import type { Fault } from './subject.ts'

/** How long the eraser waits between two checks of the disk. */
const removalPollMs = 50

/** Time passes on command, and where a loop waits for a long time. */
export class SimulatedClock implements Clock {
  #nowMs: number
  #steadyMs = 0
  /** Called when code waits for the engine to remove parts, which the engine does once a second by itself. */
  hurry: () => Promise<void> = async () => {}

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  nowNs(): bigint {
    return BigInt(this.#nowMs) * 1_000_000n
  }

  steady(): SteadyTime {
    return { boot: 'simulated', ms: this.#steadyMs }
  }

  elapsedMs(): number {
    return this.#steadyMs
  }

  advance(ms: number): void {
    this.#nowMs += ms
    this.#steadyMs += ms
  }

  /** Sets the clock by this much; no time passes. */
  set(byMs: number): void {
    this.#nowMs += byMs
  }

  /** Short waits are for the engine or the disk, which are real: a tenth of the time is waited. */
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms >= 1000) this.advance(ms)
    if (ms === removalPollMs) await this.hurry()
    await systemClock.sleep(Math.min(100, ms / 10), signal)
  }
}

/** One start of the service, until it is ended. */
export class ServiceRun {
  readonly #clock: Clock
  readonly #running = new Set<Promise<unknown>>()
  #isOver = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get clock(): Clock {
    return {
      nowMs: () => this.#clock.nowMs(),
      nowNs: () => this.#clock.nowNs(),
      steady: () => this.#clock.steady(),
      elapsedMs: () => this.#clock.elapsedMs(),
      sleep: (ms, signal) => this.#while(() => this.#clock.sleep(ms, signal)),
    }
  }

  /** The engine during this run. The code that opened it closes it. */
  engine(real: LocalEngine): LocalEngine {
    const engine: TelemetryEngine = {
      select: (statement, limits) => this.#while(() => real.select(statement, limits)),
      bytes: (statement, limits) => this.#while(() => real.bytes(statement, limits)),
      command: (statement) => this.#while(() => real.command(statement)),
      insert: (table, columns, lines) => this.#while(() => real.insert(table, columns, lines)),
      close: async () => {},
    }
    const sync = () => this.#while(() => real.files.sync())
    return { ...engine, files: new EngineFolder(engine, sync, () => real.files.syncsAtOnce) }
  }

  /** Resolves when the engine has ended the work in progress; later work does not reach it. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.allSettled([...this.#running])
    // Waits until work without the engine, such as an open transaction, has ended.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  async #while<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isOver) return new Promise<T>(() => {})
    const running = work()
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
      if (this.#isOver) await new Promise<T>(() => {})
    }
  }
}

/** Waits for a fault, reports it, and continues after it. */
export class Failpoints {
  #fault: Fault | null = null
  #left = 0
  #faultedAt: string | null = null
  #standing = Promise.withResolvers<'standing'>()
  #goOn = Promise.withResolvers<void>()

  /**
   * Runs a pass with a fault. The pass may end by the fault; its effects are read from the state afterwards.
   * A fault that was not reached ends with the pass, so that nothing else pauses or fails by it.
   */
  async during(fault: Fault | null, pass: () => Promise<void>): Promise<void> {
    this.#set(fault)
    try {
      await pass()
    } catch (error) {
      if (this.#faultedAt === null) throw error
    } finally {
      this.#fault = null
    }
  }

  #set(fault: Fault | null): void {
    this.#fault = fault
    this.#left = fault?.occurrence ?? 0
    this.#faultedAt = null
    this.#standing = Promise.withResolvers<'standing'>()
  }

  get faultedAt(): string | null {
    return this.#faultedAt
  }

  /** Resolves when an erasure is paused at the fault. */
  get standing(): Promise<'standing'> {
    return this.#standing.promise
  }

  goOn(how: 'throw' | 'continue'): void {
    if (how === 'continue') this.#goOn.resolve()
    else this.#goOn.reject(new Error('The simulation ends this paused attempt.'))
  }

  readonly pass = async (point: string): Promise<void> => {
    if (this.#fault === null || (this.#fault.point !== 'any' && this.#fault.point !== point)) return
    if (--this.#left > 0) return
    const { how } = this.#fault
    this.#fault = null
    this.#faultedAt = point
    if (how === 'throw') throw new Error(`The simulation ends this attempt at "${point}".`)
    this.#goOn = Promise.withResolvers<void>()
    this.#standing.resolve('standing')
    await this.#goOn.promise
  }
}

/** Side tables, and parts that no longer belong to a table but are still listed or on disk. */
export async function remainsIn(engine: LocalEngine): Promise<string[]> {
  const remains = (await sideTables(engine)).map(({ name }) => name)
  const folders = await engine.files.tableFolders(tables.map(({ name }) => name))
  for (const [name, folder] of folders) {
    const listed = await engine.select<{ name: string; active: number }>(
      sql`SELECT name, active FROM system.parts WHERE database = currentDatabase() AND table = ${name}`,
    )
    const active = new Set(listed.filter((part) => part.active === 1).map((part) => part.name))
    const onDisk = (await readdir(folder)).filter((entry) => /\d_\d/.test(entry))
    const detached = await readdir(join(folder, 'detached'))
    const dead = new Set([...listed.map((part) => part.name), ...onDisk].filter((part) => !active.has(part)))
    remains.push(...[...dead, ...detached].map((part) => `${name} ${part}`))
  }
  return remains
}

/**
 * Makes the engine remove replaced parts now: it does so at each drop of a partition, also of one that
 * doesn't exist.
 */
export async function removeReplaced(engine: TelemetryEngine): Promise<void> {
  for (const { name } of tables)
    await engine.command(raw(`ALTER TABLE ${name} DROP PARTITION ID '63-19700105'`))
}
