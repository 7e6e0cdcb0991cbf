// The service in its own process, as a simulation uses it from outside: HTTP, a channel for what only that
// process can do, and kill -9.

import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Control } from '../../server/control/database.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import type { TableName } from '../../server/telemetry/schema/tables.ts'
import { openSecondHandle } from '../control-planes.ts'
import { temporaryFolder } from '../fixtures.ts'
import type { Answered, Asked, Fault, Subject } from './subject.ts'
import type { Counted } from './telemetry.ts'

export interface ChildOptions {
  readonly dataDir: string
  readonly nowMs: number
  readonly isFirst: boolean
}

/** A call to the child over its channel; the response has the same id. */
export interface Call {
  readonly id: number
  readonly name: 'advance' | 'visible' | 'stored' | 'round' | 'resume' | 'remains' | 'close'
  readonly ms?: number
  readonly place?: TenantPlace
  readonly names?: readonly TableName[]
  readonly fault?: Fault | null
  readonly how?: 'throw' | 'continue'
}

interface Said {
  readonly id?: number
  readonly nowMs: number
  readonly address?: string
  readonly result?: unknown
  readonly error?: string
}

const program = fileURLToPath(new URL('kill-child.ts', import.meta.url))

export class Killed implements Subject {
  readonly #folder = temporaryFolder()
  #nowMs: number
  #child: ChildProcess | null = null
  #control: Control | null = null
  #address = ''
  #calls = 0
  #faultedAt: string | null = null
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>()

  constructor(startMs: number) {
    this.#nowMs = startMs
  }

  get control(): Control {
    return this.#control ?? assert.fail('The service is not started.')
  }

  nowMs(): number {
    return this.#nowMs
  }

  async start(isFirst: boolean): Promise<void> {
    const options: ChildOptions = { dataDir: this.#folder, nowMs: this.#nowMs, isFirst }
    const child = fork(program, [JSON.stringify(options)], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    this.#child = child
    const listening = Promise.withResolvers<string>()
    child.on('message', (said: Said) => {
      this.#nowMs = said.nowMs
      if (said.address !== undefined) listening.resolve(said.address)
      const asked = this.#open.get(said.id ?? 0)
      if (said.error === undefined) asked?.resolve(said.result)
      else asked?.reject(new Error(said.error))
      this.#open.delete(said.id ?? 0)
    })
    child.once('exit', (code, signal) => {
      const error = new Error(`The child ended unexpectedly with ${code ?? signal}.`)
      listening.reject(error)
      if (this.#child === child) for (const asked of this.#open.values()) asked.reject(error)
    })
    this.#address = await listening.promise
    this.#control = openSecondHandle(join(this.#folder, 'control.db'))
  }

  async advance(ms: number): Promise<void> {
    await this.#call({ name: 'advance', ms })
  }

  async ask(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, asked: Asked): Promise<Answered> {
    const asking = fetch(`${this.#address}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${asked.secret}`,
        ...(asked.json !== undefined && { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      ...(asked.json !== undefined && { body: JSON.stringify(asked.json) }),
    })
    // A call that waited when the process was killed never gets a response.
    const answer = await asking.catch(() => null)
    if (answer === null) return { status: 0, body: null }
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? null : JSON.parse(text) }
  }

  async visible(place: TenantPlace, names: readonly TableName[]): Promise<Counted> {
    return new Map(await this.#call<[string, number][]>({ name: 'visible', place, names }))
  }

  async stored(): Promise<ReadonlyMap<string, Counted>> {
    const counted = await this.#call<[string, [string, number][]][]>({ name: 'stored' })
    return new Map(counted.map(([tenantId, own]) => [tenantId, new Map(own)]))
  }

  async round(fault: Fault | null): Promise<'ended' | 'standing'> {
    const { end, faultedAt } = await this.#call<{ end: 'ended' | 'standing'; faultedAt: string | null }>({
      name: 'round',
      fault,
    })
    this.#faultedAt = faultedAt
    return end
  }

  faultedAt(): string | null {
    return this.#faultedAt
  }

  async resume(how: 'throw' | 'continue'): Promise<void> {
    await this.#call({ name: 'resume', how })
  }

  async crash(): Promise<void> {
    await this.#end('SIGKILL')
    await this.start(false)
  }

  async restart(): Promise<void> {
    await this.#call({ name: 'close' })
    await this.#end('SIGTERM')
    await this.start(false)
  }

  /** A simulation with kills does not set the clock either. */
  async setClock(): Promise<void> {
    assert.fail('The clock of a killed service is not set.')
  }

  /** Restores are for simulations in one process, which cost less and show the same. */
  async backUp(): Promise<string | null> {
    return null
  }

  async restore(): Promise<void> {
    assert.fail('A killed service is not restored.')
  }

  async remains(): Promise<readonly string[]> {
    return this.#call({ name: 'remains' })
  }

  async end(): Promise<void> {
    if (this.#child !== null) await this.#end('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = null
    if (child === null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    await this.#control?.destroy()
    this.#control = null
    this.#open.clear()
  }

  #call<T>(call: Omit<Call, 'id'>): Promise<T> {
    const id = ++this.#calls
    const asked = Promise.withResolvers<unknown>()
    this.#open.set(id, asked)
    this.#child?.send({ ...call, id })
    return asked.promise as Promise<T>
  }
}
