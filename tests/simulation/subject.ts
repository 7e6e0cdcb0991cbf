// What a simulation controls: the service by its own interfaces; beside them actions of the machine (stopping
// it, starting it, letting time pass); and the contents of the engine, including hidden rows.

import type { Control } from '../../server/control/database.ts'
import type { TenantPlace } from '../../server/telemetry/engine.ts'
import type { TableName } from '../../server/telemetry/schema/tables.ts'
import type { Counted } from './telemetry.ts'

/** What happens when an erasure reaches a named point for the n-th time. */
export interface Fault {
  readonly point: string | 'any'
  readonly occurrence: number
  /** `throw` fails at once; `stand` pauses until it is continued. */
  readonly how: 'throw' | 'stand'
}

export interface Asked {
  readonly secret: string
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answered {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: responses of every route, whose contracts have other tests
  readonly body: any
}

export interface Subject {
  /** A separate connection to the control plane, as the command line has. A new one after each start. */
  readonly control: Control
  nowMs(): number
  advance(ms: number): Promise<void>
  /** Sets the clock; no time passes. */
  setClock(byMs: number): Promise<void>
  ask(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, asked: Asked): Promise<Answered>
  /** Rows that the organisation's own readers see in these tables. */
  visible(place: TenantPlace, names: readonly TableName[]): Promise<Counted>
  /** Rows in the tables, by organisation. */
  stored(): Promise<ReadonlyMap<string, Counted>>
  /** One pass of the deletion loop, until its end or until it is paused at the fault. */
  round(fault: Fault | null): Promise<'ended' | 'standing'>
  /** The point at which the fault of the last pass occurred; null where it did not. */
  faultedAt(): string | null
  /** Continues from the pause, with an error or normally, to the end of the pass. */
  resume(how: 'throw' | 'continue'): Promise<void>
  /** Ends abruptly and starts again. */
  crash(): Promise<void>
  /** Stops gracefully and starts again. */
  restart(): Promise<void>
  /** Takes a backup that is kept for this many days; null where it failed. */
  backUp(keepDays: number): Promise<string | null>
  /** Stops, restores a backup's telemetry and keeps the control plane or restores it too, starts again. */
  restore(backup: string, isControlReplaced: boolean): Promise<void>
  /** Side tables, and parts that no longer belong to a table but are still listed or on disk. */
  remains(): Promise<readonly string[]>
  end(): Promise<void>
}
