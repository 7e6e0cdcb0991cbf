// Races of two processes at one control plane: the first pauses before its commit until the second waits for
// its lock or has ended, and then commits. Nothing here depends on time. Each race is run twice: with locks,
// where its rule must be kept, and without, where it must be broken, so that a race which cannot break the
// rule fails the test. A process has one connection, so that a statement outside its transaction fails too.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql, type TransactionBuilder } from 'kysely'
import type { Control, Database } from '../../server/control/database.ts'
import { type ControlAdapter, dialectOf } from '../../server/control/dialect.ts'
import { ManualClock } from '../../server/core/manual-clock.ts'
import { openSharedPostgresPlane } from '../postgres-plane.ts'

type Act = (control: Control) => Promise<unknown>

interface RaceResults {
  readonly first: PromiseSettledResult<unknown>
  readonly second: PromiseSettledResult<unknown>
}

interface Race {
  readonly first: Act
  readonly second: Act
  /** Fails an assertion where the rule is broken. */
  readonly check: (results: RaceResults) => Promise<void> | void
}

export interface RaceScene {
  /** A handle outside the race, for preparation and checks. */
  readonly control: Control
  /** The organisation of this race; no other race uses it. */
  readonly tenantId: string
  readonly clock: ManualClock
}

export const startMs = 1_767_000_000_000

const plane = await openSharedPostgresPlane()
after(() => plane.close())
const one = () => plane.withOneConnection()
const locking = [one(), one()] as const
const lockless = [withoutLocks(one()), withoutLocks(one())] as const
let scenes = 0

/** `prepare` is called for each of the two runs, with an organisation of its own. */
export function testRace(name: string, prepare: (scene: RaceScene) => Promise<Race>): void {
  test(name, async () => {
    const kept = await prepare(await openScene())
    await kept.check(await run(kept, locking))
    const broken = await prepare(await openScene())
    const results = await run(broken, lockless)
    await assert.rejects(async () => broken.check(results), { name: 'AssertionError' }, 'no lock is needed')
  })
}

/** For rules that one statement keeps without a lock, such as a compare-and-set. */
export function testStatementRace(name: string, prepare: (scene: RaceScene) => Promise<Race>): void {
  test(name, async () => {
    for (const handles of [locking, lockless]) {
      const scene = await prepare(await openScene())
      await scene.check(await run(scene, handles))
    }
  })
}

/** How many of the two succeeded, and the codes of the errors of the others. */
export function summaryOf({ first, second }: RaceResults): { fulfilled: number; refused: string[] } {
  const refused = [first, second].flatMap((result) =>
    result.status === 'rejected' ? [String(result.reason.code ?? result.reason.name)] : [],
  )
  return { fulfilled: 2 - refused.length, refused }
}

export function resultOf<T>(result: PromiseSettledResult<unknown>): T {
  assert.ok(result.status === 'fulfilled', result.status === 'rejected' ? String(result.reason) : '')
  return result.value as T
}

async function openScene(): Promise<RaceScene> {
  const number = ++scenes
  const tenantId = `race-${number}`
  await plane.control
    .insertInto('organisations')
    .values({ tenant_id: tenantId, name: tenantId, placement: number % 64, created_at_ms: 0 })
    .execute()
  return { control: plane.control, tenantId, clock: new ManualClock(startMs) }
}

async function run(
  { first, second }: Race,
  [ours, theirs]: readonly [Control, Control],
): Promise<RaceResults> {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const one = first(stoppingBeforeCommit(ours, reached.resolve, released.promise))
  await Promise.race([reached.promise, settled(one)])
  const two = second(theirs)
  await untilItWaits(two)
  released.resolve()
  const [atFirst, atSecond] = await Promise.allSettled([one, two])
  return { first: atFirst, second: atSecond }
}

function withoutLocks(control: Control): Control {
  const adapter = control.getExecutor().adapter as unknown as {
    controlDialect: ControlAdapter['controlDialect']
  }
  adapter.controlDialect = { ...dialectOf(control), lock: async () => {} }
  return control
}

/** A handle whose first transaction pauses before its commit. */
function stoppingBeforeCommit(control: Control, reached: () => void, released: Promise<void>): Control {
  let hasStopped = false
  const transaction = () => {
    const builder: TransactionBuilder<Database> = control.transaction()
    const execute = builder.execute.bind(builder)
    builder.execute = (work) =>
      execute(async (trx) => {
        const result = await work(trx)
        if (!hasStopped) {
          hasStopped = true
          reached()
          await released
        }
        return result
      })
    return builder
  }
  return new Proxy(control, {
    get(target, name) {
      if (name === 'transaction') return transaction
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Resolves when a statement on the database waits for a lock, or `work` has ended. */
async function untilItWaits(work: Promise<unknown>): Promise<void> {
  let hasEnded = false
  const ended = settled(work).then(() => {
    hasEnded = true
  })
  while (!hasEnded) {
    const { rows } = await sql<{ waiting: number }>`
      select count(*) as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(plane.control)
    if (Number(rows[0]?.waiting) > 0) return
    await Promise.race([ended, new Promise((turn) => setImmediate(turn))])
  }
}

function settled(work: Promise<unknown>): Promise<void> {
  return work.then(
    () => {},
    () => {},
  )
}
