// A scene of deletion-fixture.ts with people who decide, for tests: the organisation's policy, decisions as
// the routes make them, a manual clock, and an engine that fails where a test requests it. The failing engine
// passes everything else to the real one.

import assert from 'node:assert/strict'
import type { Stores } from '../../tests/fixtures.ts'
import { findBreak } from '../audit/chain.ts'
import { readChain } from '../audit/log.ts'
import type { Control } from '../control/database.ts'
import { type Actor, operatorActor, tokenActor } from '../core/actor.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, type SteadyTime, systemClock } from '../core/clock.ts'
import {
  EngineError,
  type ReadShare,
  type StatementLimits,
  type TelemetryEngine,
} from '../telemetry/engine.ts'
import { signals } from '../telemetry/schema/tables.ts'
import { render, type Sql } from '../telemetry/sql.ts'
import { areRelated } from '../tenancy/lineage.ts'
import { TenancyStore } from '../tenancy/store.ts'
import { newTokenSecret } from '../tenancy/tenancy.ts'
import { monday, type Scene, type SceneOptions, sceneOf, weekNs } from './deletion-fixture.ts'
import { Decisions } from './governance/decisions.ts'
import { DeletionPolicies } from './governance/policy.ts'
import type { DeletionSelection } from './requests/selection.ts'

/** Start of the clock: both weeks of a scene's rows are over. */
export const startMs = Number((monday + 3n * weekNs) / 1_000_000n)
export const minuteMs = 60_000
export const dayMs = 86_400_000

/** The test sets the time; waits are real, because the engine's disk is. */
class SetClock implements Clock {
  #nowMs: number

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
    return systemClock.steady()
  }

  elapsedMs(): number {
    return systemClock.elapsedMs()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal)
  }

  /** Also backwards. */
  advance(ms: number): void {
    this.#nowMs += ms
  }
}

export type GovernedScene = Awaited<ReturnType<typeof governedSceneOf>>

/** Runs `work` while the last check has left the clock in doubt. */
export async function withClockInDoubt(control: Control, work: () => Promise<unknown>): Promise<void> {
  const right = { right_ms: 0, right_steady: { boot: 'x', ms: 0 }, seen_ms: 0, seen_steady_ms: 0 }
  const value = JSON.stringify({ ...right, doubt: { expected_ms: 0, found_ms: 1 } })
  await control.insertInto('instance').values({ key: 'clock', value }).execute()
  await work()
  await control.deleteFrom('instance').where('key', '=', 'clock').execute()
}

export async function governedSceneOf(stores: Stores, options: SceneOptions = {}) {
  const clock = new SetClock(startMs)
  const scene = await sceneOf(stores, { ...options, clock })
  const { tenantId, placement } = scene.own
  const callerOf = (name: string): Caller => ({
    tenantId,
    placement,
    organisationName: tenantId,
    role: 'owner',
    requester: tokenNamed(name),
  })
  const personOf = peopleOf(stores, tenantId, clock)
  const chain = async (table: 'ledger_entries' | 'audit_entries') => {
    const entries = await readChain(stores.control, table, tenantId)
    assert.equal(findBreak(entries), null)
    return entries.map(({ text }) => JSON.parse(text))
  }
  return {
    ...scene,
    clock,
    callerOf,
    policies: new DeletionPolicies(stores.control, clock),
    decisions: new Decisions({
      requestStore: scene.requestStore,
      requests: scene.requests,
      clock,
      verifyAgain: (request, requester) => scene.worker.verifyAgain(request, requester),
      areRelated: async (tenant, first, second) =>
        areRelated(stores.control, tenant, await personOf(first), await personOf(second)),
    }),
    /** Places a hold as the routes do: while nothing is erased from the placement. */
    hold: (
      part: Partial<DeletionSelection['range']> & { signals?: ('metrics' | 'logs' | 'traces')[] } = {},
      by: Actor = tokenNamed('owner'),
    ) =>
      scene.locks.writes.exclusively([placement], () =>
        scene.holds.place(
          tenantId,
          {
            case_ref: 'case 1',
            ...(part.startNs !== undefined && part.startNs !== null && { range_start: part.startNs }),
            ...(part.endNs !== undefined && part.endNs !== null && { range_end: part.endNs }),
            ...(part.signals !== undefined && { signals: part.signals }),
          },
          by,
        ),
      ),
    /** Returns the states of a request by its ledger, whose chain must be valid. */
    moves: async (requestId: string): Promise<string[]> =>
      (await chain('ledger_entries'))
        .filter((entry) => entry.request_id === requestId)
        .map((entry) => entry.to_status),
    ledgerEntries: () => chain('ledger_entries'),
    /** Returns the audit entries of a request, oldest first. */
    acts: async (
      requestId: string,
    ): Promise<{ actor: string; action: string; facts: Record<string, unknown> }[]> =>
      (await chain('audit_entries')).filter((entry) => entry.target === requestId),
  }
}

/** Adds the organisation to the control plane, without its first audit entry: for acts that require it. */
export async function enrol(control: Control, tenantId: string): Promise<void> {
  await control
    .insertInto('organisations')
    .values({ tenant_id: tenantId, name: tenantId, placement: 0, created_at_ms: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Sets how many days of every signal retention keeps, without asking a second person. */
export async function keepDays(control: Control, tenantId: string, days: number): Promise<void> {
  const rows = signals.map((signal) => ({ tenant_id: tenantId, signal, days }))
  await control.insertInto('retention_policies').values(rows).execute()
}

/**
 * Names such as `ada` stand for people: each has a token that the operator made, and acts are recorded with
 * the name alone. A name that is a token id stands for that token.
 */
function peopleOf({ control }: Stores, tenantId: string, clock: Clock): (actor: Actor) => Promise<Actor> {
  const tenancy = new TenancyStore(control, clock)
  const make = async (name: string) => {
    await enrol(control, tenantId)
    const token = { tenantId, name, role: 'admin', secret: newTokenSecret('admin') } as const
    const { id } = await tenancy.createToken({ ...token, expiresAtMs: null, actor: operatorActor('test') })
    return tokenActor(id, name)
  }
  const people = new Map<string, Promise<Actor>>()
  return async (actor) => {
    const { name } = actor
    if (actor.id !== tokenNamed(name).id) return actor
    const person = people.get(name) ?? make(name)
    people.set(name, person)
    return person
  }
}

/** Whether a row at this time is refused now. */
export function refuses(scene: Pick<Scene, 'gate' | 'own'>, timeNs: bigint): boolean {
  const part = { table: 'otel_logs' as const, rows: [], minTimeNs: timeNs, maxTimeNs: timeNs }
  return scene.gate.refuses(scene.own, [part])
}

/** The real engine, except that statements whose text matches `failing` fail with its ClickHouse code. */
export class FailingEngine implements TelemetryEngine {
  failing: { readonly text: RegExp; readonly code: number } | null = null
  /** Called before a statement, with its text and the limits of a read, and not before inserts of rows. */
  before: ((text: string, limits?: StatementLimits) => Promise<void>) | null = null
  /** Number of statements that were made to fail. */
  failed = 0
  readonly #engine: TelemetryEngine

  constructor(engine: TelemetryEngine) {
    this.#engine = engine
  }

  async select<T>(statement: Sql, limits?: StatementLimits, share?: ReadShare): Promise<T[]> {
    await this.before?.(render(statement), limits)
    this.#check(statement)
    return this.#engine.select<T>(statement, limits, share)
  }

  async bytes(statement: Sql, ...rest: []): Promise<Uint8Array> {
    this.#check(statement)
    return this.#engine.bytes(statement, ...rest)
  }

  async command(statement: Sql): Promise<void> {
    await this.before?.(render(statement))
    this.#check(statement)
    return this.#engine.command(statement)
  }

  async insert(...[table, ...rest]: Parameters<TelemetryEngine['insert']>): Promise<void> {
    this.#fail(`INSERT INTO ${table}`)
    return this.#engine.insert(table, ...rest)
  }

  close(): Promise<void> {
    return this.#engine.close()
  }

  #check(statement: Sql): void {
    this.#fail(render(statement))
  }

  #fail(text: string): void {
    if (this.failing === null || !this.failing.text.test(text)) return
    this.failed++
    throw new EngineError('This statement fails because the test says so', { code: this.failing.code })
  }
}
