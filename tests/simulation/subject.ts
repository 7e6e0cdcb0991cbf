// What a simulation drives: the service by its own doors, beside them the things only a machine
// can do to it (ending it, starting it, letting time pass), and a look at what lies in the engine
// past everything that hides.

import type { Control } from '../../server/control/database.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import type { TableName } from '../../server/telemetry/schema/tables.ts'
import type { Counted } from './telemetry.ts'

/** What is to happen when an erasure comes by a named point for the n-th time. */
export interface Fault {
  readonly point: string | 'any'
  readonly occurrence: number
  /** `throw` fails there and then; `stand` stays until it is told how to go on. */
  readonly how: 'throw' | 'stand'
}

export interface Asked {
  readonly secret: string
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answered {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: answers of every route, whose contracts have tests of their own
  readonly body: any
}

export interface Subject {
  /** A connection of its own to the control plane, as the command line has. Another one after each start. */
  readonly control: Control
  nowMs(): number
  advance(ms: number): Promise<void>
  /** Somebody sets the clock; no time passes. */
  setClock(byMs: number): Promise<void>
  ask(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, asked: Asked): Promise<Answered>
  /** What the organisation's own readers see in these tables. */
  visible(place: TenantPlace, names: readonly TableName[]): Promise<Counted>
  /** What lies in the tables, by organisation. */
  stored(): Promise<ReadonlyMap<string, Counted>>
  /** One pass of the deletion loop, until its end or until it stands at the fault. */
  round(fault: Fault | null): Promise<'ended' | 'standing'>
  /** The point at which the fault of the last pass came about; null where it did not. */
  faultedAt(): string | null
  /** Goes on from where it stands, by an error or as if nothing had been, to the end of the pass. */
  resume(how: 'throw' | 'continue'): Promise<void>
  /** Ends without a word and starts again. */
  crash(): Promise<void>
  /** Ends in order and starts again. */
  restart(): Promise<void>
  /** Takes a backup that is to be kept for so long; null where it failed. */
  backUp(keepDays: number): Promise<string | null>
  /**
   * Stops, puts a backup's telemetry back and keeps the control plane or takes the backup's, starts again.
   */
  restore(backup: string, isControlReplaced: boolean): Promise<void>
  /** Side tables, and parts that are no longer part of a table but listed or on disk. */
  remains(): Promise<readonly string[]>
  end(): Promise<void>
}
